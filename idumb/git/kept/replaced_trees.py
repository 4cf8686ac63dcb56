"""Deletes trees of names that newer ones replaced, but for the newest few hundred.

Each name replaces the tree that the ref names. Git would keep the old ones for two weeks, and warn of too many loose
objects until then. A tree is deleted only if no ref and no other object names it. To find out, idumb reads every loose
object, including its own, because a user's folder can be a copy of such a tree. Any later pack may name the tree too.
Only idumb's packs cannot: they include what their objects name.
"""

from __future__ import annotations

import contextlib
import functools
import os
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from idumb.git import refs
from idumb.git.discover import Repository
from idumb.git.kept import kept_table
from idumb.git.objects import tree_objects

if TYPE_CHECKING:
    import pygit2

RECENT = 500
"""So many stay: another process may be reading one, and the log names one as what to return to."""
_START = 4096  # bytes: the kind of an object, and the first line of a commit or a tag, are in so many


def delete(
    place: Repository, repository: pygit2.Repository, replaced: dict[str, None], packs: Collection[str]
) -> set[str]:
    """Take all but the newest out of these trees, and delete them. Return those that are gone.

    `packs` are idumb's. Raises OSError, ValueError, or Refusal if a tree in use or a loose object cannot be read.
    """
    old = list(replaced)[: max(0, len(replaced) - RECENT)]
    for name in old:
        del replaced[name]
    if not old or os.path.exists(os.path.join(place.common_dir, "logs", refs.ROOTS)):
        return set()  # the user wants the history of our refs
    objects = os.path.join(place.common_dir, "objects")
    written = {name: time for name in old if (time := _written(loose(objects, name))) is not None}
    if not written:
        return set()
    unused = written.keys() - _used(objects, written, packs, functools.partial(_in_use, place, repository))
    for name in unused:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(loose(objects, name))
    return unused


def loose(objects: str, name: str) -> str:
    """Return the path of a loose object."""
    return os.path.join(objects, name[:2], name[2:])


def is_name(text: str) -> bool:
    """Return whether a text is the id of an object."""
    return len(text) == 40 and not text.strip("0123456789abcdef")


def _written(path: str) -> int | None:
    """Return when a file was written, in nanoseconds; None if there is none: git has packed or pruned it."""
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return None


def _used(
    objects: str, written: Mapping[str, int], packs: Collection[str], in_use: Callable[[], Iterator[str]]
) -> set[str]:
    """Return those of the trees that are used: what is named by anything but a tree that is not used itself."""
    packed = _newest_pack(os.path.join(objects, "pack"), packs)
    used = {name for name, time in written.items() if time <= packed}
    below: dict[str, set[str]] = {}
    for name, path in _loose_objects(objects):
        named = written.keys() & set(_names(path))
        if name in written:
            below[name] = named
        else:
            used |= named
    used |= written.keys() & set(in_use())  # the last question, because a user may name one meanwhile
    pending = list(used)
    while pending:
        new = below.get(pending.pop(), set()) - used
        used |= new
        pending += new
    return used


def _in_use(place: Repository, repository: pygit2.Repository) -> Iterator[str]:
    """Yield what refs name, or did when git packed them; those of each working tree; and all that our trees name."""
    yield from refs.packed(place.common_dir)
    worktrees = os.path.join(place.common_dir, "worktrees")
    linked = os.listdir(worktrees) if os.path.isdir(worktrees) else []
    for folder in (place.common_dir, *(os.path.join(worktrees, name) for name in linked)):
        yield from refs.values(folder).values()
    for name, oid in refs.own(place.common_dir, refs.PREFIX).items():
        yield oid
        if name.startswith(refs.ROOTS):
            yield from (below.hex() for below in kept_table.everything(repository, oid))


def _newest_pack(folder: str, packs: Collection[str]) -> int:
    """Return when the newest pack came that is none of these. Git does not refresh the time of an index."""
    indexes = (name for name in os.listdir(folder) if name.endswith(".idx") and name.removesuffix(".idx") not in packs)
    return max((_written(os.path.join(folder, name)) or 0 for name in indexes), default=0)


def _loose_objects(objects: str) -> Iterator[tuple[str, str]]:
    """Yield name and path of each loose object."""
    for part in (f"{number:02x}" for number in range(256)):
        with contextlib.suppress(FileNotFoundError):
            folder = os.path.join(objects, part)
            for name in os.listdir(folder):
                if is_name(part + name):
                    yield part + name, os.path.join(folder, name)


def _names(path: str) -> Iterator[str]:
    """Yield the trees that a loose object names directly. Of a file, only its first bytes are read."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as stream:
        packed = stream.read(_START) or b""
        try:
            start = zlib.decompressobj().decompress(packed, _START)
            kind, _, content = start.partition(b"\0")
            if kind.startswith(b"tree "):
                content = zlib.decompress(packed + stream.read()).partition(b"\0")[2]
                yield from (item.oid.hex() for item in tree_objects.parse(content).values())
            elif kind.startswith((b"commit ", b"tag ")):  # `tree ID` of a commit, or `object ID` of a tag
                yield content.partition(b"\n")[0].partition(b" ")[2].decode("ascii")
            elif not kind.startswith(b"blob "):
                message = f"{path} is damaged: what it names is unknown"
                raise ValueError(message)
        except zlib.error as problem:
            message = f"{path} is damaged: {problem}"
            raise ValueError(message) from problem
