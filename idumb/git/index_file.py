"""The user's index file: its bytes, its changes since a snapshot, and how to restore it."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from idumb.domain.proof.ledger import Entry
from idumb.git import git_program, snapshot
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects

if TYPE_CHECKING:
    import pygit2


EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"  # the blob id of an intent-to-add entry
_FLAGS = re.compile(rb"\tflags: ([0-9a-f]+)\n")
_INTENT = 1 << 29


def path_of(place: Repository) -> str:
    return os.path.join(place.git_dir, "index")


def read(place: Repository) -> bytes | None:
    """Return the bytes; None if there is no file, as before the first `git add`."""
    try:
        with open(path_of(place), "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def swap(place: Repository, expected: bytes | None, wanted: bytes | None) -> bool:
    """Replace the bytes under git's own lock if they are as expected. Return whether that was done.

    If killed, the file is as before or as wanted; a leftover lock is removed by the next command.
    """
    path = path_of(place)
    try:
        descriptor = os.open(path + ".lock", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as stream:
            same = read(place) == expected
            stream.write(wanted or b"")
            stream.flush()
            os.fsync(descriptor)
        place.guard()
        if same and wanted is not None:
            os.rename(path + ".lock", path)
            return True
        if same and expected is not None:
            os.unlink(path)
        os.unlink(path + ".lock")
    except BaseException:
        # A leftover lock would block every git command.
        with contextlib.suppress(OSError):
            os.unlink(path + ".lock")
        raise
    return same


def kept(repository: pygit2.Repository, commit: str) -> bytes | None:
    """Return the bytes that a snapshot has of the index; None if there was none."""
    item = tree_objects.rows_of(repository, commit).get(snapshot.INDEX)
    if item is None:
        return None
    if item.mode != tree_objects.FOLDER:
        return bytes(repository[item.oid.hex()].read_raw())
    pieces = sorted(tree_objects.rows(repository, item.oid).items())
    return b"".join(repository[piece.oid.hex()].read_raw() for _, piece in pieces)


def changes(place: Repository, before: bytes | None, after: bytes | None) -> tuple[str, ...]:
    """Return the paths whose entries differ, flags included. File times that git caches are no change."""
    if before == after:
        return ()
    old, new = _entries(place, before), _entries(place, after)
    return tuple(sorted({os.fsdecode(row.partition(b"\t")[2]) for row in old ^ new}))


def info(entries: Mapping[str, Entry | None]) -> bytes:
    """Return the input of `git update-index -z --index-info` that sets these entries; None removes one."""
    rows = []
    for path, entry in sorted(entries.items()):
        about = "0 " + "0" * 40 if entry is None else f"{entry.mode:o} {entry.oid}"
        rows.append(f"{about}\t".encode("ascii") + os.fsencode(path) + b"\0")
    return b"".join(rows)


def again(place: Repository, before: bytes | None, paths: Iterable[str]) -> tuple[bytes, tuple[str, ...]]:
    """Return the input of `git update-index -z --index-info` that restores the entries of these paths.

    Also return the commands that set the flags which that input cannot set, for the top folder.
    """
    wanted = set(paths)
    old: dict[str, Entry | None] = dict.fromkeys(wanted)
    flagged: dict[str, list[str]] = {}
    for row in sorted(_entries(place, before)):
        about, _, name = row.partition(b"\t")
        path, (tag, mode, oid, stage) = os.fsdecode(name), about.split(b" ")
        if path in wanted and stage == b"0":
            old[path] = Entry(int(mode, 8), oid.decode("ascii"))
            for flag in _flags(tag):
                flagged.setdefault(f"update-index {flag}", []).append(path)
    for path in _announced(place, before, [p for p, entry in old.items() if entry is not None and entry.oid == EMPTY]):
        old[path] = None
        flagged.setdefault("add --intent-to-add", []).append(path)
    named = {how: " ".join(map(shlex.quote, names)) for how, names in sorted(flagged.items())}
    return info(old), tuple(f"git {how} -- {names}" for how, names in named.items())


def _announced(place: Repository, data: bytes | None, empty: Sequence[str]) -> list[str]:
    """Return the paths that `git add --intent-to-add` announced without bytes: only `--debug` tells them."""
    if data is None or not empty:
        return []
    with _file_of(data) as name:
        arguments = ["ls-files", "--debug", "-z", "--", *empty]
        out = git_program.output(place.root, arguments, extra={"GIT_INDEX_FILE": name})
    flags = zip(sorted(empty, key=os.fsencode), _FLAGS.findall(out), strict=False)
    return [path for path, found in flags if int(found, 16) & _INTENT]


def _flags(tag: bytes) -> Iterator[str]:
    """Parse the flag letters of `git ls-files -v`."""
    if tag.islower():
        yield "--assume-unchanged"
    if tag.upper() == b"S":
        yield "--skip-worktree"


def _entries(place: Repository, data: bytes | None) -> frozenset[bytes]:
    """Return the rows of `git ls-files`, which reads split and sparse indexes and reports assumed and skipped files."""
    if data is None:
        return frozenset()
    with _file_of(data) as name:
        arguments = ["ls-files", "--stage", "-v", "-z"]
        out = git_program.output(place.root, arguments, extra={"GIT_INDEX_FILE": name})
    return frozenset(filter(None, out.split(b"\0")))


@contextlib.contextmanager
def _file_of(data: bytes) -> Iterator[str]:
    with tempfile.NamedTemporaryFile(prefix="idumb-index-") as stream:
        stream.write(data)
        stream.flush()
        yield stream.name


def command(place: Repository, repository: pygit2.Repository, commit: str) -> str:
    """Return the command that restores the index of a snapshot, for a person in the top folder."""
    path = path_of(place)
    named = shlex.quote(os.path.relpath(path, place.root) if path.startswith(place.root + os.sep) else path)
    item = tree_objects.rows_of(repository, commit).get(snapshot.INDEX)
    if item is None:
        return f"rm -f {named}"
    if item.mode != tree_objects.FOLDER:
        return f"git cat-file blob {commit}:{snapshot.INDEX} > {named}"
    pieces = f"$(git ls-tree --name-only {commit}:{snapshot.INDEX})"
    return f"for n in {pieces}; do git cat-file blob {commit}:{snapshot.INDEX}/$n; done > {named}"
