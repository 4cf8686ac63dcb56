"""Trees of a working tree's bytes, made by git in a git folder of our own.

The folder has an index, a configuration and attributes of its own, and shares only the object store with the user's. So
no flag of the user's index hides an edit, no filter or line ending changes a byte, no hook runs, and the user's index
stays as it is. Our index begins with what the user's index says, and remembers what was scanned for the next process.

In a checkout, the folder is that of the checkout: filters and line endings apply there, and its index begins with the
files of the tree that is shown.

A working tree moves while it is scanned. A file that vanishes is left out. If git still fails at a path, the scan is
repeated. What cannot be read, an untracked file that is too large, and a nested repository are left out and named.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence

from idumb.domain import errors
from idumb.domain.paths import folders_above
from idumb.git import disk, git_dir, git_program, guarded_files
from idumb.git import status as git_status
from idumb.git.discover import Worktree
from idumb.git.git_dir import INDEX, GitDir
from idumb.system import clock, private_folders

NESTED = "a repository of its own"
_UNREADABLE = "it cannot be read"
_TRIES = 3
_SECOND = 1_000_000_000
_MOST_REFUSED = 50
_REFUSED = re.compile(rb"fatal: Unable to process path (.*?)\n?\Z", re.DOTALL)
_NOT_HELD = re.compile(rb"^Ignoring path (.*)$", re.MULTILINE)
_WHY = re.compile(
    rb"error: (.*(?:Permission denied|[Ii]nvalid path|is a directory|beyond a symbolic link|unsupported file type"
    rb"|No such file|Not a directory).*)"
)
"""Reasons of git to refuse one path. Any other is a failure of the whole scan, such as a full disk."""
_MOVING = re.compile(rb"unstable object source|short read while indexing|failed to read \d+ bytes")
"""What git says if a file is written or cut while git reads it."""
_FILTER = re.compile(rb"fatal: (.*): clean filter '.*' failed")
_CLOSED = re.compile(rb"warning: could not open directory '(.*?)/?': Permission denied")
_VERIFIED = "verified"
_ID = re.compile("[0-9a-f]{40}")


class _Moved(Exception):
    """Git failed because the working tree or the object store changed meanwhile, or the index is damaged."""


class Scanner:
    """Scans the files of `worktree`; their objects go to the repository of `store`.

    An untracked file of more than `limit` MB is left out. In a checkout, `folder` is that of the scans, and `tracking`
    knows the tracked files: the index begins with all of them, also with those that git ignores.
    """

    def __init__(
        self,
        worktree: Worktree,
        store: Worktree,
        limit: int,
        folder: GitDir | None = None,
        tracking: GitDir | None = None,
    ) -> None:
        self._worktree = worktree
        self._store = store
        self._limit = limit
        own = os.path.join(store.common_dir, "idumb", "shadow", worktree.name)
        self._folder = folder or GitDir(own, lambda: worktree.root, store.objects)
        self._tracking = tracking
        self._tree = ""  # that of our index; "" once the index has changed
        self._index: tuple[int, ...] | None = None  # the stamp of our index after our last scan
        self._users_index: tuple[int, ...] | None = ()  # that of the user's index, from which the next two are
        self._tracked_ignored: frozenset[bytes] = frozenset()  # files that the user tracks although git ignores them
        self._known: set[bytes] = set()  # those of them that our index has
        self._is_first = True  # no scan of this process has ended
        self.omitted: dict[str, str] = {}
        self.repositories: tuple[str, ...] = ()

    def scan(self, also: Iterable[str] = ()) -> str:
        """Return the tree of all files that are tracked or not ignored, and of what is at the paths in `also`.

        Afterwards, `omitted` maps paths that were left out to the reason, and `repositories` lists submodules and
        nested repositories. Refusal `system.full` or `git.failed`.
        """
        named, problem = [os.fsencode(path.rstrip("/")) for path in also], ""
        with self._alone():
            for attempt in range(_TRIES):
                try:
                    # An object that only the user's index knows may be gone, so the others begin without it.
                    return self._scan(named, begin=attempt == 0)
                except _Moved as moved:
                    problem, self._users_index = str(moved) or "git was killed", ()
                    self._folder.remove(f"{INDEX}.lock")  # of a git that died of a file that was cut off
        raise errors.Refusal(
            "git.failed",
            f"{self._worktree.root} could not be saved: {problem}",
            hint="git status; stop programs that write there all the time, and try again",
        )

    @property
    def verified(self) -> str:
        """The tree of the last snapshot of any process that was read back from disk; "" if there is none."""
        tree = self._folder.read(_VERIFIED)
        return tree if _ID.fullmatch(tree) else ""  # a power cut may leave part of it

    @verified.setter
    def verified(self, tree: str) -> None:
        self._folder.write(_VERIFIED, tree)

    def forget(self) -> None:
        """Scan everything again: the working tree was recreated, or objects are gone."""
        with self._alone():
            self._folder.remove(INDEX)
            self._folder.remove(_VERIFIED)
            self._folder.required(["read-tree", "--empty"])
            self._tree, self._is_first, self._users_index = "", True, ()

    def ignored(self) -> tuple[str, ...]:
        """Return what git ignores and the scans leave out, sorted; a folder that is wholly ignored ends with `/`."""
        with self._alone():
            listed = self._folder.required(["ls-files", "-z", "-o", "-i", "--directory", "--exclude-standard"])
        names = {os.fsdecode(row) for row in _rows(listed)}
        above = folders_above(name.rstrip("/") for name in names)
        # git also lists a folder that no rule matches, if it ignores all its content.
        return tuple(sorted(names.difference(f"{folder}/" for folder in above)))

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other scans of this working tree away."""
        for name in ("info", "refs"):
            private_folders.make(os.path.join(self._folder.path, name), root=self._store.common_dir)
        with self._folder.alone():
            if self._tracking is None:
                self._folder.put(self._folder.differing(git_dir.raw_files(self._folder.path, self._store)))
            if self._folder.stamp() != self._index:  # another process scanned, or its index is damaged
                self._tree, self._users_index = "", ()
                if self._tracking is None and not self._folder.is_whole():
                    self._folder.remove(INDEX)
            self._index = ()  # what a scan that fails had noted is not in our index
            began = clock.nanoseconds() - clock.TICK
            yield
            with contextlib.suppress(FileNotFoundError):
                os.utime(os.path.join(self._folder.path, INDEX), ns=(began, began))
            self._index = self._folder.stamp()

    def _git(self, arguments: Sequence[str], stdin: bytes = b"", *, strict: bool = False) -> git_program.Result:
        words = [*(() if strict else self._folder.lenient), *arguments]
        return self._folder.git(words, stdin)

    def _tracked(self, *arguments: str) -> bytes:
        """Return what the git that knows the tracked files lists; nothing if it fails."""
        command = ["ls-files", "-z", *arguments]
        return (self._tracking.git(command) if self._tracking else git_program.read(self._worktree.root, command)).out

    def _scan(self, also: Sequence[bytes], *, begin: bool) -> str:
        began = clock.nanoseconds() - clock.TICK
        if begin and self._folder.stamp() is None:
            self._begin(began)
        changed = self._changed()
        changed |= self._newly_tracked() | self._unlisted(also, changed)
        if self._is_first and self._tracking is None:
            self._drop_ignored(changed, also)
        if changed:
            sizes = {path: status.st_size for path in changed if (status := self._status(path)) is not None}
            largest = os.fsdecode(self._at(max(sizes, key=lambda path: sizes[path], default=b"")))
            disk.require_room(sizes.values(), self._store.common_dir, largest)
        if self._is_first and self._tracking is None:
            # git would read a file of which only the time differs again in each scan.
            changed |= {*_rows(self._folder.required(["diff-files", "-z", "--name-only", "--ignore-submodules=all"]))}
        if changed:
            self._tree = ""
            self._update(changed)
        tree = self._tree = self._tree or self._written()
        self._is_first = False
        self._drop_young(changed, began)
        return tree

    def _begin(self, began: int) -> None:
        """Take over what the user's index says of each path; then git stores only what differs from it."""
        self._tree = ""
        rows = (row for row in _rows(self._tracked("-s")) if b" 0\t" in row)
        known = {row.partition(b"\t")[2]: row for row in rows}
        self._folder.required(["update-index", "-z", "--index-info"], b"".join(row + b"\0" for row in known.values()))
        self._git(["update-index", "-q", "--refresh"])
        self._drop_young(known, began)

    def _drop_young(self, paths: Iterable[bytes], began: int) -> None:
        """Forget files that a program dated back after the time `began`: only the bytes of the next look count.

        Most builds of git compare times in whole seconds, and read a file again that is as young as the index. So our
        index has the time at which the scan began; what was changed last and is dated back looks old to git.
        """
        statuses = {path: status for path in paths if (status := self._status(path)) is not None}
        young = (path for path, s in statuses.items() if s.st_ctime_ns >= began - _SECOND > s.st_mtime_ns)
        if dated_back := list(young):
            self._drop(dated_back)

    def _newly_tracked(self) -> set[bytes]:
        """Return what the user tracks although git ignores it and our index may lack it: git does not list that."""
        if self._tracking is not None:
            return set()
        if (signature := guarded_files.stat_key(os.path.join(self._worktree.git_dir, INDEX))) != self._users_index:
            listed = self._tracked("-c", "-i", "--exclude-standard")
            self._users_index, self._tracked_ignored, self._known = signature, frozenset(_rows(listed)), set()
        there = self._readable(self._tracked_ignored)
        new, self._known = there - self._known, there
        return new

    def _changed(self) -> set[bytes]:
        """Return the paths that differ from our index, and those that it lacks. Note what is left out."""
        result = self._git(["ls-files", "-t", "-z", "-m", "-d", "-o", "--exclude-standard"])
        if result.status != 0:
            self._folder.remove(INDEX)
            raise _Moved(result.words)
        self.omitted = dict.fromkeys(map(os.fsdecode, _CLOSED.findall(result.err)), _UNREADABLE)
        listed = _rows(result.out)
        nested = [row[2:-1] for row in listed if row.endswith(b"/")]
        files = {row[2:]: row[:1] == b"?" for row in listed if not row.endswith(b"/")}
        refused = {path: why for path, new in files.items() if (why := self._reason_to_omit(path, is_untracked=new))}
        self.omitted |= {os.fsdecode(path): why for path, why in refused.items()}
        if known := [path for path in refused if not files[path]]:
            self._drop(known)
        return (files.keys() - refused.keys()) | self._repositories(nested)

    def _reason_to_omit(self, path: bytes, *, is_untracked: bool) -> str | None:
        try:
            status = os.lstat(self._at(path))
        except OSError:
            return None  # it vanished
        if not stat.S_ISREG(status.st_mode):
            return None
        is_large = is_untracked and status.st_size > self._limit * 1_000_000
        if is_large and not self._tracked("--", os.fsdecode(path)):
            return f"untracked, above snapshot.limit of {self._limit} MB"
        return None if os.access(self._at(path), os.R_OK) else _UNREADABLE

    def _repositories(self, nested: Sequence[bytes]) -> set[bytes]:
        """Return the submodules that our index lacks. Note all repositories."""
        if not nested and not os.path.lexists(os.path.join(self._worktree.root, ".gitmodules")):
            self.repositories = ()
            return set()
        links = git_status.submodules(b"\0" + self._tracked("-s"))
        here = {path for path in links if os.path.isdir(self._at(path)) and not os.path.islink(self._at(path))}
        others = [path for path in nested if path not in links]
        self.omitted |= {os.fsdecode(path): NESTED for path in others}
        self.repositories = tuple(sorted(map(os.fsdecode, [*here, *others])))
        # A submodule that is not checked out is what the user's index says.
        empty = {path: links[path] for path in here if not os.path.lexists(self._at(path + b"/.git"))}
        if empty:
            rows = b"".join(b"160000 %b\t%b\0" % (oid, path) for path, oid in empty.items())
            self._folder.required(["update-index", "-z", "--index-info"], rows)
            self._tree = ""
        return {path for path in nested if path in links}

    def _unlisted(self, also: Sequence[bytes], changed: Collection[bytes]) -> set[bytes]:
        """Return what is at these paths and our index lacks, also if git ignores it; `changed` needs no second look."""
        there = (path for path in also if os.path.lexists(self._at(path)))
        asked = [os.fsdecode(path) for path in there if path not in changed or self._status(path) is None]
        listed = self._folder.required(["ls-files", "-z", "-o", "--", *asked]) if asked else b""
        return self._readable(path for path in _rows(listed) if not path.endswith(b"/"))

    def _readable(self, paths: Iterable[bytes]) -> set[bytes]:
        """Return those of these paths that are there. Note what cannot be read."""
        there = {path for path in paths if self._status(path) is not None}
        refused = {path: why for path in there if (why := self._reason_to_omit(path, is_untracked=False))}
        self.omitted |= {os.fsdecode(path): why for path, why in refused.items()}
        return there - refused.keys()

    def _drop_ignored(self, changed: set[bytes], also: Sequence[bytes]) -> None:
        """Forget files that git ignores by now, once in each process: within one, no file may look deleted."""
        ignored = {*_rows(self._folder.required(["ls-files", "-z", "-c", "-i", "--exclude-standard"]))}
        ignored -= self._tracked_ignored | changed
        if stale := [path for path in ignored if not any((path + b"/").startswith(name + b"/") for name in also)]:
            self._drop(stale)

    def _update(self, paths: set[bytes]) -> None:
        """Give our index the present state of these paths; leave out those that git refuses, with the reason."""
        command = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]
        for _ in range(_MOST_REFUSED):
            names = b"".join(path + b"\0" for path in sorted(paths))
            result = self._git(command, names, strict=True)
            if (other := _FILTER.search(result.err)) is not None and other[1] not in paths:
                # git stored these, and asked the filter about a file that is as young as the index.
                result = self._git(command, names)
            refused, why = _REFUSED.search(result.err), _WHY.search(result.err)
            if result.status == 0:
                names_not_held = map(os.fsdecode, _NOT_HELD.findall(result.err))
                self.omitted |= dict.fromkeys(names_not_held, "git holds no file of this name")
                return
            if result.status < 0:
                raise _Moved("git was killed: a file was cut off while it was read")
            if _MOVING.search(result.err):
                raise _Moved(result.words)
            if refused is None or why is None or refused[1] not in paths:
                break
            paths.discard(refused[1])
            self._drop([refused[1]])
            if os.path.lexists(self._at(refused[1])):
                self.omitted[os.fsdecode(refused[1])] = why[1].decode("utf-8", "replace")
        disk.explain(result.words, self._store.common_dir)
        if b"null sha1" in result.err:  # the end of our index is missing
            self._folder.remove(INDEX)
            raise _Moved(result.words)
        raise git_program.failure(["update-index"], result)

    def _drop(self, paths: Sequence[bytes]) -> None:
        self._known.difference_update(paths)
        names = b"".join(path + b"\0" for path in paths)
        self._folder.required(["update-index", "--force-remove", "-z", "--stdin"], names)
        self._tree = ""

    def _written(self) -> str:
        result = self._git(["write-tree"])
        if result.status == 0:
            return result.out.decode("ascii").strip()
        disk.explain(result.words, self._store.common_dir)
        # `git gc --prune=now` removed what only our index knew, or the index is damaged.
        self._folder.remove(INDEX)
        raise _Moved(result.words)

    def _at(self, path: bytes) -> bytes:
        return os.path.join(os.fsencode(self._worktree.root), path)

    def _status(self, path: bytes) -> os.stat_result | None:
        """Return the state of a file or a link; None for a folder, or nothing."""
        try:
            status = os.lstat(self._at(path))
        except OSError:
            return None
        return None if stat.S_ISDIR(status.st_mode) else status


def _rows(output: bytes) -> list[bytes]:
    return [row for row in output.split(b"\0") if row]
