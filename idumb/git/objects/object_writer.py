"""The only writer of objects.

Libgit2 writes them unforced, one pass forces them to disk, then they are renamed into place.

libgit2 could force each object itself (ENABLE_FSYNC_GITDIR), at two sequential fsyncs per object. Without that, it must
not write where git looks: a power cut can keep an object's name and lose its bytes, and an empty object stays for good,
because git does not rewrite an object that exists. Objects are therefore written to a folder of this process and
renamed once they are on disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterable, Sequence
from io import IOBase

import pygit2
from pygit2.enums import ObjectType

from idumb.git.discover import Repository
from idumb.git.objects import durable_files
from idumb.system import host_identity
from idumb.system.files import file_systems, user_folders

_LITTLE, _FEW = 1 << 20, 16


class Writer:
    """Writes into the object database of `objects`. After `flush`, the objects are durable and visible to git."""

    def __init__(self, objects: Repository, repository: pygit2.Repository) -> None:
        self._git_folder = objects.common_dir
        self._folder = os.path.join(objects.common_dir, "objects")
        incoming = os.path.join(objects.common_dir, "idumb", "incoming")
        self._beside = os.path.join(incoming, f"{os.getpid()}-{os.urandom(4).hex()}{_space()}")
        self._repository = repository
        self._odb = repository.odb
        self._stores: dict[bool, pygit2.Repository] = {}
        self._begun = False
        self._trusting = True
        self._pending: set[str] = set()
        self._failed: OSError | None = None
        _collect(incoming)

    @property
    def repository(self) -> pygit2.Repository:
        return self._repository

    def blob(self, data: bytes) -> bytes:
        oid = pygit2.hash(data)
        if self._trusting and oid in self._odb and not os.path.exists(self._path(str(oid))):
            # Read packs only: for each packed object that it finds, libgit2 would otherwise touch the whole pack file.
            return oid.raw
        return self._note(self._store().create_blob(data))

    def existing(self, oid: str) -> bool:
        """Force an existing object together with the new ones. Return False if it does not exist."""
        if pygit2.Oid(hex=oid) not in self._odb:
            return False
        self._pending.add(oid)
        return True

    def stream(self, source: IOBase) -> bytes:
        return self._note(self._store().create_blob_fromiobase(source))

    def tree(self, data: bytes) -> bytes:
        return self._note(self._store().odb.write(ObjectType.TREE, data))

    def raw(self, kind: ObjectType, data: bytes) -> bytes:
        """Write an object of any kind, byte for byte, and return its id."""
        return self._note(self._store().odb.write(kind, data))

    def commit(self, tree: bytes, message: str, parents: Sequence[str], *, dated: bool = True) -> str:
        """Write one of idumb's own commits: no hook, no signature, no user identity. Undated commits are repeatable."""
        who = pygit2.Signature("idumb", "idumb@localhost", *(() if dated else (0, 0)))
        ids: list[str | pygit2.Oid] = list(parents)
        # Not rewritten: libgit2 requires the tree and parents to exist.
        store = self._store(trusting=True)
        return self._note(store.create_commit(None, who, who, message, pygit2.Oid(tree), ids)).hex()

    def afresh(self) -> None:
        """From now on, also write objects that exist: the existing ones may be damaged."""
        self._trusting = False

    def flush(self) -> None:
        """Force everything that was written.

        Objects that existed before are forced too, because their writer may not have.

        Raises OSError. A failed fsync is not retried: the system dropped the data, so a retry would falsely succeed.
        Nothing, including a cache, may be built on the unforced objects.
        """
        if self._failed is not None:
            raise self._failed
        try:
            self._flush()
        except OSError as problem:
            self._failed = problem
            raise

    def _flush(self) -> None:
        names, self._pending = self._pending, set()
        written = [name for name in names if os.path.exists(self._path(name, self._beside))]
        new = frozenset(written)
        found = [path for name in names if name not in new and os.path.exists(path := self._path(name))]
        if len(written) + len(found) < len(names):
            self._require_packed(names)
        durable_files.force([*(self._path(name, self._beside) for name in written), *found])
        self._put_in_place(written)
        folders = {os.path.dirname(self._path(name)) for name in written} | {os.path.dirname(path) for path in found}
        if folders:
            durable_files.force([*folders, self._folder])

    def _store(self, *, trusting: bool | None = None) -> pygit2.Repository:
        """Return the repository with a database that writes privately and skips objects that exist."""
        if not self._begun:
            user_folders.make_below(self._git_folder, self._beside)
            self._begun = True
        trusting = self._trusting if trusting is None else trusting
        if trusting not in self._stores:
            beside = pygit2.Odb(self._beside)
            if trusting:
                beside.add_disk_alternate(self._folder)
            if not self._stores:
                self._odb.add_disk_alternate(self._beside)
            self._stores[trusting] = pygit2.Repository(self._repository.path)
            self._stores[trusting].set_odb(beside)
        return self._stores[trusting]

    def _require_packed(self, names: Iterable[str]) -> None:
        """libgit2 sometimes reports success for an object that did not fit on the disk."""
        for name in names:
            if not os.path.exists(self._path(name, self._beside)) and pygit2.Oid(hex=name) not in self._odb:
                room = file_systems.room(self._folder)
                full = room.bytes < _LITTLE or (room.files is not None and room.files < _FEW)
                number = errno.ENOSPC if full else errno.EIO
                raise OSError(number, os.strerror(number), self._path(name))

    def _put_in_place(self, names: Iterable[str]) -> None:
        for name in names:
            source, target = self._path(name, self._beside), self._path(name)
            try:
                os.rename(source, target)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.rename(source, target)

    def close(self) -> None:
        """Remove the folders that held objects before the rename.

        Doing so after each flush would cost a tenth of a task.

        Unflushed objects stay there until this process ends.
        """
        if self._begun:
            with contextlib.suppress(OSError):
                for name in os.listdir(self._beside):
                    os.rmdir(os.path.join(self._beside, name))
                os.rmdir(self._beside)
                self._begun = False

    def _path(self, name: str, folder: str | None = None) -> str:
        return os.path.join(folder or self._folder, name[:2], name[2:])

    def _note(self, oid: pygit2.Oid) -> bytes:
        self._pending.add(str(oid))
        return oid.raw


def _collect(incoming: str) -> None:
    """Remove folders of dead processes. Nothing refers to their objects."""
    with contextlib.suppress(OSError):
        for name in os.listdir(incoming):
            if _is_dead(os.path.join(incoming, name), name):
                shutil.rmtree(os.path.join(incoming, name), ignore_errors=True)


def _is_dead(path: str, name: str) -> bool:
    """A process number from another container proves nothing. Folders older than the last boot have no owner."""
    pid, _, rest = name.partition("-")
    _, mark, space = rest.partition("-")
    if mark and f"-{space}" != _space():
        return os.lstat(path).st_mtime < (host_identity.booted_at() or 0.0)
    return not _lives(pid)


def _space() -> str:
    """Return the process namespace, as the suffix of a folder name."""
    known = host_identity.process_namespace()
    return "" if known is None else "-" + "".join(filter(str.isdigit, known))


def _lives(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, ValueError):
        return True
    return True
