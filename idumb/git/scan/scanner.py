"""Scan the working tree and remember the result: a tree object per folder; files are hashed again only if stat changed.

git is never asked what is modified, so assume-unchanged, filters and line endings cannot hide a byte.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence

import pygit2

from idumb.domain import errors, paths
from idumb.domain.paths import IGNORE_FILE
from idumb.git.discover import Repository
from idumb.git.objects import blobs, tree_objects
from idumb.git.objects.object_writer import Writer
from idumb.git.scan import ignores, nested_changes
from idumb.git.scan.walk import NESTED, UNKNOWN, Folder, Forced, Walk
from idumb.system.files import file_systems, user_folders

_ORDINARY = frozenset({0o644, 0o755, 0o664, 0o775})


class Scanner:
    """Scans one working tree. `top` may come from a saved cache; `counted` is the number of files hashed so far.

    `owner` is the repository whose external ignore rules apply, if it is another one (the tree is a clone of it).
    """

    def __init__(
        self, place: Repository, writer: Writer, top: Folder | None = None, owner: Repository | None = None
    ) -> None:
        self._place = place
        self._writer = writer
        self._base = place.root.rstrip("/") + "/"
        self._tracked = ignores.Tracked(place)
        self._owner = owner or place
        self._outside = ignores.outside(self._owner)
        self.top = top or Folder()
        self.rules: ignores.Signature | None = None
        self.index: ignores.Signature | None = None
        self._forced = Forced()
        self._fresh = top is None
        self._first = True
        self.counted = 0
        self._uncovered: set[str] = set()
        self._marked = 0
        self._marked_ignored: tuple[str, ...] = ()

    def mark(self) -> None:
        """From now on, `uncovered` tells which ignored paths existed, and `gone` which disappeared."""
        self._uncovered.clear()
        self._marked_ignored = self.ignored()
        self._marked = self._filesystem_time()

    def left_out(self) -> dict[str, str]:
        """Return path (a folder with `/`) to the reason why the last scan did not save it."""
        found = dict.fromkeys(self.ignored(), paths.IGNORED_BY_GIT)
        for prefix, folder in self.top.below():
            found.update((prefix + name, why) for name, why in folder.skipped.items())
        dirty = (path for path in self._submodules() if nested_changes.is_dirty(self._place.root, path))
        return found | dict.fromkeys(dirty, "uncommitted work in a submodule")

    def ignored(self) -> tuple[str, ...]:
        """Return the paths (folders with `/`) that git ignores, so that the last scan did not save them."""
        found = (
            f"{prefix}{name}{'/' if is_folder else ''}"
            for prefix, folder in self.top.below()
            for name, is_folder in folder.ignored.items()
        )
        return tuple(sorted(path for path in found if os.path.lexists(self._base + path.rstrip("/"))))

    def hidden_by(self, new: frozenset[str], changed: frozenset[str]) -> dict[str, str]:
        """Return path (a folder with `/`) that git ignores to the one of these files whose rule covers it.

        For `changed` files, only paths that were not ignored at the mark.
        """
        asked = self.ignored() if new or changed else ()
        before = frozenset(self._marked_ignored)
        found = ignores.deciding(self._place.root, asked, self._owner)
        return {p: file for p, file in found.items() if file in new or (file in changed and p not in before)}

    def repositories(self) -> tuple[str, ...]:
        """Return the submodules and nested repositories that the last scan met."""
        found = list(self._submodules())
        for prefix, folder in self.top.below():
            found += [prefix + name for name, why in folder.skipped.items() if why == NESTED]
        return tuple(sorted(found))

    def _submodules(self) -> Iterator[str]:
        return (prefix + name for prefix, folder in self.top.below() for name in folder.links)

    def gone(self) -> tuple[str, ...]:
        """Return paths that existed and were ignored at the mark and are missing now. No snapshot has them."""
        return tuple(path for path in self._marked_ignored if not os.path.lexists(self._base + path.rstrip("/")))

    def uncovered(self, path: str) -> bool:
        """Return whether a file is as it was at the mark and is visible only because the rules changed since."""
        above = path
        while above and above not in self._uncovered:
            above = above.rpartition("/")[0]
        return bool(above) and os.lstat(self._base + path).st_ctime_ns < self._marked

    def scan(self, also: Iterable[str] = ()) -> bytes:
        """Return the raw id of the tree of all bytes. Raises Refusal `git.unreadable-file` for unreadable files."""
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
        walk = Walk(self._place, self.top, self._base, self._forced, self._owner)
        walk.known()
        if self._hash_rules(walk) or walk.rules_changed:
            self._reconsider()
            walk = Walk(self._place, self.top, self._base, self._forced, self._owner)
            walk.known()
        while walk.unknown:
            walk.settle(self._tracked)
        if walk.new_rules and not self._fresh:
            # A new .gitignore can also un-ignore paths.
            self._reconsider()
            return self._finish(self._walk_again())
        return self._finish(walk)

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

    def _walk_again(self) -> Walk:
        walk = Walk(self._place, self.top, self._base, self._forced, self._owner)
        walk.known()
        while walk.unknown:
            walk.settle(self._tracked)
        return walk

    def _finish(self, walk: Walk) -> bytes:
        require(self._writer.repository, (f"{self._base}{prefix}{name}" for _, prefix, name in walk.changed))
        now = self._filesystem_time() if walk.changed else 0
        for folder, prefix, name in walk.changed:
            self._hash(folder, prefix, name, now)
        return self._write(walk.visited)

    def _filesystem_time(self) -> int:
        """Return the time that the file system would stamp on a write now.

        A file stamped later may change unnoticed.
        """
        probe = os.path.join(self._place.state_dir, "clock")
        try:
            os.utime(probe)
        except FileNotFoundError:
            user_folders.make_below(self._place.common_dir, os.path.dirname(probe))
            os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            os.utime(probe)
        return os.stat(probe).st_ctime_ns

    def _outside_rules_changed(self) -> bool:
        present = ignores.signature(self._outside.files())
        changed = present != self.rules
        self.rules = present
        return changed

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
        if folder.files.get(name, UNKNOWN)[5] != row:
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
        """Return empty bytes for a folder without files, which git's trees cannot hold."""
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


def _racy(ctime_ns: int, now: int) -> bool:
    # File systems with whole-second timestamps only need a wider margin.
    return ctime_ns + (2_000_000_000 if ctime_ns % 1_000_000_000 == 0 else 0) >= now


def _note(odd: dict[str, int], name: str, bits: int, *, ordinary: bool) -> None:
    if ordinary or bits in _ORDINARY:
        odd.pop(name, None)
    else:
        odd[name] = bits


_BLOCK = 4096  # the least space that a file takes


def require(repository: pygit2.Repository, paths: Iterable[str]) -> None:
    """Raises Refusal `system.full` if the files do not fit, or `git.file-too-large` for a single one.

    Sizes are uncompressed, because nobody knows how well git will compress them. Files that git already has cost
    nothing; they are looked up only if space is short, because that requires reading them.
    """
    found = [(path, status) for path in paths if (status := _status(path)) is not None]
    for path, status in found:
        blobs.require_size(path, status.st_size)
    if not found:
        return
    known = os.statvfs(repository.path)
    left, files = known.f_bavail * known.f_frsize, known.f_favail if known.f_files else None
    if _fits(found, left, files):
        return
    new = [(path, status) for path, status in found if not _is_stored(repository, path, status)]
    if not _fits(new, left, files):
        raise _full(repository.path, new)


def _status(path: str) -> os.stat_result | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) else None


def _need(found: Iterable[tuple[str, os.stat_result]]) -> int:
    return sum(max(status.st_size, _BLOCK) for _, status in found)


def _fits(found: Sequence[tuple[str, os.stat_result]], left: int, files: int | None) -> bool:
    return _need(found) <= left and (files is None or len(found) <= files)


def _is_stored(repository: pygit2.Repository, path: str, status: os.stat_result) -> bool:
    try:
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return pygit2.Oid(blobs.hash_at(folder, os.path.basename(path), status)) in repository.odb
        finally:
            os.close(folder)
    except OSError:
        return False  # gone or unreadable; the scan finds out too


def _full(place: str, new: Sequence[tuple[str, os.stat_result]]) -> errors.Refusal:
    largest = max(new, key=lambda one: one[1].st_size)
    return errors.Refusal(
        "system.full",
        f"Not enough disk space to save the working tree: {len(new)} new or changed files need {_need(new)} bytes;"
        f" the largest is {largest[0]}{file_systems.described(place)}",
        hint="Free disk space, or let git ignore files that need no snapshot; then run the command again",
        details={"path": place, "bytes": _need(new), "files": len(new), "largest": largest[0]},
    )
