"""The working tree in which checks run: outside the repository, with a git folder of its own, and exactly one tree.

What git ignores, and what the user has not committed, is not in it. It is kept between the tasks of a run and follows
each new tree by the difference, so its cost follows the change. It is made when the first check needs it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from idumb.domain import errors, wording
from idumb.git import open_repository, provided_paths
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects
from idumb.git.projects.project_paths import ProjectPaths
from idumb.git.provided_paths import ProvidedCopies
from idumb.git.proving_files import GIT, OpenFolders, TreeFiles, is_attributes
from idumb.git.proving_sources import ProvingContents, ProvingGitFolder
from idumb.system import clock
from idumb.system.files import private_folders

if TYPE_CHECKING:
    from idumb.git.prepared_outputs import Prepared, PreparedOutputs

_WORK = "work"
_MARKER = "verified"


class _Folder:
    """The locked folder of one proving tree, and in it the working tree `root`. `top` is the folder around it.

    A check can move any of them and put links in their place, so each is recognised by its device and inode.
    """

    def __init__(self, top: str, guard: Callable[[], None]) -> None:
        """Lock a free folder, and remove those that killed processes left. `guard` is called before each removal."""
        if os.path.islink(top):
            os.unlink(top)
        for abandoned in private_folders.abandoned(top):
            guard()
            private_folders.remove(abandoned)
        self._top = top
        self._path, self._lock = private_folders.lock(top)
        self._hides_writes = private_folders.hides_writes(top)
        self.checked = 0
        self.root = os.path.join(self._path, _WORK)
        try:
            os.mkdir(self._path, 0o700)
            self._identity = self._identities()
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def is_moved(self) -> bool:
        """Return whether a check moved the folder or the one around it, so that another may be at its path."""
        return self._identities()[:2] != self._identity[:2]

    @property
    def is_replaced(self) -> bool:
        """Return whether a check moved the working tree, so that its path may now lead to files of the user."""
        return self._identities() != self._identity

    @property
    def settled(self) -> int:
        """Return the time before which a change of a file shows in its stamp, in nanoseconds."""
        return 0 if self._hides_writes else self.checked - clock.TICK

    def clear(self) -> bool:
        """Make the working tree an empty folder. Return False if something in it cannot be removed."""
        if not private_folders.try_to_remove(self.root):
            return False
        os.mkdir(self.root, 0o700)
        self._identity = self._identities()
        return True

    def clear_above(self) -> bool:
        """Remove what checks left beside the working tree, where tools that search upward would find it.

        Return False if something cannot be removed.
        """
        names = [name for name in sorted(os.listdir(self._path)) if name not in {_WORK, _MARKER}]
        return all(private_folders.try_to_remove(os.path.join(self._path, name)) for name in names)

    def opened(self) -> contextlib.closing[OpenFolders]:
        """Return the open folders of the working tree. Raises OSError if another folder is there."""
        return contextlib.closing(OpenFolders(self.root, self._identity[2]))

    def note_verified(self) -> None:
        """Remember that every file is as written now, by the time with which the file system stamps changes."""
        marker = os.path.join(self._path, _MARKER)
        if os.path.lexists(marker):
            private_folders.remove_tree(marker)  # a check may have put a link there
        os.close(os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        self.checked = os.lstat(marker).st_ctime_ns

    def leave(self) -> None:
        """Remove the folder, unless a check moved it or the one around it."""
        if self.is_moved:
            os.close(self._lock)
            return
        private_folders.unlock(self._path, self._lock)
        for above in (self._top, os.path.dirname(self._top)):
            private_folders.remove_empty(above)

    def _identities(self) -> tuple[tuple[int, int], ...]:
        """Return device and inode of the folder around, of this one, and of the working tree."""
        statuses = [os.lstat(place) for place in (self._top, self._path, self.root) if os.path.lexists(place)]
        return tuple((status.st_dev, status.st_ino) for status in statuses)


class ProvingTree:
    """`top` is the folder of this repository's proving trees.

    `cached` tells which untracked paths stay when the tree changes; everything else that is untracked is removed.
    `rules` are ignored paths that it copies from `lender`, the user's working tree (by default `repository`'s).

    `folder` is that of the project: `root` is this folder, and paths are relative to it. It exists also if the tree has
    no file there.

    After `show`, `missing` has a sentence for each submodule without files; `cached` are the paths that stayed from an
    earlier tree.
    """

    def __init__(
        self,
        repository: Repository,
        top: str,
        cached: Callable[[str], bool] = lambda _: False,
        rules: Sequence[str] = (),
        lender: str | None = None,
        folder: str = "",
    ) -> None:
        self._place = repository
        self._top = top
        paths = self._paths = ProjectPaths(folder)
        self._is_cached: Callable[[str], bool] = lambda path: paths.has(path) and cached(paths.shown(path))
        self.cached: tuple[str, ...] = ()
        self._lender, self._rules = lender or repository.root, tuple(paths.all_stored(rules))
        self._copies: ProvidedCopies | None = None
        self._prepared_before = _records(top)
        objects = open_repository.repository(repository)
        self._git = ProvingGitFolder(repository)
        self._contents = ProvingContents(repository, objects, self._git)
        self._files = TreeFiles(self._contents)
        self._outputs: PreparedOutputs | None = None
        self._folder: _Folder | None = None
        self._tree: str | None = None
        self._head: str | None = None
        self._is_used = False
        self._is_prepared = False

    @property
    def root(self) -> str:
        """Return the absolute path of the project's folder. AssertionError before the first `show`."""
        return self._paths.root(self._opened.root)

    @property
    def _opened(self) -> _Folder:
        if self._folder is None:
            raise AssertionError("nothing was shown yet")
        return self._folder

    @property
    def unlike(self) -> tuple[str, ...]:
        return self._contents.unlike

    @property
    def missing(self) -> tuple[str, ...]:
        return self._contents.missing

    @property
    def provided(self) -> tuple[str, ...]:
        return () if self._copies is None else self._paths.all_shown(self._copies.provided)

    @property
    def prepared(self) -> tuple[str, ...]:
        return () if self._copies is None else self._paths.all_shown(self._copies.prepared)

    def show(self, tree: str, head: str | None) -> Mapping[str, str]:
        """Make the files those of `tree`, on top of the commit `head`, and remove what checks of other trees left.

        Return the variables that a check needs.
        """
        is_shown = self._folder is not None and (tree, head) == (self._tree, self._head)
        if self._is_used or not is_shown:
            self._is_used = True  # if it is interrupted, nothing of it counts
            self._show(tree, head)
            self._is_prepared = False
            self._bring()
            self._is_used = False
        os.makedirs(self.root, exist_ok=True)
        folders = provided_paths.python_path(self._lender, self._opened.root, self._rules)
        return {"PYTHONPATH": os.pathsep.join(folders)} if folders else {}

    def prepare(self, identity: str, run: Callable[[], None]) -> None:
        """Add what `run` makes of the tree shown, from an earlier time if `identity` and the lock files are the same.

        Without lock files, the whole tree counts. Refusal `checkout.prepare` if `run` changes files of the tree.
        """
        if self._is_prepared or self._tree is None:
            return
        from idumb.domain import lock_files
        from idumb.git.prepared_outputs import PREFIX, PreparedOutputs, key

        names = lock_files.among(self._files)
        locks = [f"{name} {self._files.item(name).oid.hex()}" for name in names] or [self._tree]
        if self._outputs is None or self._outputs.root != self._opened.root:
            folder = f"{self._top}/{PREFIX}{os.path.basename(os.path.dirname(self._opened.root))}"
            self._outputs = PreparedOutputs(folder, self._opened.root, self._prepared_before)
        entry = key(self.root, identity, *locks)  # the same command prepares another folder in another project
        prepared = self._outputs.find(entry, self._tree)
        if prepared is None:
            before = set(self._untracked())
            self._is_used = True  # if it fails or is interrupted, nothing of it stays
            run()
            if changed := self.restore():
                raise errors.Refusal(
                    "checkout.prepare",
                    f"checkout.prepare changed {wording.listed(changed)}, which the commit holds.",
                    hint="Use a command that installs exactly what the lock file says, such as `npm ci`",
                )
            prepared = self._outputs.keep(entry, self._tree, sorted(set(self._untracked()) - before))
            self._is_used = False
        self._bring(prepared)
        self._is_prepared = True

    def _bring(self, prepared: Prepared | None = None) -> None:
        if self._copies is None and (self._rules or prepared is not None):
            self._copies = ProvidedCopies(self._lender, self._opened.root)
        if self._copies is not None:
            before = (*self._copies.provided, *self._copies.prepared)
            self._copies.bring(self._rules, prepared)
            now = (*self._copies.provided, *self._copies.prepared)
            if now != before:
                self._git.hide(now)

    @property
    def _kept(self) -> frozenset[str]:
        return frozenset() if self._copies is None else self._copies.kept

    def _untracked(self) -> Iterator[str]:
        """Yield the topmost paths that are not in the tree."""
        folders = self._files.folders()
        stack = [""]
        while stack:
            prefix = stack.pop()
            for name in os.listdir(os.path.join(self._opened.root, prefix)):
                path = prefix + name
                if path in folders and not os.path.islink(os.path.join(self._opened.root, path)):
                    stack.append(f"{path}/")
                elif (
                    path not in self._files
                    and path != GIT
                    and not self._is_cached(path)
                    and not self._is_cached(f"{path}/")
                ):
                    yield path

    def renew(self) -> None:
        """Make the next `show` remove what earlier checks left, even if it shows the same tree."""
        self._is_used = True

    def restore(self) -> tuple[str, ...]:
        """Restore the files of the tree that a check changed or removed; return their paths.

        The git folder is rebuilt if the check changed it, because it decides what git runs in the next check.
        """
        folder = self._opened
        if folder.is_replaced:
            self._tree = None
            return self._paths.all_shown(sorted(self._files))
        settled = folder.settled
        if self._tree is not None and not self._git.is_intact(settled):
            try:
                self._git.write(folder.root, self._tree, self._head, self._contents.configure)
            except OSError:  # a check removed permissions from folders
                self._tree = None
        try:
            with folder.opened() as folders:
                changed = self._files.changed(folders, settled)
        except OSError:  # a check removed permissions from folders
            changed, self._tree = [*self._files], None
        if not self._restore(changed):
            self._tree = None  # before the next check, all files are written again
        folder.note_verified()
        return self._paths.all_shown(sorted(changed))

    def close(self) -> None:
        """Remove it."""
        self._leave()
        self._tree = None
        self._files.clear()
        self._git.close()
        self._copies = None

    def _leave(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.leave()

    def _show(self, tree: str, head: str | None) -> None:
        self._place.guard()
        before, self._tree = self._tree, None  # no tree is shown until all files are written
        if self._folder is None or self._folder.is_moved or not self._folder.clear_above():
            self._move()
            before = None
        if before is None or self._opened.is_replaced or not self._follow(before, tree, head):
            try:
                self._rebuild(tree, head)
            except OSError as problem:  # a full disk, for example; its name is relative to an open folder, or missing
                place = self._top if self._folder is None else self._folder.root
                raise OSError(problem.errno, problem.strerror, place) from problem
        self._tree, self._head = tree, head
        self._opened.note_verified()

    def _move(self) -> None:
        """Leave the folder, if there is one, and lock another."""
        self._leave()
        self._folder = _Folder(self._top, self._place.guard)
        self._copies = None

    def _follow(self, before: str, tree: str, head: str | None) -> bool:
        """Change the files by the difference; return False if all have to be written again."""
        folder = self._opened
        try:
            private_folders.require_no_mounts(folder.root)
            with folder.opened() as folders:
                swept = self._files.sweep(folders, folder.settled, self._kept, self._is_cached, folder.checked)
            self.cached = self._paths.all_shown(swept.caches)
            is_intact = self._git.is_intact(folder.settled)
            self._git.write(folder.root, tree, head, self._contents.configure, is_intact=is_intact)
            if not self._restore(swept.changed):
                return False
            changes = self._contents.difference(before, tree, self._files)
            inside = tuple(f"{path}/" for path in self._kept)
            if any(is_attributes(path) or f"{path}/".startswith(inside) for path, _ in changes):
                return False
            self._contents.note(changes)
            with folder.opened() as folders:
                self._files.apply(changes, folders, swept.newest)
        except OSError:  # a check removed permissions from folders
            return False
        return True

    def _rebuild(self, tree: str, head: str | None) -> None:
        """Write every file into an empty folder."""
        if not self._opened.clear():  # a check mounted something, or left files of another user
            self._move()
            self._opened.clear()
        folder, self.cached = self._opened, ()
        if self._copies is not None:
            self._copies.forget()
        self._files.clear()
        self._contents.restart()
        self._git.write(folder.root, tree, head, self._contents.configure)
        changes = self._contents.difference(tree_objects.EMPTY_TREE, tree, ())
        self._contents.note(changes)
        with folder.opened() as folders:
            self._files.apply(changes, folders, 0)

    def _restore(self, paths: Iterable[str]) -> bool:
        """Write files again; return False if that failed, or if attributes of a check converted them."""
        try:
            private_folders.require_no_mounts(self._opened.root)
            with self._opened.opened() as folders:
                return self._files.restore(paths, folders)
        except OSError:  # a check removed permissions from folders
            return False


def _records(top: str) -> Mapping[str, bytes]:
    """Return what says which outputs of `checkout.prepare` earlier commands kept; most projects have none."""
    if not os.path.isdir(top):
        return {}
    from idumb.git import prepared_outputs

    return prepared_outputs.records(top)
