"""Scan the working tree and remember the result: a tree object per folder; files are hashed again only if stat changed.

git is never asked what is modified, so assume-unchanged, filters and line endings cannot hide a byte.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable

from idumb.domain import errors
from idumb.domain.paths import IGNORE_FILE
from idumb.git import guarded_files
from idumb.git.discover import Repository
from idumb.git.objects import object_writer, tree_objects
from idumb.git.objects.object_writer import Writer
from idumb.git.objects.tree_objects import FOLDER, Item
from idumb.git.scan import ignores, new_names
from idumb.git.scan.ignores import Forced
from idumb.system.files import private_folders

_ORDINARY = frozenset({0o644, 0o755, 0o664, 0o775})

State = tuple[int, int, int, int, int, bytes]
UNKNOWN: State = (-1, -1, -1, -1, -1, b"")


class Folder:
    """What the scanner remembers of one folder. `tree` is None if its tree object must be written again.

    files: name -> (ctime_ns, mtime_ns, size, inode, st_mode, row of the tree); ignored: name -> is a folder; links:
    submodule -> row of the tree; odd: permission bits that no umask produces; rules: stat of an ignored .gitignore;
    twins: name -> another name that differs only in case, known from the first change in the folder on.
    """

    __slots__ = ("files", "folders", "ignored", "links", "odd", "rules", "skipped", "tree", "twins", "unsteady")

    def __init__(self) -> None:
        self.files: dict[str, State] = {}
        self.folders: dict[str, Folder] = {}
        self.ignored: dict[str, bool] = {}
        self.links: dict[str, bytes] = {}
        self.odd: dict[str, int] = {}
        self.skipped: dict[str, str] = {}
        self.twins: dict[str, str] = {}
        self.unsteady: set[str] = set()
        self.rules: tuple[int, ...] | None = None
        self.tree: bytes | None = None

    @property
    def holds_nothing(self) -> bool:
        """Return whether everything in it is ignored or skipped."""
        return not (self.files or self.folders or self.links)

    def forget(self, name: str) -> None:
        self.files.pop(name, None)
        self.folders.pop(name, None)
        self.links.pop(name, None)
        self.odd.pop(name, None)
        self.unsteady.discard(name)
        self.tree = None

    def below(self) -> list[tuple[str, Folder]]:
        """Return this folder and all folders below it with their paths (`""` or ending in `/`)."""
        folders = [("", self)]
        for at, folder in folders:
            folders += [(f"{at}{name}/", child) for name, child in folder.folders.items()]
        return folders


class Inventory:
    """What a scan found and a tree cannot hold, by path. A path of a folder ends with `/`.

    `caches` are folders that only their own `.gitignore` ignores; `repositories` are submodules and nested ones.
    `special` are pipes, sockets and devices; `twins` map a path to another one that differs only in case.
    """

    def __init__(self, top: Folder) -> None:
        folders = top.below()
        self._folders = folders
        ignored = ((at, item) for at, folder in folders for item in folder.ignored.items())
        self.ignored = tuple(sorted(f"{at}{name}{'/' if is_folder else ''}" for at, (name, is_folder) in ignored))
        self.skipped = {at + name: why for at, folder in folders for name, why in folder.skipped.items()}
        self.submodules = tuple(at + name for at, folder in folders for name in folder.links)
        nested = (path for path, why in self.skipped.items() if why == new_names.NESTED)
        self.special = tuple(sorted(path for path, why in self.skipped.items() if why != new_names.NESTED))
        self.repositories = tuple(sorted([*self.submodules, *nested]))
        self.caches = tuple(sorted(at for at, folder in folders if at and IGNORE_FILE in folder.ignored))
        self.modes = {at + name: bits for at, folder in folders for name, bits in folder.odd.items()}
        self.empty = tuple(sorted(at for at, folder in folders if at and folder.tree == b"" and not folder.folders))
        self.changing = tuple(sorted(at + name for at, folder in folders for name in folder.unsteady))
        self.twins = {at + name: at + other for at, folder in folders for name, other in folder.twins.items()}

    def links(self) -> tuple[str, ...]:
        """Return the symbolic links."""
        files = ((at + name, state[4]) for at, folder in self._folders for name, state in folder.files.items())
        return tuple(sorted(path for path, mode in files if stat.S_ISLNK(mode)))


Visited = tuple[Folder, str, Folder | None, str]
"""A folder, its path with `/`, the folder above it, and its name there."""
NewName = tuple[Folder, str, os.DirEntry[str]]


class Walk:
    """One pass: what changed, what is unknown, and every folder seen, parents first.

    It starts with the folders that are known to be included.
    """

    def __init__(self, place: Repository, top: Folder, base: str, forced: Forced, owner: Repository) -> None:
        self._root = place.root
        self._owner = owner
        self._base = base
        self._forced = forced
        self._verdicts: dict[str, bool] = {}
        self.visited: list[Visited] = []
        self.changed: list[tuple[Folder, str, str]] = []
        self.unknown: list[NewName] = []
        self.rules_changed = False
        self.new_rules = False
        self._stack: list[Visited] = [(top, "", None, "")]
        self._descend()

    def _descend(self) -> None:
        while self._stack:
            folder, prefix, parent, name = self._stack.pop()
            try:
                opened = os.open(self._base + prefix, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except (FileNotFoundError, NotADirectoryError):
                if parent is None:
                    raise
                parent.forget(name)
                continue
            try:
                # From an open folder, the system finds a file by its name instead of its whole path.
                with os.scandir(opened) as listing:
                    self._compare(folder, prefix, list(listing))
            except OSError as problem:
                if isinstance(problem.filename, str):
                    problem.filename = os.path.join(self._base + prefix, problem.filename)
                raise
            finally:
                os.close(opened)
            self.visited.append((folder, prefix, parent, name))

    def _compare(self, folder: Folder, prefix: str, entries: list[os.DirEntry[str]]) -> None:
        files, folders, ignored = folder.files, folder.folders, folder.ignored
        present_count = 0
        folder.skipped.clear()
        for entry in entries:
            name = entry.name
            state = files.get(name)
            if state is not None:
                present_count += 1
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    self.changed.append((folder, prefix, name))
                    continue
                if (
                    status.st_ctime_ns == state[0]
                    and status.st_mtime_ns == state[1]
                    and status.st_size == state[2]
                    and status.st_ino == state[3]
                    and status.st_mode == state[4]
                ):
                    continue
                if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                    self.changed.append((folder, prefix, name))
                else:
                    present_count -= 1  # it is no longer one of the files
                    self._gone(folder, name)
                    self.unknown.append((folder, prefix, entry))
            elif name in folders and entry.is_dir(follow_symlinks=False):
                present_count += 1
                self._stack.append((folders[name], f"{prefix}{name}/", folder, name))
            elif name.lower() == ".git" or (name in ignored and ignored[name] == entry.is_dir(follow_symlinks=False)):
                if name == IGNORE_FILE:
                    self._check_rules(folder, prefix)
            else:
                with contextlib.suppress(FileNotFoundError):
                    entry.stat(follow_symlinks=False)  # some file systems tell the type only while the folder is open
                    self.unknown.append((folder, prefix, entry))
        if present_count != len(files) + len(folders) or folder.links or folder.rules:
            self._drop_missing(folder, {entry.name for entry in entries})

    def _gone(self, folder: Folder, name: str) -> None:
        if name == IGNORE_FILE:
            self.rules_changed = True
        folder.forget(name)

    def _check_rules(self, folder: Folder, prefix: str) -> None:
        present = guarded_files.stat_key(f"{self._base}{prefix}.gitignore")
        if folder.rules is None:
            folder.rules = present
        elif folder.rules != present:
            self.rules_changed = True

    def _drop_missing(self, folder: Folder, names: set[str]) -> None:
        for name in [*(folder.files.keys() - names), *(folder.folders.keys() - names), *(folder.links.keys() - names)]:
            self._gone(folder, name)
        if folder.rules is not None and IGNORE_FILE not in names:
            self.rules_changed = True
        for name in folder.links.keys() & (folder.files.keys() | folder.folders.keys()):
            # Caches of earlier versions can hold a submodule that something else has replaced.
            del folder.links[name]
            folder.tree = None

    def settle(self, tracked: ignores.Tracked) -> None:
        """Decide about the unknown names, then walk the folders that are included."""
        unknown, self.unknown = self.unknown, []
        rest = [item for item in unknown if not self._special(*item, tracked)]
        if rest:
            tracked.refresh()
        undecided: list[NewName] = []
        for item in rest:
            path = item[1] + item[2].name
            if tracked.holds(path) or self._forced.covers(path):
                self._include(*item)
            else:
                undecided.append(item)
        new = [path for _, prefix, entry in undecided if (path := prefix + entry.name) not in self._verdicts]
        self._verdicts.update(new_names.ignored(self._root, self._base, new, self._owner))
        rules: list[NewName] = []
        for folder, prefix, entry in undecided:
            if not self._verdicts[prefix + entry.name]:
                self._include(folder, prefix, entry)
            elif entry.name == IGNORE_FILE and entry.is_file(follow_symlinks=False):
                rules.append((folder, prefix, entry))
            else:
                self._ignore(folder, prefix, entry)
        holders = {id(folder) for folder, _, _ in self.changed} if rules else set()
        for folder, prefix, entry in rules:
            # A file that hides other files must not hide itself.
            empty = id(folder) not in holders and folder.holds_nothing
            if prefix and empty and new_names.is_cache(self._base, prefix, self._owner.root):
                self._ignore(folder, prefix, entry)
            else:
                self._include(folder, prefix, entry)
        self._descend()

    def _special(self, folder: Folder, prefix: str, entry: os.DirEntry[str], tracked: ignores.Tracked) -> bool:
        """Record a submodule or a skipped name. Return whether the entry is either."""
        name = entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        commit = new_names.submodule(self._base, prefix + name, tracked) if is_folder else None
        if commit is None:
            if folder.links.pop(name, None) is not None:
                folder.tree = None
            why = new_names.reason_to_skip(self._base, prefix, entry, tracked)
            if why is not None:
                folder.skipped[name] = why
            return why is not None
        row = object_writer.encoded_row(tree_objects.SUBMODULE, name, bytes.fromhex(commit))
        if folder.links.get(name) != row:
            folder.links[name] = row
            folder.tree = None
        return True

    def _ignore(self, folder: Folder, prefix: str, entry: os.DirEntry[str]) -> None:
        if entry.name in folder.folders:
            folder.forget(entry.name)
        folder.ignored[entry.name] = entry.is_dir(follow_symlinks=False)
        if entry.name == IGNORE_FILE:
            folder.rules = guarded_files.stat_key(f"{self._base}{prefix}.gitignore")

    def _include(self, folder: Folder, prefix: str, entry: os.DirEntry[str]) -> None:
        name = entry.name
        folder.ignored.pop(name, None)
        folder.tree = None
        if entry.is_dir(follow_symlinks=False):
            folder.files.pop(name, None)
            child = folder.folders.setdefault(name, Folder())
            self._stack.append((child, f"{prefix}{name}/", folder, name))
        else:
            folder.folders.pop(name, None)
            self.new_rules = self.new_rules or name == IGNORE_FILE
            self.changed.append((folder, prefix, name))


class Scanner:
    """Scans one working tree. `top` may come from a saved cache; `counted` is the number of files hashed so far.

    `owner` is the repository whose external ignore rules apply, if it is another one (the tree is a clone of it).
    `inventory` is what the last scan found and a tree cannot hold.
    """

    def __init__(
        self, place: Repository, writer: Writer, top: Folder | None = None, owner: Repository | None = None
    ) -> None:
        self._place = place
        self._writer = writer
        self._base = place.root.rstrip("/") + "/"
        self._clock = os.path.join(place.state_dir, "clock")
        self._tracked = ignores.Tracked(place)
        self._owner = owner or place
        self._outside = guarded_files.of_repository(self._owner)
        self.top = top or Folder()
        self.inventory = Inventory(self.top)
        self.rules: guarded_files.Stats | None = None
        self.index: ignores.Signature | None = None
        self._forced = Forced()
        self._fresh = top is None
        self._first = True
        self.counted = 0
        self._unignored: set[str] = set()
        self._marked = 0

    def mark(self) -> None:
        """From now on, `unignored` tells which ignored paths existed."""
        self._unignored.clear()
        self._marked = self._filesystem_time()

    def unignored(self, path: str) -> bool:
        """Return whether a file is as it was at the mark and is visible only because the rules changed since."""
        above = path
        while above and above not in self._unignored:
            above = above.rpartition("/")[0]
        return bool(above) and os.lstat(self._base + path).st_ctime_ns < self._marked

    def scan(self, also: Iterable[str] = ()) -> bytes:
        """Return the raw id of the tree of all bytes. Raises Refusal `git.unreadable-file` for unreadable files."""
        widened = self._forced.add(also)
        rules, index = self._outside.rules(), self._tracked.signature()
        if rules != self.rules:
            self.rules = rules
            self._reconsider()
        if index != self.index or widened:
            self.index = index
            self._include_tracked()
        try:
            tree = self._scan()
        except PermissionError as problem:
            raise errors.Refusal(
                "git.unreadable-file",
                f"{os.fsdecode(problem.filename)} cannot be read, so it cannot be saved",
                hint="make it readable, or let git ignore it",
            ) from problem
        self._first = self._fresh = False
        self.inventory = Inventory(self.top)
        return tree

    def _scan(self) -> bytes:
        walk = self._walk()
        if self._hash_rules(walk) or walk.rules_changed:
            self._reconsider()
            walk = self._walk()
        while walk.unknown:
            walk.settle(self._tracked)
        if walk.new_rules and not self._fresh:
            # A new .gitignore can also un-ignore paths.
            self._reconsider()
            walk = self._walk()
            while walk.unknown:
                walk.settle(self._tracked)
        if walk.changed:
            self._writer.require_space(f"{self._base}{prefix}{name}" for _, prefix, name in walk.changed)
            now = self._filesystem_time()
            for folder, prefix, name in walk.changed:
                self._hash(folder, prefix, name, now)
        return self._write(walk)

    def _walk(self) -> Walk:
        return Walk(self._place, self.top, self._base, self._forced, self._owner)

    def _hash_rules(self, walk: Walk) -> bool:
        """Return whether a known .gitignore has other rules than before.

        A new stat alone is no reason to ask git again.
        """
        rules = [item for item in walk.changed if item[2] == IGNORE_FILE]
        if not rules:
            return False
        before = [folder.files[name][5] for folder, _, name in rules]
        now = self._filesystem_time()
        for folder, prefix, name in rules:
            self._hash(folder, prefix, name, now)
        return before != [folder.files.get(name, UNKNOWN)[5] for folder, _, name in rules]

    def _filesystem_time(self) -> int:
        """Return the time that the file system would stamp on a write now; a later change may go unnoticed."""
        try:
            os.utime(self._clock)
        except FileNotFoundError:
            private_folders.make_below(self._place.common_dir, os.path.dirname(self._clock))
            os.close(os.open(self._clock, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            os.utime(self._clock)
        return os.stat(self._clock).st_ctime_ns

    def _reconsider(self) -> None:
        """Ask git again about the ignored paths.

        Included paths stay included while this process lives: a rule written during a run must not make a file look
        deleted.
        """
        if self._first:
            self.top = Folder()
            self._fresh = True
            return
        for prefix, folder in self.top.below():
            self._unignored.update(prefix + name for name in folder.ignored)
            folder.ignored.clear()
            folder.rules = None

    def _include_tracked(self) -> None:
        """Include ignored paths that are tracked or forced by now."""
        holders = [(prefix, folder) for prefix, folder in self.top.below() if folder.ignored]
        if not holders:
            return
        self._tracked.refresh()
        for prefix, folder in holders:
            for name in [name for name in folder.ignored if self._is_wanted(prefix + name)]:
                del folder.ignored[name]

    def _is_wanted(self, path: str) -> bool:
        return self._tracked.holds(path) or self._forced.covers(path)

    def _hash(self, folder: Folder, prefix: str, name: str, now: int) -> None:
        stored = object_writer.put_path(self._writer, f"{self._base}{prefix}{name}")
        if stored is None:
            folder.forget(name)
            return
        self.counted += 1
        status = stored.status
        row = object_writer.encoded_row(stored.mode, name, stored.oid)
        if folder.files.get(name, UNKNOWN)[5] != row:
            folder.tree = None
        settled = stored.steady and not _racy(status.st_ctime_ns, now)
        folder.files[name] = (
            status.st_ctime_ns if settled else -1,
            status.st_mtime_ns,
            status.st_size,
            status.st_ino,
            status.st_mode,
            row,
        )
        bits = stat.S_IMODE(status.st_mode)
        if stored.mode == tree_objects.LINK or bits in _ORDINARY:
            folder.odd.pop(name, None)
        else:
            folder.odd[name] = bits
        (folder.unsteady.discard if stored.steady else folder.unsteady.add)(name)

    def _write(self, walk: Walk) -> bytes:
        """Write the changed folders, inner ones first. A folder without files has no tree: git cannot hold it."""
        written = []
        for folder, _prefix, parent, _name in reversed(walk.visited):
            if folder.tree is not None:
                continue
            rows = [*(state[5] for state in folder.files.values()), *folder.links.values()]
            below = {name: Item(FOLDER, child.tree) for name, child in folder.folders.items() if child.tree}
            folder.tree = self._writer.tree(below, rows) if rows or below or parent is None else b""
            if parent is not None:
                parent.tree = None
            written.append(folder)
        for folder in written:
            folder.twins = _twins([*folder.files, *folder.folders])
        return self.top.tree or bytes.fromhex(tree_objects.EMPTY_TREE)


def _twins(names: list[str]) -> dict[str, str]:
    """Return each name that differs from another one only in case, with that one."""
    folded = [name.casefold() for name in names]
    if len(set(folded)) == len(names):
        return {}
    by_folded: dict[str, list[str]] = {}
    for name, key in zip(names, folded, strict=True):
        by_folded.setdefault(key, []).append(name)
    return {name: alike[name == alike[0]] for alike in by_folded.values() if len(alike) > 1 for name in alike}


def _racy(ctime_ns: int, now: int) -> bool:
    # File systems with whole-second timestamps only need a wider margin.
    return ctime_ns + (2_000_000_000 if ctime_ns % 1_000_000_000 == 0 else 0) >= now
