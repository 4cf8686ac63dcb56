"""The refs of a repository, told by plain file reading: the user's (branches, tags, stash, remotes, ...), or ours.

Libgit2 goes through all refs one by one; every task looks three times, and some repositories have thousands.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_OWN = "refs/idumb"
# Path of a loose ref to what stat said of it and what it holds, so that an unchanged one is not opened again.
_known: dict[str, tuple[tuple[int, ...], str]] = {}


class _Packed(NamedTuple):
    user: Mapping[str, str]
    own: Mapping[str, str]


def values(common_dir: str) -> Mapping[str, str]:
    """Name to what the ref holds: a commit or tag, or the name of another ref. Raises OSError."""
    # Loose ones first: what git packs meanwhile is then seen in at least one place.
    loose = dict(_loose(common_dir, "refs", but=_OWN))
    return {**_packed(common_dir).user, **loose}


def as_bytes(found: Mapping[str, str]) -> bytes:
    """A line `VALUE NAME` for each ref, in the order of names; a name of git's has no blank in it."""
    return b"".join(os.fsencode(f"{value} {name}\n") for name, value in sorted(found.items()))


def of_bytes(data: bytes) -> Mapping[str, str]:
    """What `as_bytes` made it of."""
    rows = (os.fsdecode(line).partition(" ") for line in data.splitlines())
    return {name: value for value, _, name in rows}


def own(common_dir: str, below: str) -> Mapping[str, str]:
    """The same of idumb's own refs in one folder of theirs, as `refs/idumb/worktrees/main/`."""
    loose = dict(_loose(common_dir, below.rstrip("/")))
    packed = {name: oid for name, oid in _packed(common_dir).own.items() if name.startswith(below)}
    return {**packed, **loose} if packed else loose


def _loose(common_dir: str, folder: str, but: str | None = None) -> Iterator[tuple[str, str]]:
    try:
        with os.scandir(os.path.join(common_dir, folder)) as found:
            entries = list(found)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        name = f"{folder}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if name != but:
                yield from _loose(common_dir, name, but)
        elif not name.endswith(".lock"):
            try:
                yield name, _value(entry)
            except FileNotFoundError:
                continue  # packed or deleted between the two looks


def _value(entry: os.DirEntry[str]) -> str:
    status = os.stat(entry.path)
    seen = (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)
    known = _known.get(entry.path)
    if known is None or known[0] != seen:
        with open(entry.path, "rb") as stream:
            known = (seen, os.fsdecode(stream.read().strip().removeprefix(b"ref: ")))
        _known[entry.path] = known
    return known[1]


def _packed(common_dir: str) -> _Packed:
    path = os.path.join(common_dir, "packed-refs")
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return _Packed({}, {})
    # Git never writes into that file, it puts another one in its place.
    return _read(path, (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))


@functools.lru_cache(maxsize=1)
def _read(path: str, _: tuple[int, ...]) -> _Packed:
    user: dict[str, str] = {}
    ours: dict[str, str] = {}
    with open(path, "rb") as stream:
        for line in stream:
            if line[:1] in (b"#", b"^"):
                continue
            oid, _space, name = os.fsdecode(line).rstrip("\n").partition(" ")
            (ours if name.startswith(f"{_OWN}/") else user)[name] = oid
    return _Packed(user, ours)
