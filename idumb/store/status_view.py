"""What `idumb status` and `next` show, cached as JSON so that they open neither the database nor a plan.

A view is used only while everything it was made from is provably unchanged; any doubt makes it stale. Nothing here may
import more than os, json and zlib: these commands are measured against an empty program.
"""

from __future__ import annotations

import json
import os
import zlib

from idumb.system import atomic_write, clock, private_folders

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know this name
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

SCHEMA = 5
NAME = "status.json"
_JOURNAL = "-journal"
_COUNTER = slice(24, 28)  # SQLite's file change counter: every commit outside write-ahead mode increases it
_FINE = 50_000_000  # nanoseconds by which file times may lag behind the clock
_COARSE = 2_000_000_000  # the same on file systems with a resolution of one or two seconds


def read(folder: str, root: str) -> dict[str, Any] | None:
    """Return the view in `folder` for the working tree at `root`; None if it is missing or not provably current.

    `folder` is `<common dir>/idumb/worktrees/<id>`.
    """
    try:
        # Read the view first and the signature after it: a view cannot know of a later commit.
        with open(os.path.join(folder, NAME), "rb") as stream:
            checksum, _, body = stream.read().partition(b"\n")
        stored = json.loads(body)
        if int(checksum, 16) != zlib.crc32(body) or stored["schema"] != SCHEMA or stored["root"] != root:
            return None
        signatures = stored["seen"]
        if signatures["store"] is False or signatures["store"] != store_signature(_store(folder)):
            return None
        if any(_stat(os.path.join(root, path)) != record for path, record in signatures["inputs"].items()):
            return None
        view: dict[str, Any] = stored["view"]
        return view
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def observe(folder: str, root: str, inputs: Sequence[str]) -> dict[str, Any]:
    """Return the state of all inputs. Call it before reading log and plans, and pass it to `write` afterwards.

    `inputs` are files and folders relative to `root`; a missing one is recorded as missing. For a folder, its names
    count.
    """
    return {
        "store": store_signature(_store(folder)),
        "inputs": {path: _record(os.path.join(root, path)) for path in inputs},
    }


def write(
    folder: str, root: str, view: Mapping[str, Any], inputs: Sequence[str], *, seen: Mapping[str, Any] | None = None
) -> None:
    """Store `view` for `read`. Without `seen`, the caller guarantees that nothing changed since it began to read."""
    observed = observe(folder, root, inputs) if seen is None else seen
    text = json.dumps({"schema": SCHEMA, "root": root, "seen": observed, "view": view}, separators=(",", ":"))
    body = text.encode("ascii")
    private_folders.make(folder)
    # With the checksum, a flipped bit in the file shows.
    data = b"%08x\n" % zlib.crc32(body) + body
    atomic_write.write(os.path.join(folder, NAME), data, durable=False, mode=0o600)


def store_signature(path: str) -> list[int] | bool | None:
    """Return change counter, size and inode of a database; None if there is none, False during a write."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with private_folders.closing(descriptor):
        counter = os.read(descriptor, _COUNTER.stop)[_COUNTER]
        status = os.fstat(descriptor)
    # A journal that is not empty holds an unfinished write, or one that a crash cut short.
    journal = _stat(path + _JOURNAL)
    if journal is not None and journal[0]:
        return False
    return [int.from_bytes(counter, "big"), status.st_size, status.st_ino]


def _store(folder: str) -> str:
    return os.path.join(os.path.dirname(os.path.dirname(folder)), "store.db")


def _stat(path: str) -> list[int] | None:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _record(path: str) -> list[int] | bool | None:
    """Return what shows a later change; False if a change right after it could have the same times."""
    before = _stat(path)
    return False if before is not None and _racy(before) else before


def _racy(stat: Sequence[int]) -> bool:
    newest = max(stat[1], stat[2])
    lag = _COARSE if newest % 1_000_000_000 == 0 else _FINE
    return newest + lag >= clock.nanoseconds()
