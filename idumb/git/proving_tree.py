"""The working tree in which checks run: outside the repository, with a git folder of its own, and exactly one tree.

What git ignores, and what the user has not committed, is not in it. It is kept between the tasks of a run and follows
each new tree by the difference, so its cost follows the change. It is made when the first check needs it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import itertools
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pygit2

from idumb.app.ports.checks import Borrowed
from idumb.domain import errors, paths, wording
from idumb.git import git_program, guarded_files, open_repository, provided_paths
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects
from idumb.git.objects.tree_objects import Item
from idumb.git.submodules import Submodules
from idumb.system import clock
from idumb.system.files import private_folders

if TYPE_CHECKING:
    from idumb.git.borrowed_paths import BorrowedPaths
    from idumb.git.converted_files import ConvertedFiles
    from idumb.git.prepared_outputs import Prepared, PreparedOutputs

_WORK = "work"
_MARKER = "verified"
_ATTRIBUTES = ".gitattributes"
_GIT = ".git"
_NO_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
_GRAIN = 20_000_000
"""Nanoseconds by which times of files may be behind the clock."""
_IN_THE_WAY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What the system says of a folder that is missing, is a file or is a link."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_RACY = 20_000_000
"""Nanoseconds: some kernels stamp files only every few milliseconds, so a young file may have changed unseen."""

_NOTHING = Borrowed()

_AT_ONCE = 500
"""Files whose converted bytes are in memory together."""
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"


class _Stamp(NamedTuple):
    """What `lstat` says about a file; it changes with every write, because nobody can set ctime."""

    mode: int
    size: int
    mtime: int
    ctime: int
    inode: int


class _Folders:
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


class ProvingTree:
    """`top` is the folder of this repository's proving trees.

    `cached` tells which untracked paths stay when the tree changes; everything else that is untracked is removed.
    `provided` are ignored paths that it borrows from `lender`, the user's working tree (by default `repository`'s).
    It also has the packages that Node finds in the folders above the lender, if they were there from the beginning.

    After `show`, `unlike` has a sentence if files have other bytes than in a fresh clone, and `missing` one for each
    submodule without files.
    """

    def __init__(
        self,
        repository: Repository,
        top: str,
        cached: Callable[[str], bool] = lambda _: False,
        provided: Sequence[str] = (),
        lender: str | None = None,
        shared: Sequence[str] = (),
    ) -> None:
        self._place = repository
        self._lender = lender or repository.root
        self._packages_above = _packages_above(self._lender)
        self._began = clock.nanoseconds()
        self._outputs: PreparedOutputs | None = None
        self._top = top
        self._cached = cached
        self._provided = tuple(dict.fromkeys((*provided, *shared)))
        self._shared = tuple(shared)
        self._lent: tuple[str, ...] = ()
        self._borrowed: BorrowedPaths | None = None
        self._is_prepared = False
        self._objects = open_repository.repository(repository)
        self._alternates = open_repository.alternates(open_repository.lenders(repository))
        self._folder: tuple[str, int] | None = None
        self._tree: str | None = None
        self._head: str | None = None
        self._files: dict[str, tuple[Item, _Stamp]] = {}
        self._digests: dict[str, bytes] = {}
        self._verified = 0
        self._is_used = False
        self._converts = False
        self._opened: pygit2.Repository | None = None
        self._removed: dict[str, None] = {}
        self._submodules: Submodules | None = None
        self._sparse = self._left_out()
        self._git_files: dict[str, tuple[_Stamp, bytes]] = {}
        self._hides_writes = False
        self._identity: tuple[tuple[int, int], ...] = ()

    @property
    def root(self) -> str:
        """Return the absolute path of the working tree. AssertionError before the first `show`."""
        if self._folder is None:
            raise AssertionError("nothing was shown yet")
        return os.path.join(self._folder[0], _WORK)

    def show(self, tree: str, head: str | None, lent: Sequence[str] = ()) -> Mapping[str, str]:
        """Make the files those of `tree`, on top of the commit `head`, and remove what checks of other trees left.

        `lent` are more paths to borrow, until the next call without them. Return the variables that a check needs.
        """
        borrowed = (*self._provided, *lent)
        if self._folder is None or self._is_used or (tree, head, borrowed) != (self._tree, self._head, self._lent):
            self._show(tree, head)
            self._is_used = False
            self._lent = borrowed
            self._is_prepared = False
            self._borrow(borrowed)
        if not borrowed:
            return {}
        folders = provided_paths.python_path(self._lender, self.root, borrowed)
        return {"PYTHONPATH": os.pathsep.join(folders)} if folders else {}

    def _borrow(self, paths: Sequence[str], prepared: Prepared | None = None) -> None:
        if self._borrowed is None and (paths or self._packages_above or prepared is not None):
            from idumb.git.borrowed_paths import BorrowedPaths

            self._borrowed = BorrowedPaths(self._lender, self.root, self._shared, self._packages_above)
        if self._borrowed is not None:
            self._borrowed.bring(paths, prepared)

    def prepare(self, identity: str, run: Callable[[], None]) -> None:
        """Add what `run` makes of the tree shown, from an earlier time if `identity` and the lock files are the same.

        Without lock files, the whole tree counts. Refusal `checks.prepare` if `run` changes files of the tree.
        """
        if self._is_prepared or self._tree is None:
            return
        from idumb.domain import lock_files
        from idumb.git.prepared_outputs import PreparedOutputs, key

        names = lock_files.among(self._files)
        locks = [f"{name} {self._files[name][0].oid.hex()}" for name in names] or [self._tree]
        if self._outputs is None or self._outputs.root != self.root:
            folder = f"{self._top}/prepared-{os.path.basename(os.path.dirname(self.root))}"
            self._outputs = PreparedOutputs(folder, self.root, self._began - _GRAIN)
        entry = key(self.root, identity, *locks)
        prepared = self._outputs.find(entry, self._tree)
        if prepared is None:
            before = set(self._untracked())
            self._is_used = True  # if it fails or is interrupted, nothing of it stays
            run()
            if changed := self.restore():
                raise errors.Refusal(
                    "checks.prepare",
                    f"checks.prepare changed {wording.listed(changed)}, which the commit holds.",
                    hint="Use a command that installs exactly what the lock file says, such as `npm ci`",
                )
            prepared = self._outputs.keep(entry, self._tree, sorted(set(self._untracked()) - before))
            self._is_used = False
        self._borrow(self._lent, prepared)
        self._is_prepared = True

    def _untracked(self) -> Iterator[str]:
        """Yield the topmost paths that are not in the tree."""
        folders = {folder for path in self._files for folder in paths.folders_above(path)}
        stack = [""]
        while stack:
            prefix = stack.pop()
            for name in os.listdir(os.path.join(self.root, prefix)):
                path = prefix + name
                if path in folders and not os.path.islink(os.path.join(self.root, path)):
                    stack.append(f"{path}/")
                elif (
                    path not in self._files and path != _GIT and not self._cached(path) and not self._cached(f"{path}/")
                ):
                    yield path

    def renew(self) -> None:
        """Make the next `show` remove what earlier checks left, even if it shows the same tree."""
        self._is_used = True

    def _show(self, tree: str, head: str | None) -> None:
        self._place.guard()
        before, self._tree = self._tree, None  # until everything is written, no tree is shown
        if self._folder is None or self._identities()[:2] != self._identity[:2]:
            self._leave()
            self._create()
        self._clear_above()
        if before is None or self._is_replaced() or not self._follow(before, tree, head):
            try:
                self._rebuild(tree, head)
            except OSError as problem:  # a full disk, for example; its name is relative to an open folder, or missing
                raise OSError(problem.errno, problem.strerror, self.root) from problem
        self._tree, self._head = tree, head
        self._verified = self._now()

    def _follow(self, before: str, tree: str, head: str | None) -> bool:
        """Change the files by the difference; return False if all have to be written again."""
        try:
            newest, changed = self._sweep()
            self._make_git_folder(tree, head, is_intact=self._is_git_intact(self._settled()))
            if not self._restore(changed):
                return False
            changes = self._difference(before, tree)
            inside = tuple(f"{path}/" for path in self._kept)
            if any(_is_attributes(path) or f"{path}/".startswith(inside) for path, _ in changes):
                return False
            self._apply(changes, newest)
        except OSError:  # a check removed permissions from folders
            return False
        return True

    @property
    def unlike(self) -> tuple[str, ...]:
        return self._conversion.unlike if self._has_converted else ()

    @property
    def removed(self) -> tuple[str, ...]:
        """Return the untracked files and folders that checks of earlier trees left, and that are gone."""
        return tuple(self._removed)

    @property
    def missing(self) -> tuple[str, ...]:
        return () if self._submodules is None else self._submodules.missing

    @property
    def borrowed(self) -> Borrowed:
        return _NOTHING if self._borrowed is None else self._borrowed.now

    @property
    def _kept(self) -> frozenset[str]:
        return frozenset() if self._borrowed is None else self._borrowed.kept

    def restore(self) -> tuple[str, ...]:
        """Restore the files of the tree that a check changed or removed; return their paths.

        The git folder is rebuilt if the check changed it, because it decides what git runs in the next check.
        """
        if self._is_replaced():
            self._tree = None
            return tuple(sorted(self._files))
        settled = self._settled()
        if self._tree is not None and not self._is_git_intact(settled):
            try:
                self._make_git_folder(self._tree, self._head)
            except OSError:  # a check removed permissions from folders
                self._tree = None
        try:
            with contextlib.closing(self._folders()) as folders:
                suspects = self._suspects(folders, settled)
                changed = [path for path in suspects if self._is_changed(path, folders)]
        except OSError:  # a check removed permissions from folders
            changed, self._tree = [*self._files], None
        if not self._restore(changed):
            self._tree = None  # before the next check, all files are written again
        self._verified = self._now()
        return tuple(sorted(changed))

    def _suspects(self, folders: _Folders, settled: int) -> list[str]:
        """Return the files whose stamp does not show that they are as written."""
        suspects, last, at = list[str](), None, -1
        for path, (_, stamp) in self._files.items():
            folder, _, name = path.rpartition("/")
            try:
                if folder != last:
                    last, at = folder, -1
                    at = folders.at(folder)
                is_certain = at >= 0 and stamp.ctime < settled
                if is_certain and _is_same(os.stat(name, dir_fd=at, follow_symlinks=False), stamp):
                    continue
            except OSError:
                pass
            suspects.append(path)
        return suspects

    def _folders(self) -> _Folders:
        return _Folders(self.root, self._identity[2])

    def _restore(self, paths: Iterable[str]) -> bool:
        """Write files again; return False if that failed, or if attributes of a check converted them."""
        try:
            private_folders.require_no_mounts(self.root)
            with contextlib.closing(self._folders()) as folders:
                for some in _batches((path, self._files[path][0]) for path in paths):
                    converted = self._converted(some)
                    for path, item in some:
                        digest = self._digests.get(path)
                        self._write(path, item, folders, converted)
                        if self._digests.get(path) != digest:
                            return False
        except OSError:  # a check removed permissions from folders
            return False
        return True

    def _settled(self) -> int:
        """Return the time before which a change of a file shows in its stamp, in nanoseconds."""
        return 0 if self._hides_writes else self._verified - _RACY

    def close(self) -> None:
        """Remove it."""
        if self._folder is not None:
            self._leave()
        self._tree, self._files, self._digests, self._opened, self._borrowed = None, {}, {}, None, None

    def _leave(self) -> None:
        """Remove the folder, unless a check moved it or the folder above: another may be at its path."""
        if self._folder is None:
            return
        own = self._identities()[:2] == self._identity[:2]
        (folder, lock), self._folder = self._folder, None
        if not own:
            os.close(lock)
            return
        with contextlib.suppress(OSError):  # the next command removes what is left
            private_folders.unlock(folder, lock)
        for above in (self._top, os.path.dirname(self._top)):
            private_folders.remove_empty(above)

    def _now(self) -> int:
        """Return the file system's own time in nanoseconds, with which it stamps changes."""
        marker = os.path.join(os.path.dirname(self.root), _MARKER)
        if os.path.lexists(marker):
            private_folders.remove_tree(marker)  # a check may have put a link there
        os.close(os.open(marker, _NEW, 0o600))
        return os.lstat(marker).st_ctime_ns

    def _identities(self) -> tuple[tuple[int, int], ...]:
        """Return device and inode of the working tree and of the folders above it that idumb made."""
        folder = os.path.dirname(self.root)
        statuses = [os.lstat(place) for place in (self._top, folder, self.root) if os.path.lexists(place)]
        return tuple((status.st_dev, status.st_ino) for status in statuses)

    def _is_replaced(self) -> bool:
        """Return whether a check moved the working tree, so that its path may now lead to files of the user."""
        return self._identities() != self._identity

    def _clear_above(self) -> None:
        """Remove what checks left beside the working tree, where tools that search upward would find it."""
        above = os.path.dirname(self.root)
        for name in sorted(os.listdir(above)):
            if name not in {_WORK, _MARKER}:
                private_folders.remove_tree(os.path.join(above, name))
        if self._packages_above:
            provided_paths.link_above(self._lender, self.root, self._packages_above)

    def _create(self) -> None:
        """Lock a free folder for it, and remove those that killed processes left."""
        if os.path.islink(self._top):
            os.unlink(self._top)
        for folder in private_folders.abandoned(self._top):
            self._place.guard()
            private_folders.remove(folder)
        self._folder = private_folders.lock(self._top)
        self._hides_writes = private_folders.hides_writes(self._top)
        folder = self._folder[0]
        if os.path.lexists(folder):
            private_folders.remove_tree(folder)
        os.mkdir(folder, 0o700)
        self._identity = self._identities()
        self._borrowed = None

    def _rebuild(self, tree: str, head: str | None) -> None:
        """Write every file into an empty folder; the attributes first, because they decide how others are written."""
        if os.path.lexists(self.root):
            private_folders.remove_tree(self.root)
        os.mkdir(self.root, 0o700)
        self._identity = self._identities()
        if self._borrowed is not None:
            self._borrowed.forget()
        self._files, self._digests, self._submodules = {}, {}, None
        if self._has_converted:
            self._conversion.forget()
        guarded = guarded_files.of_repository(self._place)
        if guarded.converts is None:
            guarded.digests()
        self._converts = bool(guarded.converts)
        self._make_git_folder(tree, head)
        self._apply(self._difference(tree_objects.EMPTY_TREE, tree), 0)

    def _difference(self, old: str, new: str) -> list[tuple[str, Item | None]]:
        """Return the files that differ, and what to write there; those of a submodule come from its own repository."""
        pairs = [*tree_objects.differences(_reader(self._objects), bytes.fromhex(old), bytes.fromhex(new))]
        changes: list[tuple[str, Item | None]] = []
        for path, before, item in pairs:
            if path.endswith("/") or self._is_left_out(path):
                continue
            if before is not None and before.mode == tree_objects.SUBMODULE:
                if self._submodules is not None:
                    self._submodules.forget(path)
                changes += [(known, None) for known in self._files if known.startswith(f"{path}/")]
            files = None
            if item is not None and item.mode == tree_objects.SUBMODULE:
                self._submodules = self._submodules or Submodules(self._place.root)
                files = self._submodules.files(path, item)
            changes += [(path, item)] if files is None else [(path, None), *files]
        return changes

    def _left_out(self) -> frozenset[str]:
        """Return the paths that the user's sparse checkout leaves out before the first builder can do so."""
        if not os.path.lexists(os.path.join(self._place.git_dir, "info", "sparse-checkout")):
            return frozenset()
        listed = git_program.output(self._place.root, ["ls-files", "-t", "-z"])
        rows = (os.fsdecode(row) for row in listed.split(b"\0"))
        return frozenset(row[2:] for row in rows if row.startswith("S "))

    def _is_left_out(self, path: str) -> bool:
        """Return whether the user's sparse checkout leaves a path out, and so the user's files lack it."""
        return (
            bool(self._sparse)
            and (path in self._sparse or any(f"{folder}/" in self._sparse for folder in paths.folders_above(path)))
            and not os.path.lexists(os.path.join(self._place.root, path))
        )

    def _apply(self, changes: Iterable[tuple[str, Item | None]], newest: int) -> None:
        """Write changed files, each with a time of modification after `newest`, in nanoseconds."""
        with contextlib.closing(self._folders()) as folders:
            for path in [path for path, item in changes if item is None]:
                self._files.pop(path, None)
                self._digests.pop(path, None)
                if self._has_converted:
                    self._conversion.forget(path)
                self._remove(path, folders)
            writes = [(path, item) for path, item in changes if item is not None]
            for path, item in writes:
                if _is_attributes(path):
                    self._converts = True
                    self._write(path, item, folders, {}, newest)
            for some in _batches(writes):
                converted = self._converted(some)
                for path, item in some:
                    if not _is_attributes(path) or path in converted:
                        self._write(path, item, folders, converted, newest)

    def _write(self, path: str, item: Item, folders: _Folders, converted: Mapping[str, bytes], newest: int = 0) -> None:
        """Write a file of the tree, in the place of whatever is there."""
        if any(name.lower() == _GIT or name in {"", ".", ".."} for name in path.split("/")):
            raise errors.Refusal("git.unsafe-tree", f"a tree holds the name {path!r}", hint="git fsck")
        folder, _, name = path.rpartition("/")
        at = folders.at(folder, make=True)
        is_file = item.mode not in {tree_objects.SUBMODULE, tree_objects.LINK}
        data = converted.get(path)
        if data is None:
            data = b"" if item.mode == tree_objects.SUBMODULE else self._blob(path, item)
        bits = 0o777 if item.mode == tree_objects.PROGRAM else 0o666
        for is_free in (False, True):
            try:
                if is_file:
                    with open(os.open(name, _NEW, bits, dir_fd=at), "wb") as stream:
                        stream.write(data)
                elif item.mode == tree_objects.LINK:
                    os.symlink(data, os.fsencode(name), dir_fd=at)
                else:
                    os.mkdir(name, dir_fd=at)
                break
            except FileExistsError:
                if is_free:
                    raise
                _remove(name, at)
        stamp = _stamp(os.stat(name, dir_fd=at, follow_symlinks=False))
        if newest and stamp.mtime <= newest:
            os.utime(name, ns=(newest + 1_000_000, newest + 1_000_000), dir_fd=at, follow_symlinks=False)
            stamp = _stamp(os.stat(name, dir_fd=at, follow_symlinks=False))
        self._files[path] = item, stamp
        self._digests[path] = _digest(data)

    @staticmethod
    def _remove(path: str, folders: _Folders) -> None:
        """Remove a file, and the folders that are empty without it."""
        folder, _, name = path.rpartition("/")
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            _remove(name, folders.at(folder))
        with contextlib.suppress(OSError):
            while folder:
                folder, _, name = folder.rpartition("/")
                os.rmdir(name, dir_fd=folders.at(folder))

    def _sweep(self) -> tuple[int, list[str]]:
        """Remove what is not in the tree, except caches.

        Return the newest time of modification of those, and the files of the tree that were changed or removed.
        """
        private_folders.require_no_mounts(self.root)
        with contextlib.closing(self._folders()) as folders:
            missing, suspects, newest = self._swept(folders)
            return newest, [*missing, *(path for path in suspects if self._is_changed(path, folders))]

    def _swept(self, folders: _Folders) -> tuple[Iterable[str], list[str], int]:
        own, kept = {folder for path in self._files for folder in paths.folders_above(path)}, self._kept
        own |= {folder for path in kept for folder in paths.folders_above(path)}
        missing, suspects = dict.fromkeys(self._files), list[str]()
        newest, settled = 0, self._settled()
        stack = [""]
        while stack:
            prefix = stack.pop()
            at = folders.at(prefix.rstrip("/"))
            with os.scandir(at) as entries:
                for entry in list(entries):
                    path = prefix + entry.name
                    known = self._files.get(path)
                    if known is not None:
                        del missing[path]
                        if known[1].ctime >= settled or not _is_same(entry.stat(follow_symlinks=False), known[1]):
                            suspects.append(path)
                        if known[0].mode == tree_objects.SUBMODULE and entry.is_dir(follow_symlinks=False):
                            stack.append(f"{path}/")
                    elif path == _GIT or path in kept:
                        continue
                    elif not entry.is_dir(follow_symlinks=False):
                        if self._cached(path):
                            newest = max(newest, entry.stat(follow_symlinks=False).st_mtime_ns)
                        else:
                            os.unlink(entry.name, dir_fd=at)
                            self._removed[path] = None
                    elif path in own or self._cached(f"{path}/") or self._cached(path):
                        stack.append(f"{path}/")
                    else:
                        _remove(entry.name, at)
                        self._removed[path] = None
        return missing, suspects, newest

    def _is_changed(self, path: str, folders: _Folders) -> bool:
        """Return whether a file differs from the tree; if only its stamp differs, remember that."""
        item, stamp = self._files[path]
        folder, _, name = path.rpartition("/")
        try:
            at = folders.at(folder)
            present = _stamp(os.stat(name, dir_fd=at, follow_symlinks=False))
        except OSError:
            return True
        if item.mode == tree_objects.SUBMODULE:
            return not stat.S_ISDIR(present.mode)
        if stat.S_IFMT(present.mode) != stat.S_IFMT(stamp.mode) or (present.mode ^ stamp.mode) & 0o100:
            return True
        # What was written counts: a check may have changed the attributes by which a checkout converts it.
        data = _present(name, at, item)
        if data is None or _digest(data) != self._digests[path]:
            return True
        if present != stamp and stat.S_ISREG(present.mode):
            # A program may still write into it through shared memory, or it is linked to another file.
            os.unlink(name, dir_fd=at)
            with open(os.open(name, _NEW, stat.S_IMODE(stamp.mode), dir_fd=at), "wb") as stream:
                stream.write(data)
            os.utime(name, ns=(present.mtime, present.mtime), dir_fd=at, follow_symlinks=False)
            present = _stamp(os.stat(name, dir_fd=at, follow_symlinks=False))
        self._files[path] = item, present
        return False

    def _converted(self, files: Sequence[tuple[str, Item]]) -> Mapping[str, bytes]:
        """Return path to bytes where a checkout writes other bytes than the commit holds."""
        if not self._converts:
            return {}
        from idumb.git.converted_files import Shown

        return self._conversion.read(files, Shown(self.root, self._repository, self._submodules, self._blob))

    @property
    def _has_converted(self) -> bool:
        return "_conversion" in self.__dict__

    @functools.cached_property
    def _conversion(self) -> ConvertedFiles:
        from idumb.git.converted_files import ConvertedFiles

        return ConvertedFiles(self._place, self._objects)

    def _blob(self, path: str, item: Item) -> bytes:
        try:
            owner = "" if self._submodules is None else self._submodules.owner(path)
            objects = self._objects if self._submodules is None or not owner else self._submodules[owner].objects
            return bytes(objects[pygit2.Oid(item.oid)].read_raw())
        except KeyError as problem:
            raise errors.Refusal(
                "git.object-missing",
                f"object {item.oid.hex()} of {path} is not in this repository (a partial clone?)",
                hint="git fetch --refetch --no-filter brings everything",
            ) from problem

    @property
    def _repository(self) -> pygit2.Repository:
        """Return the repository of the working tree itself, whose attributes apply."""
        assert self._opened is not None  # noqa: S101 - the git folder is made before any file
        return self._opened

    def _make_git_folder(self, tree: str, head: str | None, *, is_intact: bool = False) -> None:
        """Make HEAD, an index of `tree`, and the tags; make the git folder again if a check changed it.

        It reads the user's objects, and shares no ref, hook or setting.
        """
        git_dir = os.path.join(self.root, _GIT)
        if not is_intact or self._opened is None:
            self._opened = self._new_git_folder(git_dir)
        files = {
            "HEAD": f"{head}\n" if head else "ref: refs/heads/main\n",
            "packed-refs": "".join(self._packed_tags()),
        }
        for name, text in files.items():
            with open(os.path.join(git_dir, name), "w", encoding="utf-8", errors="surrogateescape") as stream:
                stream.write(text)
        shallow = os.path.join(self._place.common_dir, "shallow")
        if os.path.isfile(shallow):
            shutil.copyfile(shallow, os.path.join(git_dir, "shallow"))
        _write_index(self._opened, tree)
        self._git_files = {path: (_stamp(os.lstat(path)), _state(path)) for path in _below(git_dir)}

    def _new_git_folder(self, git_dir: str) -> pygit2.Repository:
        if os.path.lexists(git_dir):
            private_folders.remove_tree(git_dir)
        for folder in ("objects/info", "refs/heads", "refs/tags", "info"):
            os.makedirs(os.path.join(git_dir, folder))
        for name, text in (("HEAD", "ref: refs/heads/main\n"), ("config", _CONFIG)):
            with open(os.path.join(git_dir, name), "w", encoding="ascii") as stream:
                stream.write(text)
        with open(os.path.join(git_dir, "objects", "info", "alternates"), "wb") as alternates:
            alternates.write(self._alternates)
        if self._converts:
            self._conversion.put_into(git_dir)
        return pygit2.Repository(self.root)

    def _is_git_intact(self, settled: int) -> bool:
        """Return whether no check changed the git folder. A check that only lists files with git may do so."""
        try:
            return all(
                _stamp(os.lstat(path)) == stamp and (stamp.ctime < settled or _state(path) == state)
                for path, (stamp, state) in self._git_files.items()
            )
        except OSError:
            return False

    def _packed_tags(self) -> Iterator[str]:
        """Yield lines for tags, from which tools compute versions."""
        yield "# pack-refs with: sorted \n"
        names = sorted(name for name in self._objects.references if name.startswith("refs/tags/"))
        for name in names:
            reference = self._objects.references[name]
            if isinstance(reference.target, pygit2.Oid):
                yield f"{reference.target} {name}\n"


def _write_index(repository: pygit2.Repository, tree: str) -> None:
    """Write an index of `tree`. Raises OSError: libgit2 itself reports a full disk in words only."""
    path = os.path.join(repository.path, "index")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{path}.lock")
    try:
        repository.index.read_tree(pygit2.Oid(hex=tree))
        repository.index.write()
    except pygit2.GitError as problem:
        number = next((n for n in _NO_WRITE if os.strerror(n) in str(problem)), errno.EIO)
        raise OSError(number, os.strerror(number), path) from problem


def _present(name: str, at: int, item: Item) -> bytes | None:
    try:
        if item.mode == tree_objects.LINK:
            return os.readlink(os.fsencode(name), dir_fd=at)
        with open(os.open(name, _OLD, dir_fd=at), "rb") as stream:
            return stream.read()
    except OSError:
        return None


def _remove(name: str, at: int) -> None:
    """Remove what is in a folder under a name, also folders without permissions. Raises FileNotFoundError."""
    try:
        os.unlink(name, dir_fd=at)
    except (IsADirectoryError, PermissionError):  # Linux and macOS say it of a folder
        if not stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
            os.fchmod(at, 0o700)
            os.unlink(name, dir_fd=at)
            return
        with contextlib.suppress(PermissionError):
            os.chmod(name, 0o700, dir_fd=at)
        below = os.open(name, _FOLDER, dir_fd=at)
        try:
            for each in os.listdir(below):
                _remove(each, below)
        finally:
            os.close(below)
        os.rmdir(name, dir_fd=at)


def _batches(files: Iterable[tuple[str, Item]]) -> Iterator[list[tuple[str, Item]]]:
    rest = iter(files)
    while some := list(itertools.islice(rest, _AT_ONCE)):
        yield some


def _below(folder: str) -> Iterator[str]:
    for at, _, names in os.walk(folder):
        yield at
        yield from (os.path.join(at, name) for name in names)


def _state(path: str) -> bytes:
    """Return what a file contains, as a digest, or the names in a folder."""
    if os.path.isdir(path):
        return b"\0".join(map(os.fsencode, sorted(os.listdir(path))))
    with open(path, "rb") as stream:
        return _digest(stream.read())


def _reader(repository: pygit2.Repository) -> Callable[[bytes], Mapping[str, Item]]:
    return functools.partial(tree_objects.rows, repository)


def _packages_above(lender: str) -> tuple[str, ...]:
    """Return the packages in `node_modules` of the folders above a working tree, the nearest folder first."""
    sources = list[str]()
    at = os.path.dirname(lender)
    while at != os.path.dirname(at):
        folder = os.path.join(at, provided_paths.PACKAGES)
        if os.path.isdir(folder):
            sources += provided_paths.packages(folder)
        at = os.path.dirname(at)
    return tuple(sources)


def _stamp(status: os.stat_result) -> _Stamp:
    return _Stamp(status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _is_same(status: os.stat_result, stamp: _Stamp) -> bool:
    """Return whether a file has its stamp. Nobody can set ctime, so the rest is as it was."""
    return status.st_ctime_ns == stamp.ctime and status.st_ino == stamp.inode


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _is_attributes(path: str) -> bool:
    return path.rpartition("/")[2] == _ATTRIBUTES
