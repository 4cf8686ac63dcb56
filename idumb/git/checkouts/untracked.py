"""What is in a checkout and not in its tree: found, removed, recorded by stamps, and what `checkout.prepare` made.

A program may put a link in the place of any folder of a checkout, so nothing here follows one.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import operator
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from msgspec import Struct, field

from idumb.domain.paths import folders_above
from idumb.git import path_state
from idumb.git.checkouts import relocated
from idumb.git.checkouts.user_git import GIT
from idumb.system import atomic_write, clock, private_folders

_DONE = "prepared.json"
Facts = tuple[int, ...]
"""Of a file or link its stamp; of a folder its mode."""
_CTIME = 4
_LISTED = stat.S_IRUSR | stat.S_IXUSR
_TICK = 0.001

stamp: Callable[[os.stat_result], tuple[int, int, int, int, int]] = operator.attrgetter(
    "st_ino", "st_mode", "st_size", "st_mtime_ns", "st_ctime_ns"
)
"""What the system says of a file without reading it; times are in nanoseconds. No program can set ctime, so every write
changes the stamp, unless it comes within `clock.TICK`. A device may have another number after a restart of the machine.
"""


class Kept(NamedTuple):
    """The paths that stay.

    - `tracked` and `folders` are those of the tree.
    - `paths` are others.
    - What `is_cached` stays if it is not newer than `since` (ns).
    """

    tracked: Collection[str]
    folders: Collection[str]
    paths: Collection[str] = ()
    is_cached: Callable[[str], bool] = lambda _: False
    since: int = 0


class Other(NamedTuple):
    """A path that is not kept; `cache` is the topmost path of the cache that holds it, if it stays."""

    path: str
    cache: str = ""


def remove_all(root: int, others: Sequence[Other]) -> tuple[list[str], tuple[str, ...]]:
    """Remove them below the open folder `root`. Return the removed paths, and the topmost caches that stay.

    Raises OSError if something cannot be removed.
    """
    removed = [other.path for other in others if not other.cache]
    for path in removed:
        parts = path.split("/")
        with path_state.parent(root, parts) as folder:
            private_folders.remove_at(parts[-1], folder)
    return removed, tuple(sorted({other.cache for other in others if other.cache}))


class Clean(NamedTuple):
    """A folder with nothing but files of the tree and the folders `below`, since it `changed` (ns)."""

    changed: int
    below: list[str]


def found(top: str, kept: Kept, clean: dict[str, Clean]) -> Iterator[Other]:
    """Yield the topmost paths below the folder `top` that are not in the tree.

    Folders in `clean`, to which others are added, are not read again until they change.
    """
    above, settled = folders_above(kept.paths), clock.nanoseconds() - clock.TICK
    stack = [("", "")]
    while stack:
        folder, cache = stack.pop()
        place = os.path.join(top, folder)
        changed = os.lstat(place).st_ctime_ns
        if folder in clean and clean[folder].changed == changed:
            stack += [(path, "") for path in clean[folder].below]
            continue
        prefix, below, is_clean = f"{folder}/" if folder else "", list[str](), changed < settled
        with os.scandir(place) as entries:
            for entry in entries:
                path, is_folder = prefix + entry.name, entry.is_dir(follow_symlinks=False)
                if path in kept.tracked or (is_folder and path in kept.folders):
                    below += [path] if is_folder else []
                    continue
                is_clean = False
                if path in kept.paths or path == GIT:
                    continue
                if is_folder and path in above:
                    below.append(path)
                elif not (cache or _is_cached(path, kept, is_folder=is_folder)) or _changed_since(entry, kept.since):
                    yield Other(path)
                elif is_folder:
                    stack.append((path, cache or path))
                else:
                    yield Other(path, cache or path)
        stack += [(path, "") for path in below]
        if is_clean:
            clean[folder] = Clean(changed, below)


def _is_cached(path: str, kept: Kept, *, is_folder: bool) -> bool:
    return kept.is_cached(path) or (is_folder and kept.is_cached(f"{path}/"))


def _changed_since(entry: os.DirEntry[str], since: int) -> bool:
    return entry.stat(follow_symlinks=False).st_ctime_ns > since


class Manifest(Struct, frozen=True):
    """What is in a checkout, by path; folders come before their content.

    - `paths`: the topmost paths.
    - `key`: what the content depends on. `originals`: the stamps of the files from which copies were made.
    """

    paths: tuple[str, ...] = ()
    copies: Mapping[str, Facts] = field(default_factory=dict)
    originals: Mapping[str, Facts] = field(default_factory=dict)
    key: str = ""

    def save(self, place: str) -> None:
        """Write it to a file, once no later change can have the same time as one that it records."""
        private_folders.make(os.path.dirname(place))
        times = (int(facts[_CTIME]) for facts in self.copies.values() if len(facts) > _CTIME)
        _let_time_pass(f"{place}.time", max(times, default=0))
        content = json.dumps([self.paths, self.copies, self.originals, self.key])
        atomic_write.write(place, content.encode("ascii"), durable=False, mode=0o600)


def load(place: str) -> Manifest:
    """Return what was saved; an empty manifest if there is none, or it is damaged."""
    try:
        with open(place, encoding="ascii") as stream:
            paths, copies, originals, key = json.load(stream)
        return Manifest(tuple(paths), _facts(copies), _facts(originals), key)
    except (OSError, ValueError, TypeError, AttributeError):
        return Manifest()


def _facts(rows: Mapping[str, Sequence[int]]) -> dict[str, Facts]:
    return {path: tuple(row) for path, row in rows.items()}


def present(root: str, paths: Iterable[str]) -> dict[str, Facts]:
    """Return what is at these paths and below them."""
    rows = (row for path in paths if _has_room(root, path) for row in walk(root, path))
    return {path: (status.st_mode,) if stat.S_ISDIR(status.st_mode) else stamp(status) for path, status in rows}


def walk(top: str, path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield a path of the folder `top`, then what can be read below it; the entries of a folder follow one another."""
    try:
        status = os.lstat(os.path.join(top, path))
    except OSError:
        return
    yield path, status
    stack = [path] if can_be_listed(status.st_mode) else []
    while stack:
        folder = stack.pop()
        # Programs may remove files meanwhile.
        with contextlib.suppress(FileNotFoundError, PermissionError), os.scandir(os.path.join(top, folder)) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                name = f"{folder}/{entry.name}"
                if can_be_listed(status.st_mode):
                    stack.append(name)
                yield name, status


def can_be_listed(mode: int) -> bool:
    """Return whether it is a folder that its owner may list: also for root, who may list every one."""
    return stat.S_ISDIR(mode) and mode & _LISTED == _LISTED


def _has_room(root: str, path: str) -> bool:
    """Return whether each folder above a path is one, or missing: not a link, not a file."""
    for above in folders_above((path,)):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if not stat.S_ISDIR(os.lstat(os.path.join(root, above)).st_mode):
                return False
    return True


@contextlib.contextmanager
def opened(root: str, folder: str) -> Iterator[int]:
    """Open a folder below `root`, and make what is missing. Raises OSError for what is in the place of a folder."""
    parts = [*filter(None, folder.split("/")), ""]
    with private_folders.opened(root) as top, path_state.parent(top, parts, set()) as descriptor:
        yield descriptor


def remove(root: str, path: str) -> None:
    """Remove what is at a path of a checkout, with all below it. Nothing is done if a link is on the way.

    Raises OSError if something is mounted there, or stays.
    """
    place = os.path.join(root, path)
    if not _has_room(root, path) or not os.path.lexists(place):
        return
    if stat.S_ISDIR(os.lstat(place).st_mode):
        private_folders.require_no_mounts(place)
    with opened(root, os.path.dirname(path)) as folder, contextlib.suppress(FileNotFoundError):
        private_folders.remove_at(os.path.basename(path), folder)


def _let_time_pass(place: str, newest: int) -> None:
    """Wait until the file system gives another time than `newest`: some do so only every few milliseconds."""
    while True:
        atomic_write.write(place, b"", durable=False, mode=0o600)
        if os.lstat(place).st_ctime_ns != newest:
            return
        time.sleep(_TICK)


class Prepared:
    """`state` is a folder of idumb's outside the checkout.

    The record is read here, once: make this object before programs run that could write to it.
    """

    def __init__(self, state: str) -> None:
        self._done = os.path.join(state, _DONE)
        self._manifest = load(self._done)

    @property
    def paths(self) -> tuple[str, ...]:
        return self._manifest.paths

    def ensure(
        self, root: str, key: str, others: Callable[[], set[str]], run: Callable[[], None], tree: str = ""
    ) -> tuple[str, ...]:
        """Run `run`, unless what it made for this `key` is intact; return the paths of what it made.

        `others` returns the untracked paths: what it returns only afterwards was made. An environment that holds a
        copy of the project's sources belongs to one `tree`. If `run` fails or is killed, nothing counts, and the
        caller removes it.
        """
        made = self._manifest
        if made.key in {_key(key), _key(key, tree)}:
            there = present(root, made.paths)
            for path in (path for path in there if path not in made.copies):
                remove(root, path)
            if all(there.get(path) == facts for path, facts in made.copies.items()):
                return made.paths
        for path in made.paths:
            remove(root, path)
        self._manifest = Manifest()
        self._manifest.save(self._done)
        before = others()
        run()
        paths = tuple(sorted(path.rstrip("/") for path in others().difference(before)))
        own = _key(key, tree) if _installs_sources(root, paths) else _key(key)
        self._manifest = Manifest(paths, present(root, paths), key=own)
        self._manifest.save(self._done)
        return paths


def _key(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()


def _installs_sources(root: str, paths: Iterable[str]) -> bool:
    """Return whether an environment among `paths` holds an installed copy of sources below `root`."""
    for path in paths:
        for site in relocated.SITES:
            for place in glob.glob(f"{glob.escape(os.path.join(root, path))}/{site}/*.dist-info/direct_url.json"):
                with contextlib.suppress(OSError, ValueError, AttributeError), open(place, encoding="utf-8") as stream:
                    source = json.load(stream)
                    is_editable = source.get("dir_info", {}).get("editable", False)
                    if f"{source.get('url')}/".startswith(f"file://{quote(root)}/") and not is_editable:
                        return True
    return False
