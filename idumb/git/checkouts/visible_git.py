"""The `.git` that programs see in a checkout. idumb writes it again and again, and never runs git with it.

It has the user's branch, tags, identity, line endings and filters; no remote, no hook, no other branch. It reads the
objects of the user's repository.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from idumb.domain import paths
from idumb.git import discover, open_repository
from idumb.git.checkouts import user_git
from idumb.git.checkouts.user_git import EXCLUDE, UserGit
from idumb.git.discover import Repository
from idumb.system.files import private_folders

if TYPE_CHECKING:
    import pygit2

GIT = ".git"
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
        tags = discover.listed(self._user.common_dir, "refs/tags/")
        lenders = open_repository.lenders(self._user)
        folder = os.path.join(top, GIT)
        self._files = {
            **self._settings.in_folder(folder, {"core.logallrefupdates": "true"}),
            **user_git.ref_files(self._repository, head, tags),
            "objects/info/alternates": b"".join(os.fsencode(folder) + b"\n" for folder in lenders),
            EXCLUDE: rules,
        }

    def write(self, opened: int, index: str | None = None) -> None:
        """Write it into the open checkout, in the place of what programs left there; `index` is a file to copy."""
        with contextlib.suppress(FileNotFoundError):
            private_folders.remove_at(GIT, opened)
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
