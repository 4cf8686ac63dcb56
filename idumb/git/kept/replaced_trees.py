"""Deletes trees of names that newer ones replaced, but for the newest few hundred.

Each name replaces the tree that the ref names. Git would keep the old ones for two weeks, and warn of too many loose
objects until then. What names an object contains its id, so it was written later. A tree is deleted only if no object
that was written later names it, unless idumb wrote that object, and no ref does.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from idumb.git import refs
from idumb.git.discover import Repository
from idumb.git.kept import kept_table
from idumb.git.objects import tree_objects

if TYPE_CHECKING:
    import pygit2

RECENT = 500
"""So many stay: another process may be reading one, and the log names one as what to return to."""


def delete(
    place: Repository, repository: pygit2.Repository, replaced: dict[str, None], ours: Collection[str]
) -> set[str]:
    """Take all but the newest out of these trees, and delete them. Return those that are gone.

    `ours` are the loose objects that idumb wrote, and its packs. Raises OSError, ValueError, or Refusal if a tree in
    use cannot be read.
    """
    old = list(replaced)[: max(0, len(replaced) - RECENT)]
    for name in old:
        del replaced[name]
    if not old or os.path.exists(os.path.join(place.common_dir, "logs", refs.ROOTS)):
        return set()  # the user wants the history of our refs
    objects = os.path.join(place.common_dir, "objects")
    written = {name: time for name in old if (time := _written(loose(objects, name))) is not None}
    unused = written.keys() - set(_in_use(place, repository))
    unused -= _named_later(objects, {name: written[name] for name in unused}, ours)
    for name in unused:
        os.unlink(loose(objects, name))
    return unused


def loose(objects: str, name: str) -> str:
    """Return the path of a loose object."""
    return os.path.join(objects, name[:2], name[2:])


def _written(path: str) -> int | None:
    """Return when a file was written, in nanoseconds; None if there is none: git has packed or pruned it."""
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return None


def _in_use(place: Repository, repository: pygit2.Repository) -> Iterator[str]:
    """Yield what refs name, and the trees of names in use but for those in a group: a replaced one is none of these."""
    yield from refs.values(place.common_dir).values()
    for name, oid in refs.own(place.common_dir, refs.PREFIX).items():
        yield oid
        if name.startswith(refs.ROOTS):
            closed = kept_table.tree(repository, bytes.fromhex(oid)).get(kept_table.CLOSED)
            yield from () if closed is None else _trees_of(repository, closed)


def _trees_of(repository: pygit2.Repository, closed: tree_objects.Item) -> Iterator[str]:
    yield closed.oid.hex()
    yield from (part.oid.hex() for part in kept_table.tree(repository, closed.oid).values())


def _named_later(objects: str, written: Mapping[str, int], ours: Collection[str]) -> set[str]:
    """Return those of the trees that an object written later names, or may name because it is in a pack.

    Git refreshes the times of a pack that has what it would write, but not those of the index.
    """
    if not written:
        return set()
    folder = os.path.join(objects, "pack")
    indexes = (name for name in os.listdir(folder) if name.endswith(".idx") and name.removesuffix(".idx") not in ours)
    packed = max((_written(os.path.join(folder, name)) or 0 for name in indexes), default=0)
    named = {name for name, time in written.items() if time <= packed}
    oldest = min(written.values())
    for part in (f"{number:02x}" for number in range(256)):
        with contextlib.suppress(FileNotFoundError), os.scandir(os.path.join(objects, part)) as entries:
            for entry in entries:
                name = part + entry.name
                if name not in ours and name not in written and entry.stat().st_mtime_ns >= oldest:
                    named |= written.keys() & set(_names(entry.path))
    return named


def _names(path: str) -> Iterator[str]:
    """Yield the trees that a loose object names directly."""
    with open(path, "rb") as stream:
        packed = stream.read()
    kind = zlib.decompressobj().decompress(packed, 8).partition(b" ")[0]
    if kind == b"blob":
        return
    content = zlib.decompress(packed).partition(b"\0")[2]
    if kind == b"tree":
        yield from (item.oid.hex() for item in tree_objects.parse(content).values())
    else:  # `tree ID` of a commit, or `object ID` of a tag
        yield content.partition(b"\n")[0].partition(b" ")[2].decode("ascii")
