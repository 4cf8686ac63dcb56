"""The only writer of objects: reads files into blobs, encodes trees, and makes everything durable in one pass.

libgit2 could force each object itself (ENABLE_FSYNC_GITDIR), at two sequential fsyncs per object. Without that, it must
not write where git looks: a power cut can keep an object's name and lose its bytes, and an empty object stays for good,
because git does not rewrite an object that exists. Objects are therefore written to a folder of this process, forced
together, and renamed into place once they are on disk.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from io import IOBase
from typing import NamedTuple

import pygit2
from pygit2.enums import ObjectType

from idumb.domain import errors
from idumb.git.discover import Repository
from idumb.git.objects import durable_files, tree_objects
from idumb.git.objects.tree_objects import FILE, LINK, PROGRAM, Item
from idumb.system import host_identity
from idumb.system.files import file_systems, private_folders

UNREADABLE = "git.snapshot-unreadable"
_TOO_LARGE = 2 << 30
_TRIES = 3
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_Packs = tuple[int, frozenset[str]]
_LITTLE, _FEW = 1 << 20, 16
_BLOCK = 4096  # the least space that a file takes


class Stored(NamedTuple):
    """A stored file: git mode, raw id, the stat from before it was read, and whether it was stable while being read."""

    mode: int
    oid: bytes
    status: os.stat_result
    steady: bool


def encoded_row(mode: int, name: str, oid: bytes) -> bytes:
    """Return one row in the format of a tree object."""
    return b"%o %b\0%b" % (mode, os.fsencode(name), oid)


def encoded_tree(items: Mapping[str, Item], rows: Iterable[bytes] = ()) -> bytes:
    encoded_items = (encoded_row(item.mode, name, item.oid) for name, item in items.items())
    ordered: list[bytes] = sorted([*rows, *encoded_items], key=_sort_key)
    return b"".join(ordered)


def _sort_key(row: bytes) -> bytes:
    """Git's order: folders sort as if their names ended with `/`."""
    mode, _, rest = row.partition(b" ")
    name = rest[: rest.index(b"\0")]
    return name + b"/" if mode == b"40000" else name


class Writer:
    """Writes into the object database of `objects`. After `flush`, the objects are durable and visible to git."""

    def __init__(self, objects: Repository, repository: pygit2.Repository) -> None:
        self._git_folder = objects.common_dir
        self._folder = os.path.join(objects.common_dir, "objects")
        self._beside = private_folder(objects)
        self._repository = repository
        self._stores: dict[bool, pygit2.Repository] = {}
        self._begun = False
        self._trusting = True
        self._pending: set[str] = set()
        self._reused: set[str] = set()
        """Objects that were in a pack already, and are therefore not pending."""
        self.relies_on_packs = False
        """Whether the last flush found objects in packs, and did not write them."""
        self._packs: _Packs | None = None
        self._failed: OSError | None = None
        _collect(os.path.dirname(self._beside))

    def see_packs(self) -> bool:
        """Let libgit2 find only what is in packs that exist now. Return whether there were others before.

        It goes on finding objects in a pack that git has removed, and reads them from the open file. If it then did not
        write such an object, the snapshot would lack it. Packs of a repository that lends objects are not looked at:
        git does not write an object either that it finds there.
        """
        packs = _listed(os.path.join(self._folder, "pack"))
        if packs == self._packs:
            return False
        self._packs = packs
        present = pygit2.Odb(self._folder)
        if self._begun:
            present.add_disk_alternate(self._beside)
        self._repository.set_odb(present)
        self._stores = {}
        return True

    def _begin(self) -> None:
        """The packs are looked at before the first object after each flush, and at the flush itself."""
        if not self._pending and not self._reused:
            self.see_packs()

    def blob(self, data: bytes) -> bytes:
        self._begin()
        oid = pygit2.hash(data)
        if self._trusting and oid in self._repository.odb and not os.path.exists(self._path(str(oid))):
            # Read packs only: for each packed object that it finds, libgit2 would otherwise touch the whole pack file.
            self._reused.add(str(oid))
            return oid.raw
        return self._note(self._store().create_blob(data))

    def existing(self, oid: str) -> bool:
        """Force an existing object together with the new ones. Return False if it does not exist."""
        self._begin()
        if pygit2.Oid(hex=oid) not in self._repository.odb:
            return False
        self._pending.add(oid)
        return True

    def stream(self, source: IOBase) -> bytes:
        return self._note(self._store().create_blob_fromiobase(source))

    def tree(self, items: Mapping[str, Item], rows: Iterable[bytes] = ()) -> bytes:
        """Write a tree of items by name, and of rows that are encoded already."""
        return self._note(self._store().odb.write(ObjectType.TREE, encoded_tree(items, rows)))

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

    def require_space(self, paths: Iterable[str]) -> None:
        """Raises Refusal `system.full` if the files do not fit, or `git.file-too-large` for a single one.

        Sizes are uncompressed, because nobody knows how well git will compress them. Files that git already has cost
        nothing; they are looked up only if space is short, because that requires reading them.
        """
        files = {path: status for path in paths if (status := _plain_status(path)) is not None}
        for path, status in files.items():
            _require_size(path, status.st_size)
        volume = os.statvfs(self._repository.path)
        free_bytes, most = volume.f_bavail * volume.f_frsize, volume.f_favail if volume.f_files else None
        if _fits(files, free_bytes, most):
            return
        new = {path: status for path, status in files.items() if not self._is_stored(path, status)}
        if not _fits(new, free_bytes, most):
            raise _full(self._repository.path, new)

    def _is_stored(self, path: str, status: os.stat_result) -> bool:
        try:
            folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                return pygit2.Oid(hash_at(folder, os.path.basename(path), status)) in self._repository.odb
            finally:
                os.close(folder)
        except OSError:
            return False  # gone or unreadable; the scan finds out too

    def flush(self) -> None:
        """Force everything that was written, and what existed before, because its writer may not have forced it.

        Raises OSError. A failed fsync is not retried: the system dropped the data, so a retry would falsely succeed.
        Nothing, including a cache, may be built on the unforced objects. Refusal `git.snapshot-unreadable` if git has
        removed one that existed.
        """
        if self._failed is not None:
            raise self._failed
        names, self._pending = self._pending, set()
        reused, self._reused = self._reused, set()
        if not names and not reused:
            return
        self.relies_on_packs = bool(reused)
        if self.see_packs():
            self._require_stored(reused)
        try:
            try:
                self._place(names)
            except FileNotFoundError:  # git, or another idumb, has just moved loose objects into a pack
                self._place(names)
        except OSError as problem:
            self._failed = problem
            raise

    def _place(self, names: Collection[str]) -> None:
        beside = {name: path for name in names if os.path.exists(path := self._path(name, self._beside))}
        moves = [(path, self._path(name)) for name, path in beside.items()]
        existing = [path for name in names if name not in beside and os.path.exists(path := self._path(name))]
        if len(moves) + len(existing) < len(names):
            self._require_stored(names)
            self.relies_on_packs = True
        durable_files.force([*beside.values(), *existing])
        for source, target in moves:
            try:
                os.rename(source, target)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.rename(source, target)
        folders = {os.path.dirname(path) for path in (*(target for _, target in moves), *existing)}
        if folders:
            durable_files.force([*folders, self._folder])

    def _store(self, *, trusting: bool | None = None) -> pygit2.Repository:
        """Return the repository with a database that writes privately and skips objects that exist."""
        self._begin()
        if not self._begun:
            private_folders.make_below(self._git_folder, self._beside)
            self._repository.odb.add_disk_alternate(self._beside)
            self._begun = True
        trusting = self._trusting if trusting is None else trusting
        if trusting not in self._stores:
            beside = pygit2.Odb(self._beside)
            if trusting:
                beside.add_disk_alternate(self._folder)
            self._stores[trusting] = pygit2.Repository(self._repository.path)
            self._stores[trusting].set_odb(beside)
        return self._stores[trusting]

    def _require_stored(self, names: Iterable[str]) -> None:
        """libgit2 sometimes reports success for an object that did not fit on the disk."""
        for name in names:
            if not os.path.exists(self._path(name, self._beside)) and pygit2.Oid(hex=name) not in self._repository.odb:
                room = file_systems.room(self._folder)
                if room.bytes < _LITTLE or (room.files is not None and room.files < _FEW):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path(name))
                raise unreadable(name)

    def close(self) -> None:
        """Remove the folders of objects before their rename. After each flush, that would cost a tenth of a task.

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


def unreadable(oid: str) -> errors.Refusal:
    return errors.Refusal(UNREADABLE, f"object {oid} of a snapshot is missing or damaged", hint="git fsck")


def _listed(folder: str) -> _Packs:
    """Return what is in a folder of packs, and when that last changed."""
    try:
        return os.stat(folder).st_mtime_ns, frozenset(os.listdir(folder))
    except OSError:
        return 0, frozenset()


def private_folder(objects: Repository) -> str:
    """Return where this process can write before git may look. A later writer removes it if this process dies."""
    name = f"{os.getpid()}-{os.urandom(4).hex()}{_space()}"
    return os.path.join(objects.common_dir, "idumb", "incoming", name)


def git_mode(st_mode: int) -> int:
    if stat.S_ISLNK(st_mode):
        return LINK
    return PROGRAM if st_mode & 0o100 else FILE


def put_path(writer: Writer, path: str) -> Stored | None:
    """Store what is at an absolute path. Return None if it is gone, or is neither a file nor a link.

    A file that changes while being read is read again. If it never stabilizes, it is reported as not steady.
    """
    for attempt in range(_TRIES):
        try:
            stored = _put_once(writer, path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            # ELOOP (it is now a link) and ENXIO: its type changed since the scan looked at it.
            if attempt == _TRIES - 1:
                raise
            continue
        if stored is None or stored.steady:
            return stored
    return stored


def _put_once(writer: Writer, path: str) -> Stored | None:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        oid = writer.blob(os.fsencode(os.readlink(path)))
        return Stored(LINK, oid, status, steady=_same(status, os.lstat(path)))
    if not stat.S_ISREG(status.st_mode):
        return None
    descriptor = os.open(path, _OPEN)
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            return None
        _require_size(path, before.st_size)
        oid = _put_open(writer, descriptor, before.st_size)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return Stored(git_mode(before.st_mode), oid, before, steady=_same(before, after))


def _require_size(path: str, size: int) -> None:
    if size <= _TOO_LARGE:
        return
    raise errors.Refusal(
        "git.file-too-large",
        f"{path} has {size >> 20} MiB; idumb saves files of up to {_TOO_LARGE >> 20} MiB before it runs a task",
        hint="let git ignore it, or move it out of the working tree",
    )


def _put_open(writer: Writer, descriptor: int, size: int) -> bytes:
    if size <= tree_objects.LARGE:
        # Read one byte more than the size: an unchanged file takes one read, and growth is noticed.
        return writer.blob(os.read(descriptor, size + 1))
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        return writer.stream(stream)


def hash_at(folder: int, name: str, status: os.stat_result) -> bytes:
    """Return the id that the file or link `name` in an open folder would get, without writing it. Raises OSError."""
    if stat.S_ISLNK(status.st_mode):
        return pygit2.hash(os.fsencode(os.readlink(name, dir_fd=folder))).raw
    descriptor = os.open(name, _OPEN, dir_fd=folder)
    try:
        digest = hashlib.sha1(b"blob %d\0" % os.fstat(descriptor).st_size, usedforsecurity=False)
        while chunk := os.read(descriptor, 1 << 20):
            digest.update(chunk)
    finally:
        os.close(descriptor)
    return digest.digest()


def _same(first: os.stat_result, second: os.stat_result) -> bool:
    return (first.st_size, first.st_mtime_ns, first.st_ctime_ns, first.st_ino) == (
        second.st_size,
        second.st_mtime_ns,
        second.st_ctime_ns,
        second.st_ino,
    )


def _plain_status(path: str) -> os.stat_result | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) else None


def _need(files: Mapping[str, os.stat_result]) -> int:
    return sum(max(status.st_size, _BLOCK) for status in files.values())


def _fits(files: Mapping[str, os.stat_result], remaining: int, most: int | None) -> bool:
    return _need(files) <= remaining and (most is None or len(files) <= most)


def _full(place: str, new: Mapping[str, os.stat_result]) -> errors.Refusal:
    largest = max(new, key=lambda path: new[path].st_size)
    return errors.Refusal(
        "system.full",
        f"Not enough disk space to save the working tree: {len(new)} new or changed files need {_need(new)} bytes;"
        f" the largest is {largest}{file_systems.described(place)}",
        hint="Free disk space, or let git ignore files that need no snapshot; then run the command again",
        details={"path": place, "bytes": _need(new), "files": len(new), "largest": largest},
    )


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
    namespace = host_identity.process_namespace()
    return "" if namespace is None else "-" + "".join(filter(str.isdigit, namespace))


def _lives(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, ValueError):
        return True
    return True
