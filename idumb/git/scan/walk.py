"""One pass over the working tree: what changed, what is new, and whether git ignores it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass

import pygit2

from idumb.domain.paths import IGNORE_FILE
from idumb.git.discover import Repository
from idumb.git.objects import object_writer, tree_objects
from idumb.git.scan import cache_folders, ignores

# Listing a new folder ahead saves one question to git per level.
_AHEAD = 500
NESTED = "a repository of its own"

State = tuple[int, int, int, int, int, bytes]
UNKNOWN: State = (-1, -1, -1, -1, -1, b"")


class Folder:
    """What the scanner remembers of one folder. `tree` is None if its tree object must be written again.

    files: name -> (ctime_ns, mtime_ns, size, inode, st_mode, row of the tree); ignored: name -> is a folder; links:
    submodule -> row of the tree; odd: permission bits that no umask produces; rules: stat of an ignored .gitignore.
    """

    __slots__ = ("files", "folders", "ignored", "links", "odd", "rules", "skipped", "tree", "unsteady")

    def __init__(self) -> None:
        self.files: dict[str, State] = {}
        self.folders: dict[str, Folder] = {}
        self.ignored: dict[str, bool] = {}
        self.links: dict[str, bytes] = {}
        self.odd: dict[str, int] = {}
        self.skipped: dict[str, str] = {}
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

    def below(self, prefix: str = "") -> list[tuple[str, Folder]]:
        """Return this folder and all folders below it with their paths (`""` or ending in `/`)."""
        folders = [(prefix, self)]
        for at, folder in folders:
            folders += [(f"{at}{name}/", child) for name, child in folder.folders.items()]
        return folders


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a scan met and a tree cannot hold, by path. A path of a folder ends with `/`.

    `caches` are folders that only their own `.gitignore` ignores; `repositories` are submodules and nested ones.
    """

    ignored: tuple[str, ...]
    skipped: Mapping[str, str]
    submodules: tuple[str, ...]
    repositories: tuple[str, ...]
    caches: tuple[str, ...]
    modes: Mapping[str, int]
    empty: tuple[str, ...]
    changing: tuple[str, ...]


def inventory(top: Folder) -> Inventory:
    ignored: list[str] = []
    skipped: dict[str, str] = {}
    submodules: list[str] = []
    caches: list[str] = []
    modes: dict[str, int] = {}
    empty: list[str] = []
    changing: list[str] = []
    for prefix, folder in top.below():
        ignored += [f"{prefix}{name}{'/' if is_folder else ''}" for name, is_folder in folder.ignored.items()]
        skipped.update((prefix + name, why) for name, why in folder.skipped.items())
        submodules += [prefix + name for name in folder.links]
        modes.update((prefix + name, bits) for name, bits in folder.odd.items())
        changing += [prefix + name for name in folder.unsteady]
        if prefix and IGNORE_FILE in folder.ignored:
            caches.append(prefix)
        if prefix and folder.tree == b"" and not folder.folders:
            empty.append(prefix)
    nested = [path for path, why in skipped.items() if why == NESTED]
    return Inventory(
        ignored=tuple(sorted(ignored)),
        skipped=skipped,
        submodules=tuple(submodules),
        repositories=tuple(sorted([*submodules, *nested])),
        caches=tuple(sorted(caches)),
        modes=modes,
        empty=tuple(sorted(empty)),
        changing=tuple(sorted(changing)),
    )


class Walk:
    """One pass: what changed, what is unknown, and every folder seen, parents first.

    It starts with the folders that are known to be included.
    """

    def __init__(self, place: Repository, top: Folder, base: str, forced: ignores.Forced, owner: Repository) -> None:
        self._root = place.root
        self._owner = owner
        self._base = base
        self._forced = forced
        self._verdicts: dict[str, bool] = {}
        self.visited: list[tuple[Folder, str, Folder | None, str]] = []
        self.changed: list[tuple[Folder, str, str]] = []
        self.unknown: list[tuple[Folder, str, os.DirEntry[str]]] = []
        self.rules_changed = False
        self.new_rules = False
        self._stack: list[tuple[Folder, str, Folder | None, str]] = [(top, "", None, "")]
        self._descend()

    def _descend(self) -> None:
        while self._stack:
            here = self._stack.pop()
            if self._visit(*here[:3]):
                self.visited.append(here)
            elif here[2] is not None:
                here[2].forget(here[3])

    def _visit(self, folder: Folder, prefix: str, parent: Folder | None) -> bool:
        try:
            with os.scandir(self._base + prefix) as listing:
                entries = list(listing)
        except (FileNotFoundError, NotADirectoryError):
            if parent is None:
                raise
            return False
        self._compare(folder, prefix, entries)
        return True

    def _compare(self, folder: Folder, prefix: str, entries: list[os.DirEntry[str]]) -> None:
        files, folders, ignored = folder.files, folder.folders, folder.ignored
        seen = 0
        folder.skipped.clear()
        for entry in entries:
            name = entry.name
            state = files.get(name)
            if state is not None:
                seen += 1
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
                    seen -= 1  # it is no longer one of the files
                    self._gone(folder, name)
                    self.unknown.append((folder, prefix, entry))
            elif name in folders and entry.is_dir(follow_symlinks=False):
                seen += 1
                self._stack.append((folders[name], f"{prefix}{name}/", folder, name))
            elif name.lower() == ".git" or (name in ignored and ignored[name] == entry.is_dir(follow_symlinks=False)):
                if name == IGNORE_FILE:
                    self._check_rules(folder, prefix)
            else:
                self.unknown.append((folder, prefix, entry))
        if seen != len(files) + len(folders) or folder.links or folder.rules:
            self._drop_missing(folder, {entry.name for entry in entries})

    def _gone(self, folder: Folder, name: str) -> None:
        if name == IGNORE_FILE:
            self.rules_changed = True
        folder.forget(name)

    def _check_rules(self, folder: Folder, prefix: str) -> None:
        present = ignores.stat_key(f"{self._base}{prefix}.gitignore")
        if folder.rules is None:
            folder.rules = present
        elif folder.rules != present:
            self.rules_changed = True

    def _drop_missing(self, folder: Folder, names: set[str]) -> None:
        for name in [*(folder.files.keys() - names), *(folder.folders.keys() - names), *(folder.links.keys() - names)]:
            self._gone(folder, name)
        if folder.rules is not None and IGNORE_FILE not in names:
            self.rules_changed = True

    def settle(self, tracked: ignores.Tracked) -> None:
        """Decide about the unknown names, then walk the folders that are included."""
        unknown, self.unknown = self.unknown, []
        rest = [item for item in unknown if not self._special(*item, tracked)]
        if rest:
            tracked.refresh()
        asked: list[tuple[Folder, str, os.DirEntry[str]]] = []
        for item in rest:
            path = item[1] + item[2].name
            if tracked.holds(path) or self._forced.covers(path):
                self._include(*item)
            else:
                asked.append(item)
        self._ask(asked)
        rules: list[tuple[Folder, str, os.DirEntry[str]]] = []
        for folder, prefix, entry in asked:
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
            if prefix and empty and (cache_folders.is_cache(self._base + prefix) or self._is_the_owners(prefix)):
                self._ignore(folder, prefix, entry)
            else:
                self._include(folder, prefix, entry)
        self._descend()

    def _is_the_owners(self, prefix: str) -> bool:
        """Return whether the cloned working tree has the same folder, self-ignored by the same rules."""
        root = self._owner.root
        if root == self._root or not cache_folders.is_in_both(self._base + prefix, f"{root.rstrip('/')}/{prefix}"):
            return False
        return bool(ignores.ignored(root, [f"{prefix}.gitignore"]))

    def _special(self, folder: Folder, prefix: str, entry: os.DirEntry[str], tracked: ignores.Tracked) -> bool:
        """Nested repositories, submodules, and devices, sockets and pipes."""
        name = entry.name
        if entry.is_dir(follow_symlinks=False):
            tracked.refresh()
            return self._nested(folder, prefix, name, tracked)
        if entry.is_file(follow_symlinks=False) or entry.is_symlink():
            return False
        folder.skipped[name] = "neither file, link nor folder"
        return True

    def _nested(self, folder: Folder, prefix: str, name: str, tracked: ignores.Tracked) -> bool:
        path = prefix + name
        recorded = tracked.submodule(path)
        if recorded is None:
            folder.links.pop(name, None)
            if not os.path.lexists(f"{self._base}{path}/.git") or tracked.holds_below(path):
                return False
            folder.skipped[name] = NESTED
            return True
        commit = checked_out(self._base + path) or recorded
        row = object_writer.encoded_row(tree_objects.SUBMODULE, name, bytes.fromhex(commit))
        if folder.links.get(name) != row:
            folder.links[name] = row
            folder.tree = None
        return True

    def _ask(self, items: list[tuple[Folder, str, os.DirEntry[str]]]) -> None:
        paths = [path for _, prefix, entry in items if (path := prefix + entry.name) not in self._verdicts]
        if not paths:
            return
        folders = [p for p in paths if os.path.isdir(self._base + p) and not os.path.islink(self._base + p)]
        paths += _ahead(self._base, folders)
        covered = ignores.ignored(self._root, paths, self._owner)
        self._verdicts.update((path, path in covered) for path in paths)

    def _ignore(self, folder: Folder, prefix: str, entry: os.DirEntry[str]) -> None:
        if entry.name in folder.folders:
            folder.forget(entry.name)
        folder.ignored[entry.name] = entry.is_dir(follow_symlinks=False)
        if entry.name == IGNORE_FILE:
            folder.rules = ignores.stat_key(f"{self._base}{prefix}.gitignore")

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


def _ahead(base: str, folders: list[str]) -> list[str]:
    """Return some of the content below new folders, without entering nested repositories or following links."""
    content: list[str] = []
    stack = list(folders)
    while stack and len(content) < _AHEAD:
        folder = stack.pop()
        try:
            with os.scandir(base + folder) as listing:
                entries = list(listing)
        except OSError:
            continue
        if any(entry.name == ".git" for entry in entries):
            continue
        content += [f"{folder}/{entry.name}" for entry in entries]
        stack += [f"{folder}/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False)]
    return content


def checked_out(folder: str) -> str | None:
    """Return the commit that a submodule's HEAD names, read from its files; None if there is none."""
    try:
        return str(pygit2.Repository(folder, pygit2.enums.RepositoryOpenFlag.NO_SEARCH).head.target)
    except (pygit2.GitError, KeyError, ValueError):
        return None
