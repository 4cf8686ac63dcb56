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
from idumb.git import git_program, open_repository, refs
from idumb.git.checkouts.user_git import EXCLUDE, UserGit
from idumb.git.discover import Repository
from idumb.system.files import private_folders

if TYPE_CHECKING:
    import pygit2

GIT = ".git"
_OID = lazy_pattern.compile("[0-9a-f]{40}")
_MOST_COMMITS = 1000
_FOLDERS = ("objects", "refs", "refs/heads", "refs/tags")


class VisibleGit:
    """`own` is a folder that no program writes: it keeps the commits that no branch may have any more tomorrow."""

    def __init__(self, user: Repository, repository: pygit2.Repository, settings: UserGit, own: str) -> None:
        self._user = user
        self._repository = repository
        self._settings = settings
        self._own = os.path.join(own, "objects")
        private_folders.remove_tree(self._own)
        self._kept: str | None = None
        self._files: Mapping[str, bytes] = {}

    def show(self, top: str, head: str | None, rules: bytes) -> None:
        """Prepare it for the checkout `top`, on top of the commit `head`; `rules` say what git ignores."""
        if head is not None and head != self._kept:
            self._keep_history(head)
            self._kept = head
        branch = open_repository.branch_of(self._repository) or ("" if head else "refs/heads/main")
        tags = sorted(refs.listed(self._user.common_dir, "refs/tags/").items())
        rows = [f"{oid} {name}\n" for name, oid in tags if _OID.fullmatch(oid)]
        lenders = [*open_repository.lenders(self._user), self._own]
        folder = os.path.join(top, GIT)
        self._files = {
            **self._settings.in_folder(folder, {"core.logallrefupdates": "true"}),
            "HEAD": os.fsencode(f"ref: {branch}\n" if branch else f"{head}\n"),
            "packed-refs": os.fsencode("".join(("# pack-refs with: sorted \n", *rows))),
            "objects/info/alternates": open_repository.alternates(lenders),
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
            for folder in sorted({*_FOLDERS, *(each for name in self._files for each in paths.folders_above(name))}):
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

    def _keep_history(self, head: str) -> None:
        """Copy the commits that no branch has, and `head`: the user may amend it, and collect garbage.

        In a partial clone that fails, and the user's own objects have to do.
        """
        listing = ["rev-list", "--parents", f"--max-count={_MOST_COMMITS}"]
        unreached = git_program.read(self._user.root, [*listing, head, "--not", "--branches", "--remotes", "--tags"])
        itself = git_program.read(self._user.root, ["rev-list", "--parents", "--max-count=1", head])
        rows = [line.split() for line in (itself.out + unreached.out).decode("ascii").splitlines()]
        commits = {row[0] for row in rows}
        before = {parent for row in rows for parent in row[1:]} - commits
        wanted = "".join(f"{commit}\n" for commit in (*sorted(commits), *(f"^{each}" for each in sorted(before))))
        private_folders.make(os.path.join(self._own, "pack"))
        pack = ["pack-objects", "--revs", "--window=0", "-q", os.path.join(self._own, "pack", "pack")]
        git_program.read(self._user.root, pack, wanted.encode("ascii"))
