"""What the commands of `checkout.prepare` made, kept beside the proving tree until other commands or lock files count.

Each entry belongs to one proving tree, because virtual environments hold absolute paths. What a check of another task,
or anything else, changed in an entry is found by the `lstat` of its files; the entry is then made again.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping

from idumb.git import path_copies
from idumb.lazy_dataclass import dataclass
from idumb.system.files import atomic_write, private_folders, stamps

PREFIX = "prepared-"
_MOST_ENTRIES = 3
_LARGEST = 1 << 22
_FILES = "files"
_RECORD = "record.json"
_INSTALLED = ("lib/python*/site-packages/*.dist-info/direct_url.json", "Lib/site-packages/*.dist-info/direct_url.json")


@dataclass(frozen=True, slots=True)
class Prepared:
    """The folder that holds the outputs, and their paths in it, which are those in the proving tree."""

    folder: str
    paths: tuple[str, ...]


class PreparedOutputs:
    """`folder` is where the entries are; `root` the working tree in which the commands run.

    Builders and checks can write to an entry and its record too. So only those entries are believed that this object
    kept, or whose record is among `earlier`, which were read before the first builder began.
    """

    def __init__(self, folder: str, root: str, earlier: Mapping[str, bytes]) -> None:
        self._folder = folder
        self.root = root
        self._records = dict(earlier)

    def find(self, key: str, tree: str) -> Prepared | None:
        """Return the outputs of these commands and lock files, unless they changed or hold the sources of a tree."""
        entry = os.path.join(self._folder, key)
        try:
            record = json.loads(self._records[os.path.join(entry, _RECORD)])
            if record["tree"] not in (None, tree) or record["stamps"] != _digest(os.path.join(entry, _FILES)):
                return None
            os.utime(os.path.join(entry, _RECORD))
            return Prepared(os.path.join(entry, _FILES), tuple(record["paths"]))
        except (OSError, LookupError, TypeError, ValueError):
            return None

    def keep(self, key: str, tree: str, paths: Iterable[str]) -> Prepared:
        """Move these paths out of the working tree, and remove the oldest entries."""
        paths = tuple(paths)
        entry = os.path.join(self._folder, key)
        files = os.path.join(entry, _FILES)
        private_folders.remove_tree(entry)
        os.makedirs(files, mode=0o700)
        for path in paths:
            target = os.path.join(files, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.rename(os.path.join(self.root, path), target)
        own = tree if any(self._holds_sources(os.path.join(files, path)) for path in paths) else None
        record = json.dumps({"tree": own, "paths": paths, "stamps": _digest(files)}).encode("ascii")
        atomic_write.write(os.path.join(entry, _RECORD), record, durable=False, mode=0o600)
        self._records[os.path.join(entry, _RECORD)] = record
        self._tidy()
        return Prepared(files, paths)

    def _holds_sources(self, path: str) -> bool:
        """Return whether a virtual environment has a copy of the project itself, which belongs to one tree only."""
        for pattern in _INSTALLED:
            for place in glob.glob(os.path.join(glob.escape(path), pattern)):
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    with open(place, encoding="utf-8") as stream:
                        source = json.load(stream)
                    editable = source.get("dir_info", {}).get("editable", False)
                    if f"{source.get('url')}/".startswith(f"file://{self.root}/") and not editable:
                        return True
        return False

    def _tidy(self) -> None:
        def used(entry: str) -> float:
            with contextlib.suppress(OSError):
                return os.stat(os.path.join(entry, _RECORD)).st_mtime
            return 0

        entries = sorted((entry.path for entry in os.scandir(self._folder)), key=used, reverse=True)
        for entry in entries[_MOST_ENTRIES:]:
            private_folders.remove_tree(entry)


def records(top: str) -> dict[str, bytes]:
    """Return the content of each record in the folder of a repository's proving trees, by path."""
    by_path: dict[str, bytes] = {}
    for path in glob.glob(f"{glob.escape(top)}/{PREFIX}*/*/{_RECORD}"):
        with contextlib.suppress(OSError), open(path, "rb") as stream:
            by_path[path] = stream.read(_LARGEST)
    return by_path


def key(*words: str) -> str:
    """Return the name of an entry."""
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _digest(folder: str) -> str:
    """Return a digest of the stamps of everything in a folder, and of the bytes if a write may leave no time."""
    digest, with_bytes = hashlib.sha256(), private_folders.hides_writes(folder)
    for path, status in sorted(path_copies.walk(folder), key=lambda pair: pair[0]):
        if path:
            digest.update(repr((path, *stamps.facts(status))).encode("utf-8", "surrogateescape"))
        if with_bytes and stat.S_ISREG(status.st_mode):
            with open(os.path.join(folder, path), "rb") as stream:
                while piece := stream.read(1 << 20):
                    digest.update(piece)
    return digest.hexdigest()
