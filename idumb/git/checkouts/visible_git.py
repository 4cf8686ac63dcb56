"""The `.git` that programs see in a checkout. idumb writes it again and again, and never runs git with it.

It has the user's branch, tags, identity, line endings and filters; no remote, no hook, no other branch. It reads the
objects of the user's repository.

All that idumb takes from it are the messages of the commits that programs made. They can put anything there, such as
links, pipes and endless data. So git does not look: neither the configuration nor alternates count, and a commit that a
program packed is not read.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from idumb.domain import paths
from idumb.git import discover, open_repository, path_state
from idumb.git.checkouts import user_git
from idumb.git.checkouts.user_git import UserGit
from idumb.git.discover import Repository
from idumb.git.own_folder import EXCLUDE
from idumb.system.files import private_folders

if TYPE_CHECKING:
    import pygit2

GIT = ".git"
_FOLDERS = ("objects", "refs", "refs/heads", "refs/tags")
_MOST, _LONGEST = 50, 4000
"""How many messages are read, and how many bytes of each commit and file."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OID = re.compile("[0-9a-f]{40}")
_PARENT = re.compile("(?m)^parent ([0-9a-f]{40})$")


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


def messages(top: int, head: str | None) -> tuple[str, ...]:
    """Return those of HEAD and its first parents above the commit `head`, the oldest first; `top` is the checkout."""
    found, oid = list[str](), _tip(top)
    while oid and oid != head and len(found) < _MOST and (commit := _commit(top, oid)):
        about, _, message = commit.partition("\n\n")
        parent = _PARENT.search(about)
        oid = parent[1] if parent else ""
        found.append(message.strip())
    return tuple(reversed(found))


def _tip(top: int) -> str:
    name = _content(top, "HEAD").decode("utf-8", "surrogateescape").strip()
    value = _content(top, name[5:]).decode("ascii", "replace").strip() if name.startswith("ref: ") else name
    return value if _OID.fullmatch(value) else ""


def _commit(top: int, oid: str) -> str:
    """Return what a commit says; "" if there is no such file."""
    with contextlib.suppress(zlib.error):
        data = zlib.decompressobj().decompress(_content(top, f"objects/{oid[:2]}/{oid[2:]}"), _LONGEST)
        if data.startswith(b"commit "):
            return data.partition(b"\0")[2].decode("utf-8", "replace")
    return ""


def _content(top: int, path: str) -> bytes:
    """Return the beginning of a file of that `.git`; b"" if there is none."""
    parts = [GIT, *path.split("/")]
    with contextlib.suppress(OSError, ValueError):
        if not {"", ".", ".."}.intersection(parts):
            with (
                path_state.parent(top, parts) as folder,
                open(os.open(parts[-1], _READ, dir_fd=folder), "rb") as file,
            ):
                return file.read(_LONGEST) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    return b""
