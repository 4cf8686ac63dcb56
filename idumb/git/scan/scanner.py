"""Scan the working tree and remember the result: a tree object per folder; files are hashed again only if stat changed.

git is never asked what is modified, so assume-unchanged, filters and line endings cannot hide a byte.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from idumb.domain import errors
from idumb.domain.paths import IGNORE_FILE
from idumb.git.discover import Repository
from idumb.git.objects import object_writer, tree_objects
from idumb.git.objects.object_writer import Writer
from idumb.git.objects.tree_objects import FOLDER, Item
from idumb.git.scan import ignores, walk
from idumb.git.scan.ignores import Forced
from idumb.git.scan.walk import UNKNOWN, Folder, Walk
from idumb.system.files import user_folders

_ORDINARY = frozenset({0o644, 0o755, 0o664, 0o775})


class Scanner:
    """Scans one working tree. `top` may come from a saved cache; `counted` is the number of files hashed so far.

    `owner` is the repository whose external ignore rules apply, if it is another one (the tree is a clone of it).
    `inventory` is what the last scan met and a tree cannot hold.
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
        self._outside = ignores.outside(self._owner)
        self.top = top or Folder()
        self.inventory = walk.inventory(self.top)
        self.rules: ignores.Signature | None = None
        self.index: ignores.Signature | None = None
        self._forced = Forced()
        self._fresh = top is None
        self._first = True
        self.counted = 0
        self._uncovered: set[str] = set()
        self._marked = 0

    def mark(self) -> None:
        """From now on, `uncovered` tells which ignored paths existed."""
        self._uncovered.clear()
        self._marked = self._filesystem_time()

    def uncovered(self, path: str) -> bool:
        """Return whether a file is as it was at the mark and is visible only because the rules changed since."""
        above = path
        while above and above not in self._uncovered:
            above = above.rpartition("/")[0]
        return bool(above) and os.lstat(self._base + path).st_ctime_ns < self._marked

    def scan(self, also: Iterable[str] = ()) -> bytes:
        """Return the raw id of the tree of all bytes. Raises Refusal `git.unreadable-file` for unreadable files."""
        widened = self._forced.add(also)
        rules, index = ignores.signature(self._outside.files()), self._tracked.signature()
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
        self.inventory = walk.inventory(self.top)
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
            user_folders.make_below(self._place.common_dir, os.path.dirname(self._clock))
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
            self._uncovered.update(prefix + name for name in folder.ignored)
            folder.ignored.clear()
            folder.rules = None

    def _include_tracked(self) -> None:
        """Include ignored paths that are tracked or forced by now."""
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
        for folder, _prefix, parent, _name in reversed(walk.visited):
            if folder.tree is not None:
                continue
            rows = [*(state[5] for state in folder.files.values()), *folder.links.values()]
            below = {name: Item(FOLDER, child.tree) for name, child in folder.folders.items() if child.tree}
            folder.tree = self._writer.tree(below, rows) if rows or below or parent is None else b""
            if parent is not None:
                parent.tree = None
        return self.top.tree or bytes.fromhex(tree_objects.EMPTY_TREE)


def _racy(ctime_ns: int, now: int) -> bool:
    # File systems with whole-second timestamps only need a wider margin.
    return ctime_ns + (2_000_000_000 if ctime_ns % 1_000_000_000 == 0 else 0) >= now
