"""Walks the work tree and keeps what it saw: a tree object per folder, files hashed again only when stat changed.

Git is never asked what is modified, so assume-unchanged, filters and line endings cannot hide a byte.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

import pygit2

from idumb.domain import errors
from idumb.git import blobs, ignores, tree_objects
from idumb.git.discover import Repository
from idumb.git.writer import Writer

State = tuple[int, int, int, int, int, bytes]
_UNKNOWN: State = (-1, -1, -1, -1, -1, b"")
_ORDINARY = frozenset({0o644, 0o755, 0o664, 0o775})
# Listing a new folder ahead saves one question to git for each of its levels.
_AHEAD = 500


class Folder:
    """What is known of one folder. `tree` is None when its tree object must be written again.

    files: name -> (ctime_ns, mtime_ns, size, inode, st_mode, row of the tree); ignored: name -> is a folder;
    links: submodule -> row of the tree; odd: permission bits that a umask does not give;
    rules: stat of an ignored .gitignore.
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

    def forget(self, name: str) -> None:
        self.files.pop(name, None)
        self.folders.pop(name, None)
        self.links.pop(name, None)
        self.odd.pop(name, None)
        self.unsteady.discard(name)
        self.tree = None

    def below(self, prefix: str = "") -> Iterator[tuple[str, Folder]]:
        """This folder and all below it, with their paths (`""` or ending in `/`)."""
        stack = [(prefix, self)]
        while stack:
            at, folder = stack.pop()
            yield at, folder
            stack.extend((f"{at}{name}/", child) for name, child in folder.folders.items())


class Scanner:
    """One work tree. `top` may be given from a saved cache; `counted` is how many files were hashed in all."""

    def __init__(self, place: Repository, writer: Writer, top: Folder | None = None) -> None:
        self._place = place
        self._writer = writer
        self._base = place.root.rstrip("/") + "/"
        self._tracked = ignores.Tracked(place)
        self._rule_files: tuple[str, ...] | None = None
        self.top = top or Folder()
        self.rules: ignores.Signature | None = None
        self.index: ignores.Signature | None = None
        self._forced = _Forced()
        self._fresh = top is None
        self._first = True
        self.counted = 0

    def scan(self, also: Iterable[str] = ()) -> bytes:
        """The raw id of the tree of all bytes. Raises Refusal `git.unreadable-file` for what may not be read."""
        widened = self._forced.add(also)
        if self._outside_rules_changed():
            self._reconsider()
        self._reconsider_tracked(widened=widened)
        try:
            top = self._walk()
        except PermissionError as problem:
            raise errors.Refusal(
                "git.unreadable-file",
                f"{os.fsdecode(problem.filename)} cannot be read, so it cannot be saved",
                hint="make it readable, or let git ignore it",
            ) from problem
        self._first = self._fresh = False
        return top

    def _walk(self) -> bytes:
        walk = _Walk(self._place, self.top, self._base, self._forced)
        walk.known()
        if self._hash_rules(walk) or walk.rules_changed:
            self._reconsider()
            walk = _Walk(self._place, self.top, self._base, self._forced)
            walk.known()
        while walk.unknown:
            walk.settle(self._tracked)
        if walk.new_rules and not self._fresh:
            # A new .gitignore can also bring back what was ignored.
            self._reconsider()
            return self._finish(self._walk_again())
        return self._finish(walk)

    def _hash_rules(self, walk: _Walk) -> bool:
        """Whether a known .gitignore holds other rules than before; a new stat alone is no reason to ask again."""
        rules = [item for item in walk.changed if item[2] == ".gitignore"]
        if not rules:
            return False
        before = [folder.files[name][5] for folder, _, name in rules]
        now = self._filesystem_time()
        for folder, prefix, name in rules:
            self._hash(folder, prefix, name, now)
        return before != [folder.files.get(name, _UNKNOWN)[5] for folder, _, name in rules]

    def _walk_again(self) -> _Walk:
        walk = _Walk(self._place, self.top, self._base, self._forced)
        walk.known()
        while walk.unknown:
            walk.settle(self._tracked)
        return walk

    def _finish(self, walk: _Walk) -> bytes:
        now = self._filesystem_time() if walk.changed else 0
        for folder, prefix, name in walk.changed:
            self._hash(folder, prefix, name, now)
        return self._write(walk.visited)

    def _filesystem_time(self) -> int:
        """The time that the file system would stamp on a write now; a file stamped later may change unseen."""
        probe = os.path.join(self._place.state_dir, "clock")
        try:
            os.utime(probe)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(probe), mode=0o700, exist_ok=True)
            os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            os.utime(probe)
        return os.stat(probe).st_ctime_ns

    def _outside_rules_changed(self) -> bool:
        if self._rule_files is None:
            self._rule_files = ignores.rule_files(self._place)
        present = ignores.signature(self._rule_files)
        changed = present != self.rules
        self.rules = present
        return changed

    def _reconsider(self) -> None:
        """Ask git again about what was ignored.

        What was included stays so while this process lives: a rule written in a run must not make a file look deleted.
        """
        if self._first:
            self.top = Folder()
            self._fresh = True
            return
        for _, folder in self.top.below():
            folder.ignored.clear()
            folder.rules = None

    def _reconsider_tracked(self, *, widened: bool) -> None:
        present = self._tracked.signature()
        if present == self.index and not widened:
            return
        self.index = present
        holders = [(prefix, folder) for prefix, folder in self.top.below() if folder.ignored]
        if not holders:
            return
        self._tracked.refresh()
        for prefix, folder in holders:
            for name in [name for name in folder.ignored if self._wanted(prefix + name)]:
                del folder.ignored[name]

    def _wanted(self, path: str) -> bool:
        return self._tracked.holds(path) or self._forced.covers(path)

    def _hash(self, folder: Folder, prefix: str, name: str, now: int) -> None:
        found = blobs.put_path(self._writer, f"{self._base}{prefix}{name}")
        if found is None:
            folder.forget(name)
            return
        self.counted += 1
        status = found.status
        row = tree_objects.line(found.mode, name, found.oid)
        if folder.files.get(name, _UNKNOWN)[5] != row:
            folder.tree = None
        settled = found.steady and not _racy(status.st_ctime_ns, now)
        folder.files[name] = (
            status.st_ctime_ns if settled else -1,
            status.st_mtime_ns,
            status.st_size,
            status.st_ino,
            status.st_mode,
            row,
        )
        _note(folder.odd, name, stat.S_IMODE(status.st_mode), ordinary=found.mode == tree_objects.LINK)
        (folder.unsteady.discard if found.steady else folder.unsteady.add)(name)

    def _write(self, visited: list[tuple[Folder, str, Folder | None, str]]) -> bytes:
        for folder, _prefix, parent, _name in reversed(visited):
            if folder.tree is not None:
                continue
            folder.tree = self._write_tree(folder)
            if parent is not None:
                parent.tree = None
        return self.top.tree or bytes.fromhex(tree_objects.EMPTY_TREE)

    def _write_tree(self, folder: Folder) -> bytes:
        """Empty bytes for a folder without files, which git's trees cannot hold."""
        rows = [state[5] for state in folder.files.values()]
        rows += folder.links.values()
        rows += [
            tree_objects.line(tree_objects.FOLDER, name, child.tree)
            for name, child in folder.folders.items()
            if child.tree
        ]
        if not rows and folder is not self.top:
            return b""
        return self._writer.tree(tree_objects.join(rows))


class _Walk:
    """One pass over the work tree: what changed, what is unknown, every folder seen, parents first."""

    def __init__(self, place: Repository, top: Folder, base: str, forced: _Forced) -> None:
        self._root = place.root
        self._base = base
        self._forced = forced
        self._verdicts: dict[str, bool] = {}
        self.visited: list[tuple[Folder, str, Folder | None, str]] = []
        self.changed: list[tuple[Folder, str, str]] = []
        self.unknown: list[tuple[Folder, str, os.DirEntry[str]]] = []
        self.rules_changed = False
        self.new_rules = False
        self._stack: list[tuple[Folder, str, Folder | None, str]] = [(top, "", None, "")]

    def known(self) -> None:
        """Walk all folders that are known to be included."""
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
            known = files.get(name)
            if known is not None:
                seen += 1
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    self._file_changed(folder, prefix, name)
                    continue
                if (
                    status.st_ctime_ns == known[0]
                    and status.st_mtime_ns == known[1]
                    and status.st_size == known[2]
                    and status.st_ino == known[3]
                    and status.st_mode == known[4]
                ):
                    continue
                if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                    self._file_changed(folder, prefix, name)
                else:
                    self._gone(folder, name)
                    self.unknown.append((folder, prefix, entry))
            elif name in folders and entry.is_dir(follow_symlinks=False):
                seen += 1
                self._stack.append((folders[name], f"{prefix}{name}/", folder, name))
            elif name in ignored and ignored[name] == entry.is_dir(follow_symlinks=False):
                if name == ".gitignore":
                    self._check_rules(folder, prefix)
            else:
                self.unknown.append((folder, prefix, entry))
        if seen != len(files) + len(folders) or folder.links or folder.rules:
            self._drop_missing(folder, {entry.name for entry in entries})

    def _file_changed(self, folder: Folder, prefix: str, name: str) -> None:
        self.changed.append((folder, prefix, name))

    def _gone(self, folder: Folder, name: str) -> None:
        if name == ".gitignore":
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
        if folder.rules is not None and ".gitignore" not in names:
            self.rules_changed = True

    def settle(self, tracked: ignores.Tracked) -> None:
        """Decide about the unknown names, then walk the folders that turned out to be included."""
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
        for folder, prefix, entry in asked:
            if self._verdicts[prefix + entry.name]:
                self._ignore(folder, prefix, entry)
            else:
                self._include(folder, prefix, entry)
        self.known()

    def _special(self, folder: Folder, prefix: str, entry: os.DirEntry[str], tracked: ignores.Tracked) -> bool:
        """Git's own folder, nested repositories, submodules, and what is neither file, link nor folder."""
        name = entry.name
        if name.lower() == ".git":
            return True
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
            folder.skipped[name] = "a repository of its own"
            return True
        commit = checked_out(self._base + path) or recorded
        row = tree_objects.line(tree_objects.SUBMODULE, name, bytes.fromhex(commit))
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
        covered = ignores.ignored(self._root, paths)
        self._verdicts.update((path, path in covered) for path in paths)

    def _ignore(self, folder: Folder, prefix: str, entry: os.DirEntry[str]) -> None:
        if entry.name in folder.folders:
            folder.forget(entry.name)
        folder.ignored[entry.name] = entry.is_dir(follow_symlinks=False)
        if entry.name == ".gitignore":
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
            self.new_rules = self.new_rules or name == ".gitignore"
            self.changed.append((folder, prefix, name))


def _ahead(base: str, folders: list[str]) -> list[str]:
    """Some of what is below new folders, not going into nested repositories or through links."""
    found: list[str] = []
    stack = list(folders)
    while stack and len(found) < _AHEAD:
        folder = stack.pop()
        try:
            with os.scandir(base + folder) as listing:
                entries = list(listing)
        except OSError:
            continue
        if any(entry.name == ".git" for entry in entries):
            continue
        found += [f"{folder}/{entry.name}" for entry in entries]
        stack += [f"{folder}/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False)]
    return found


def checked_out(folder: str) -> str | None:
    """The commit that a submodule's HEAD names, read from its files; None where there is none."""
    try:
        found = pygit2.Repository(folder, pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
        return str(found.head.target)
    except (pygit2.GitError, KeyError, ValueError):
        return None


class _Forced:
    """Paths that are included though ignored, with all below them, and the folders that lead there."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._leading: set[str] = set()

    def add(self, paths: Iterable[str]) -> bool:
        """Whether any of them is new."""
        new = {path.rstrip("/") for path in paths} - self._paths - {""}
        self._paths |= new
        for path in new:
            parts = path.split("/")
            self._leading.update("/".join(parts[:count]) for count in range(1, len(parts)))
        return bool(new)

    def covers(self, path: str) -> bool:
        if not self._paths:
            return False
        if path in self._leading:
            return True
        while path and path not in self._paths:
            path = path.rpartition("/")[0]
        return bool(path)


def _racy(ctime_ns: int, now: int) -> bool:
    # File systems that keep whole seconds only need a wider margin.
    return ctime_ns + (2_000_000_000 if ctime_ns % 1_000_000_000 == 0 else 0) >= now


def _note(odd: dict[str, int], name: str, bits: int, *, ordinary: bool) -> None:
    if ordinary or bits in _ORDINARY:
        odd.pop(name, None)
    else:
        odd[name] = bits
