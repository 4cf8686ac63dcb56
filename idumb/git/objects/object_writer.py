"""Writes the objects that no git command makes: blobs of idumb, trees that combine others, and objects of agents.

libgit2 forces each to disk before git can see it: a power cut could otherwise keep an object's name and lose its bytes,
and git does not rewrite an object that exists.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

import pygit2
from pygit2.enums import ObjectType

from idumb.domain import errors
from idumb.git.discover import Repository
from idumb.git.objects.tree_objects import Item
from idumb.system.files import file_systems

UNREADABLE = "git.snapshot-unreadable"
_LITTLE, _FEW = 1 << 20, 16
_Packs = tuple[int, frozenset[str]]


class Writer:
    """Writes into the object store of `objects`. Ids are raw."""

    def __init__(self, objects: Repository, repository: pygit2.Repository) -> None:
        self._folder = os.path.join(objects.common_dir, "objects")
        self._repository = repository
        self._packs: _Packs | None = None

    def blob(self, data: bytes) -> bytes:
        return self.raw(ObjectType.BLOB, data)

    def tree(self, items: Mapping[str, Item]) -> bytes:
        return self.raw(ObjectType.TREE, encoded_tree(items))

    def raw(self, kind: ObjectType, data: bytes) -> bytes:
        """Write an object of any kind, byte for byte. Raises OSError if the disk is full."""
        self.see_packs()
        oid = self._repository.odb.write(kind, data)
        name = str(oid)
        # libgit2 sometimes reports success for an object that did not fit on the disk.
        if not os.path.exists(f"{self._folder}/{name[:2]}/{name[2:]}") and oid not in self._repository.odb:
            room = file_systems.room(self._folder)
            if room.bytes < _LITTLE or (room.files is not None and room.files < _FEW):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._folder)
            raise unreadable(name)
        raw: bytes = oid.raw
        return raw

    def has(self, oid: pygit2.Oid) -> bool:
        self.see_packs()
        return oid in self._repository.odb

    def see_packs(self) -> None:
        """Let libgit2 find only what is in packs that exist now.

        It goes on finding objects in a pack that git has removed, and reads them from the open file. If it then did not
        write such an object, a snapshot would lack it.
        """
        packs = _listed(os.path.join(self._folder, "pack"))
        if packs != self._packs:
            self._packs = packs
            self._repository.set_odb(pygit2.Odb(self._folder))


def encoded_tree(items: Mapping[str, Item]) -> bytes:
    """Return the bytes of a tree object. Names are encoded like file names."""
    rows = [(item.mode, os.fsencode(name), item.oid) for name, item in items.items()]
    # Git's order: folders sort as if their names ended with `/`.
    rows.sort(key=lambda row: row[1] + b"/" if row[0] == 0o40000 else row[1])
    return b"".join(b"%o %b\0%b" % row for row in rows)


def unreadable(oid: str) -> errors.Refusal:
    words = f"object {oid} of a snapshot is missing or damaged"
    return errors.Refusal(UNREADABLE, words, hint="git fsck", details={"object": oid})


def _listed(folder: str) -> _Packs:
    """Return what is in a folder of packs, and when that last changed."""
    try:
        return os.stat(folder).st_mtime_ns, frozenset(os.listdir(folder))
    except OSError:
        return 0, frozenset()
