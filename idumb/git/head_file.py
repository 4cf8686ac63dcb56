"""The commits that HEAD and branches name, read from git's files alone: no process and no pygit2."""

from __future__ import annotations

import os
import stat

from idumb import lazy_pattern

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know the name
if TYPE_CHECKING:
    from idumb.git.discover import Repository

_BRANCH = lazy_pattern.compile(rb"ref: (refs/heads/(?!.*\.\.)[^\0\n]+)\n")
_COMMIT = lazy_pattern.compile(rb"([0-9a-f]{40})\n")
_PACKED = lazy_pattern.compile(rb"([0-9a-f]{40}) (.*)")
_MOST = 1 << 20


def commit(place: Repository) -> str | None:
    """Return the id of HEAD's commit, or None if the files do not say it plainly.

    So it is for a branch without a commit, a shallow history, refs in another format, and a damaged file.
    """
    if any(os.path.lexists(os.path.join(place.common_dir, name)) for name in ("shallow", "info/grafts")):
        return None  # these files change what a commit's parents are
    head = text(os.path.join(place.git_dir, "HEAD")) or b""
    branch = _BRANCH.fullmatch(head)
    if branch is None:
        return _commit(head)
    path = os.path.join(place.common_dir, os.fsdecode(branch[1]))
    loose = text(path)
    if loose is None and (os.path.isdir(path) or not os.path.lexists(path)):
        return packed(place.common_dir, branch[1])
    return _commit(loose or b"")


def _commit(content: bytes) -> str | None:
    oid = _COMMIT.fullmatch(content)
    return None if oid is None else oid[1].decode("ascii")


def packed(folder: str, ref: bytes) -> str | None:
    """Return what the file `packed-refs` in a git folder says of a ref."""
    lines = (text(os.path.join(folder, "packed-refs")) or b"").splitlines()
    rows = (row for line in lines if (row := _PACKED.fullmatch(line)) is not None)
    return next((row[1].decode("ascii") for row in rows if row[2] == ref), None)


def text(path: str) -> bytes | None:
    """Return the bytes of a small regular file; None if there is none. Never waits for a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = stream.read(_MOST + 1)
    return data if len(data) <= _MOST else None
