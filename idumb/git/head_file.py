"""HEAD's commit, read from git's files alone: no process and no pygit2."""

from __future__ import annotations

import os

from idumb import lazy_pattern

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know the name
if TYPE_CHECKING:
    from idumb.git.discover import Repository

_BRANCH = lazy_pattern.compile(rb"ref: (refs/heads/(?!.*\.\.)[^\0\n]+)\n")
_COMMIT = lazy_pattern.compile(rb"([0-9a-f]{40})\n")


def commit(place: Repository) -> str | None:
    """Return the id of HEAD's commit, or None if the files do not say it plainly.

    So it is for a branch without a commit, a shallow history, refs in another format, and a damaged file.
    """
    if any(os.path.lexists(os.path.join(place.common_dir, name)) for name in ("shallow", "info/grafts")):
        return None  # these files change what a commit's parents are
    text = _read(os.path.join(place.git_dir, "HEAD")) or b""
    branch = _BRANCH.fullmatch(text)
    if branch is not None:
        text = _value(place.common_dir, branch[1])
    oid = _COMMIT.fullmatch(text)
    return None if oid is None else oid[1].decode("ascii")


def _value(common_dir: str, ref: bytes) -> bytes:
    loose = _read(os.path.join(common_dir, os.fsdecode(ref)))
    if loose is not None:
        return loose
    packed = _read(os.path.join(common_dir, "packed-refs")) or b""
    rows = (line.partition(b" ") for line in packed.splitlines(keepends=True))
    return next((oid + b"\n" for oid, _, name in rows if name == ref + b"\n"), b"")


def _read(path: str) -> bytes | None:
    """Return the bytes of a file: none of one that cannot be read, and None if there is no file."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    except OSError:
        return b""
