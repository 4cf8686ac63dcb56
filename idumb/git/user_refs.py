"""The user's branches, tags and stash, told by plain file reading.

Libgit2 goes through all refs, idumb's own too; of those every task makes some, and every task looks three times.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping

_FOLDERS = ("refs/heads", "refs/tags")
_STASH = "refs/stash"


def values(common_dir: str) -> Mapping[str, str]:
    """Name to what the ref holds: a commit or tag, or the name of another ref. Raises OSError."""
    # Loose ones first: what git packs meanwhile is then seen in at least one place.
    loose = dict(_loose(common_dir))
    return {**_packed(common_dir), **loose}


def _loose(common_dir: str) -> Iterator[tuple[str, str]]:
    for name in _names(common_dir):
        try:
            with open(os.path.join(common_dir, name), "rb") as stream:
                yield name, os.fsdecode(stream.read().strip().removeprefix(b"ref: "))
        except FileNotFoundError:
            continue  # packed or deleted between the two looks


def _names(common_dir: str) -> Iterator[str]:
    for folder in _FOLDERS:
        for here, _, files in os.walk(os.path.join(common_dir, folder)):
            below = os.path.relpath(here, common_dir)
            yield from (f"{below}/{name}" for name in files if not name.endswith(".lock"))
    if os.path.lexists(os.path.join(common_dir, _STASH)):
        yield _STASH


def _packed(common_dir: str) -> Mapping[str, str]:
    path = os.path.join(common_dir, "packed-refs")
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return {}
    # Git never writes into that file, it puts another one in its place.
    return _read(path, (found.st_ino, found.st_size, found.st_mtime_ns))


@functools.lru_cache(maxsize=1)
def _read(path: str, _: tuple[int, int, int]) -> Mapping[str, str]:
    with open(path, "rb") as stream:
        rows = (os.fsdecode(line).rstrip("\n").partition(" ") for line in stream if line[:1] not in (b"#", b"^"))
        return {name: oid for oid, _, name in rows if name == _STASH or name.startswith(("refs/heads/", "refs/tags/"))}
