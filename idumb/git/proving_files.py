"""The files of a proving tree: written, compared and removed below folders that are opened without following links."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import IO, NamedTuple, Protocol

from idumb.domain import errors, paths
from idumb.git.objects import tree_objects
from idumb.git.objects.tree_objects import Item
from idumb.system.files import private_folders
from idumb.system.files.stamps import Stamp, facts

Change = tuple[str, Item | None]
"""A path, and what to write there; None removes it."""
_ATTRIBUTES = ".gitattributes"
GIT = ".git"
_IN_THE_WAY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What the system says of a folder that is missing, is a file or is a link."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_PIECE = 1 << 20
"""Bytes of a file that are in memory together."""


class OpenFolders:
    """Open folders of a working tree. Each is opened below the other and is no link, whatever programs put there."""

    def __init__(self, root: str, identity: tuple[int, int]) -> None:
        """Open `root`. Raises OSError if another folder is there."""
        self._open = [("", os.open(root, _FOLDER))]
        status = os.fstat(self._open[0][1])
        if (status.st_dev, status.st_ino) != identity:
            self.close()
            raise NotADirectoryError(errno.ENOTDIR, "the working tree of checks was replaced", root)

    def at(self, folder: str, *, make: bool = False) -> int:
        """Return the descriptor of a folder, valid until the next call. With `make`, replace what is in its way."""
        while (top := self._open[-1][0]) and top != folder and not folder.startswith(f"{top}/"):
            os.close(self._open.pop()[1])
        if top != folder:
            for name in folder[len(top) :].strip("/").split("/"):
                above = self._open[-1][1]
                try:
                    below = os.open(name, _FOLDER, dir_fd=above)
                except OSError as problem:
                    if not make or problem.errno not in _IN_THE_WAY:
                        raise
                    if problem.errno != errno.ENOENT:
                        os.unlink(name, dir_fd=above)
                    os.mkdir(name, dir_fd=above)
                    below = os.open(name, _FOLDER, dir_fd=above)
                top = f"{top}/{name}" if top else name
                self._open.append((top, below))
        return self._open[-1][1]

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop()[1])


class LargeFile(NamedTuple):
    """A file at `path` to copy. If its bytes do not have this digest (SHA-256), those of `otherwise` are written."""

    path: str
    digest: bytes
    otherwise: bytes


Content = bytes | LargeFile


class Contents(Protocol):
    """The bytes of files, with their paths and items, in order."""

    def stored(self, files: Iterable[tuple[str, Item]]) -> Iterator[tuple[str, Item, bytes]]:
        """Yield the bytes that a commit holds."""

    def checked_out(self, files: Iterable[tuple[str, Item]]) -> Iterator[tuple[str, Item, Content]]:
        """Yield what a checkout writes."""


class Swept(NamedTuple):
    """After a sweep: the files of the tree that programs changed or removed, and the `caches` that stayed.

    `newest` is the last time of modification of a file in them, in nanoseconds.
    """

    changed: list[str]
    caches: tuple[str, ...]
    newest: int


class TreeFiles:
    """The files of a tree by path, each with its stamp and a digest of what was written.

    `contents` are the bytes that the user's repository has for them. `removed` are the paths outside the tree that
    were removed, in order.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._written: dict[str, tuple[Item, Stamp]] = {}
        self._digests: dict[str, bytes] = {}
        self._folders: frozenset[str] | None = None
        self.removed: dict[str, None] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __contains__(self, path: str) -> bool:
        return path in self._written

    def item(self, path: str) -> Item:
        return self._written[path][0]

    def folders(self) -> frozenset[str]:
        """Return the folders that hold files of the tree."""
        if self._folders is None:
            self._folders = frozenset(folder for path in self._written for folder in paths.folders_above(path))
        return self._folders

    def clear(self) -> None:
        """Forget all files; nothing is written."""
        self._written, self._digests, self._folders = {}, {}, None

    def apply(self, changes: Sequence[Change], folders: OpenFolders, newest: int) -> None:
        """Write changed files, each with a time of modification after `newest`, in nanoseconds.

        Files of attributes come first, because they decide how a checkout converts others.
        """
        if any(item is None or path not in self._written for path, item in changes):
            self._folders = None
        for path in [path for path, item in changes if item is None]:
            self._written.pop(path, None)
            self._digests.pop(path, None)
            _remove_with_folders(path, folders)
        writes = [(path, item) for path, item in changes if item is not None]
        for path, item, data in self._contents.stored([row for row in writes if is_attributes(row[0])]):
            self._write(path, item, data, folders, newest)
        for path, item, content in self._contents.checked_out(writes):
            if not is_attributes(path) or self._digests[path] != _digest(content):
                self._write(path, item, content, folders, newest)

    def restore(self, changed: Iterable[str], folders: OpenFolders) -> bool:
        """Write files again; return False if attributes of a check converted them."""
        for path, item, data in self._contents.checked_out((path, self._written[path][0]) for path in changed):
            digest = self._digests.get(path)
            self._write(path, item, data, folders)
            if self._digests.get(path) != digest:
                return False
        return True

    def changed(self, folders: OpenFolders, settled: int) -> list[str]:
        """Return the files that differ from the tree.

        A change after `settled`, in nanoseconds, may not show in a stamp.
        """
        suspects, last, at = list[str](), None, -1
        for path, (_, before) in self._written.items():
            folder, _, name = path.rpartition("/")
            try:
                if folder != last:
                    last, at = folder, -1
                    at = folders.at(folder)
                is_certain = at >= 0 and before.ctime < settled
                if is_certain and _is_same(os.stat(name, dir_fd=at, follow_symlinks=False), before):
                    continue
            except OSError:
                pass
            suspects.append(path)
        return [path for path in suspects if self._is_changed(path, folders)]

    def sweep(
        self,
        folders: OpenFolders,
        settled: int,
        kept: Collection[str],
        is_cached: Callable[[str], bool],
        checked: int,
    ) -> Swept:
        """Remove what is not in the tree, except the paths `kept` and caches.

        The last check ended at `checked`, in nanoseconds. What changed in a cache later is removed too, because no
        check made it.
        """
        own = self.folders() | {folder for path in kept for folder in paths.folders_above(path)}
        present, suspects, written = set[str](), list[str](), self._written
        newest, caches, cache_of = 0, dict[str, None](), dict[str, str]()
        stack = [""]
        while stack:
            prefix = stack.pop()
            at = folders.at(prefix.rstrip("/"))
            with os.scandir(at) as entries:
                for entry in list(entries):
                    path = prefix + entry.name
                    if path in written:
                        item, before = written[path]
                        present.add(path)
                        if before.ctime >= settled or not _is_same(entry.stat(follow_symlinks=False), before):
                            suspects.append(path)
                        if item.mode == tree_objects.SUBMODULE and entry.is_dir(follow_symlinks=False):
                            stack.append(f"{path}/")
                        continue
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if path == GIT or path in kept:
                        continue
                    if path in own and is_folder:
                        stack.append(f"{path}/")
                    elif (is_cached(path) or (is_folder and is_cached(f"{path}/"))) and (
                        entry.stat(follow_symlinks=False).st_ctime_ns <= checked
                    ):
                        cache = cache_of.get(prefix, path)
                        if is_folder:
                            cache_of[f"{path}/"] = cache
                            stack.append(f"{path}/")
                        else:
                            caches[cache] = None
                            newest = max(newest, entry.stat(follow_symlinks=False).st_mtime_ns)
                    else:
                        private_folders.remove_at(entry.name, at)
                        self.removed[path] = None
        missing = [path for path in written if path not in present] if len(present) < len(written) else []
        changed = [*missing, *(path for path in suspects if self._is_changed(path, folders))]
        return Swept(changed, tuple(sorted(caches)), newest)

    def _write(self, path: str, item: Item, data: Content, folders: OpenFolders, newest: int = 0) -> None:
        """Write a file of the tree, in the place of whatever is there."""
        if any(name.lower() == GIT or name in {"", ".", ".."} for name in path.split("/")):
            raise errors.Refusal("git.unsafe-tree", f"a tree holds the name {path!r}", hint="git fsck")
        folder, _, name = path.rpartition("/")
        at = folders.at(folder, make=True)
        bits, digest = 0o777 if item.mode == tree_objects.PROGRAM else 0o666, b""
        for is_free in (False, True):
            try:
                if item.mode == tree_objects.SUBMODULE:
                    os.mkdir(name, dir_fd=at)
                elif item.mode == tree_objects.LINK and isinstance(data, bytes):
                    os.symlink(data, os.fsencode(name), dir_fd=at)
                    digest = _digest(data)
                else:
                    with open(os.open(name, _NEW, bits, dir_fd=at), "wb") as stream:
                        digest = _write_into(stream, data)
                break
            except FileExistsError:
                if is_free:
                    raise
                private_folders.remove_at(name, at)
        written = _stamp(name, at)
        if newest and written.mtime <= newest:
            os.utime(name, ns=(newest + 1_000_000, newest + 1_000_000), dir_fd=at, follow_symlinks=False)
            written = _stamp(name, at)
        self._written[path] = item, written
        self._digests[path] = digest

    def _is_changed(self, path: str, folders: OpenFolders) -> bool:
        """Return whether a file differs from the tree; if only its stamp differs, remember that."""
        item, before = self._written[path]
        folder, _, name = path.rpartition("/")
        try:
            at = folders.at(folder)
            present = _stamp(name, at)
        except OSError:
            return True
        if item.mode == tree_objects.SUBMODULE:
            return not stat.S_ISDIR(present.mode)
        if stat.S_IFMT(present.mode) != stat.S_IFMT(before.mode) or (present.mode ^ before.mode) & 0o100:
            return True
        # What was written counts: a check may have changed the attributes by which a checkout converts it.
        digest = self._digests[path]
        try:
            if item.mode == tree_objects.LINK:
                if _digest(os.readlink(os.fsencode(name), dir_fd=at)) != digest:
                    return True
            else:
                with open(os.open(name, _OLD, dir_fd=at), "rb") as stream:
                    if _digest_of(stream) != digest:
                        return True
                    if present != before and not _is_written_anew(name, at, stream, before.mode, digest):
                        return True
                if present != before:
                    os.utime(name, ns=(present.mtime, present.mtime), dir_fd=at, follow_symlinks=False)
                    present = _stamp(name, at)
        except OSError:
            return True
        self._written[path] = item, present
        return False


def _stamp(name: str, at: int) -> Stamp:
    return Stamp(*facts(os.stat(name, dir_fd=at, follow_symlinks=False)))


def is_attributes(path: str) -> bool:
    return path.rpartition("/")[2] == _ATTRIBUTES


def _remove_with_folders(path: str, folders: OpenFolders) -> None:
    """Remove a file, and the folders that are empty without it."""
    folder, _, name = path.rpartition("/")
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        private_folders.remove_at(name, folders.at(folder))
    with contextlib.suppress(OSError):
        while folder:
            folder, _, name = folder.rpartition("/")
            os.rmdir(name, dir_fd=folders.at(folder))


def _is_same(status: os.stat_result, before: Stamp) -> bool:
    """Return whether a file has its stamp. No program can set ctime, so the rest is as it was."""
    return status.st_ctime_ns == before.ctime and status.st_ino == before.inode


def _digest(data: Content) -> bytes:
    return hashlib.sha256(data).digest() if isinstance(data, bytes) else data.digest


def _digest_of(stream: IO[bytes]) -> bytes:
    digest = hashlib.sha256()
    while piece := stream.read(_PIECE):
        digest.update(piece)
    return digest.digest()


def _copy(source: IO[bytes], target: IO[bytes]) -> bytes:
    """Copy a file in pieces; return the digest of what was written."""
    digest = hashlib.sha256()
    while piece := source.read(_PIECE):
        digest.update(piece)
        target.write(piece)
    return digest.digest()


def _is_written_anew(name: str, at: int, stream: IO[bytes], mode: int, digest: bytes) -> bool:
    """Write a file again, in a new one: it may be linked elsewhere, or a program may write into it through memory.

    Return False if what was written has another digest.
    """
    stream.seek(0)
    os.unlink(name, dir_fd=at)
    with open(os.open(name, _NEW, stat.S_IMODE(mode), dir_fd=at), "wb") as copy:
        return _copy(stream, copy) == digest


def _opened(path: str) -> int:
    """Open a file, or an empty one if it cannot be read."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _write_into(stream: IO[bytes], data: Content) -> bytes:
    """Write an empty file; return the digest of what was written."""
    if isinstance(data, LargeFile):
        with open(_opened(data.path), "rb") as source:
            if _copy(source, stream) == data.digest:
                return data.digest
        stream.seek(0)
        stream.truncate()
        data = data.otherwise
    stream.write(data)
    return _digest(data)
