"""The `.git` that programs see in a checkout. idumb writes it again and again, and never runs git with it.

It has the user's branch, tags, identity, line endings and filters; no remote, no hook, no other branch. It reads the
objects of the user's repository.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from idumb import lazy_pattern
from idumb.domain import paths
from idumb.git import discover, open_repository
from idumb.git.checkouts.user_git import EXCLUDE, UserGit
from idumb.git.discover import Repository
from idumb.system.files import private_folders

if TYPE_CHECKING:
    import pygit2

GIT = ".git"
_OID = lazy_pattern.compile("[0-9a-f]{40}")
_FOLDERS = ("objects", "refs", "refs/heads", "refs/tags")


class VisibleGit:
    """The user may amend HEAD and collect garbage: the snapshot before each task keeps its commit for that time."""

    def __init__(self, user: Repository, repository: pygit2.Repository, settings: UserGit) -> None:
        self._user = user
        self._repository = repository
        self._settings = settings
        self._files: Mapping[str, bytes] = {}

    def show(self, top: str, head: str | None, rules: bytes) -> None:
        """Prepare it for the checkout `top`, on top of the commit `head`; `rules` say what git ignores."""
        branch = open_repository.branch_of(self._repository) or ("" if head else "refs/heads/main")
        tags = sorted(discover.listed(self._user.common_dir, "refs/tags/").items())
        rows = [f"{oid} {name}\n" for name, oid in tags if _OID.fullmatch(oid)]
        lenders = open_repository.lenders(self._user)
        folder = os.path.join(top, GIT)
        self._files = {
            **self._settings.in_folder(folder, {"core.logallrefupdates": "true"}),
            "HEAD": os.fsencode(f"ref: {branch}\n" if branch else f"{head}\n"),
            "packed-refs": os.fsencode("".join(("# pack-refs with: sorted \n", *rows))),
            "objects/info/alternates": b"".join(os.fsencode(folder) + b"\n" for folder in lenders),
            EXCLUDE: rules,
            **({branch: head.encode("ascii") + b"\n"} if branch and head else {}),
        }

    def write(self, opened: int, index: str | None = None) -> None:
        """Write it into the open checkout, in the place of what programs left there; `index` is a file to copy."""
        try:
            private_folders.remove_at(GIT, opened)
        except FileNotFoundError:
            pass
        os.mkdir(GIT, dir_fd=opened)
        at = os.open(GIT, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened)
        try:
            for folder in sorted(paths.folders_above(self._files).union(_FOLDERS)):
                os.mkdir(folder, dir_fd=at)
            files = dict(self._files)
            if index is not None:
                with open(index, "rb") as stream:
                    files["index"] = stream.read()
            for name, content in files.items():
                with open(
                    os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=at), "wb"
                ) as target:
                    target.write(content)
        finally:
            os.close(at)
