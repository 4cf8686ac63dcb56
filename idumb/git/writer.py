"""The only writer of objects: through libgit2, which forces nothing, and then forced to disk in one go.

libgit2 could force each object by itself (ENABLE_FSYNC_GITDIR), at two fsyncs an object, one after the other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import IOBase

import pygit2
from pygit2.enums import ObjectType

from idumb.git import durable
from idumb.git.discover import Repository


class Writer:
    """Writes into the object database of `objects`. What it wrote is durable after `flush`, not before."""

    def __init__(self, objects: Repository, repository: pygit2.Repository) -> None:
        self._folder = os.path.join(objects.common_dir, "objects")
        self._repository = repository
        self._odb = repository.odb
        self._pending: set[str] = set()

    def blob(self, data: bytes) -> bytes:
        oid = pygit2.hash(data)
        if oid in self._odb and not os.path.exists(self._path(str(oid))):
            # Packed: libgit2 would touch the whole pack file for every object that it finds there.
            return oid.raw
        return self._note(self._repository.create_blob(data))

    def stream(self, source: IOBase) -> bytes:
        return self._note(self._repository.create_blob_fromiobase(source))

    def tree(self, data: bytes) -> bytes:
        return self._note(self._odb.write(ObjectType.TREE, data))

    def commit(self, tree: bytes, message: str, parents: Sequence[str], *, dated: bool = True) -> str:
        """A commit of idumb's own: no hook, no signature, no identity of the user. Undated ones are repeatable."""
        who = pygit2.Signature("idumb", "idumb@localhost", *(() if dated else (0, 0)))
        ids: list[str | pygit2.Oid] = list(parents)
        return self._note(self._repository.create_commit(None, who, who, message, pygit2.Oid(tree), ids)).hex()

    def flush(self) -> None:
        """Force all that was written. An object that was there before is forced too: its writer may not have."""
        names, self._pending = self._pending, set()
        files = [path for name in names if os.path.exists(path := self._path(name))]
        folders = {os.path.dirname(path) for path in files}
        if files:
            durable.force([*files, *folders, self._folder])

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name[:2], name[2:])

    def _note(self, oid: pygit2.Oid) -> bytes:
        self._pending.add(str(oid))
        return oid.raw
