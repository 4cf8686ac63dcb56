"""Refs below `refs/idumb/`: created or moved by compare-and-swap, with their files and folders forced to disk.

The user's refs are read as plain files: libgit2 reads refs one by one, every task needs them three times, and some
repositories have thousands.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pygit2

from idumb.domain import errors
from idumb.git import git_program
from idumb.git.discover import Repository
from idumb.git.objects import durable_files

PREFIX = "refs/idumb/"
# Refs of ours that this process wrote since the last question, by shared git folder; None if it deleted one.
_written: dict[str, dict[str, str | None]] = {}


def written(place: Repository) -> dict[str, str | None]:
    """Return the refs written since the last question."""
    return _written.pop(place.common_dir, {})


def current(repository: pygit2.Repository, ref: str) -> str | None:
    present = repository.references.get(ref)
    return None if present is None else str(present.target)


def move(repository: pygit2.Repository, place: Repository, ref: str, commit: str) -> None:
    """Create `ref`, or move it from its present value. Refusal `git.ref-moved` if another process was faster."""
    if not ref.startswith(PREFIX):
        message = f"idumb writes below {PREFIX} only, not {ref}"
        raise ValueError(message)
    missing = _missing_folders(place.common_dir, ref)
    try:
        present = repository.references.get(ref)
        # Check ownership after reading the old value: a takeover between check and write changes that value.
        place.guard()
        if present is None:
            repository.references.create(ref, commit)
        elif str(present.target) != commit:
            present.set_target(commit)
    except (pygit2.GitError, ValueError) as problem:
        raise errors.Refusal(
            "git.ref-moved", f"{ref} could not be moved to {commit[:12]}: {problem}", hint="idumb status"
        ) from problem
    _written.setdefault(place.common_dir, {})[ref] = commit
    path = os.path.join(place.common_dir, ref)
    durable_files.force([path, os.path.dirname(path), *missing] if os.path.exists(path) else missing)


def delete(repository: pygit2.Repository, place: Repository, ref: str, expected: str) -> None:
    """Delete a ref of ours that still has the expected value. Refusal `git.ref-moved` otherwise."""
    if not ref.startswith(PREFIX):
        message = f"idumb deletes below {PREFIX} only, not {ref}"
        raise ValueError(message)
    present = repository.references.get(ref)
    if present is None:
        return
    if str(present.target) != expected:
        raise errors.Refusal("git.ref-moved", f"{ref} is {present.target}, not {expected}", hint="idumb status")
    place.guard()
    try:
        present.delete()
    except (pygit2.GitError, ValueError) as problem:
        words = f"{ref} could not be deleted: {problem}"
        raise errors.Refusal("git.ref-moved", words, hint="idumb status") from problem
    _written.setdefault(place.common_dir, {})[ref] = None
    folder = os.path.dirname(os.path.join(place.common_dir, ref))
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    durable_files.force([folder])


def _missing_folders(common_dir: str, ref: str) -> list[str]:
    """Return the missing folders of the ref, and the existing folder that will hold the first of them."""
    folders: list[str] = []
    folder = os.path.dirname(os.path.join(common_dir, ref))
    while not os.path.isdir(folder):
        folders.append(folder)
        folder = os.path.dirname(folder)
    return [*folders, folder] if folders else []


_OWN = "refs/idumb"
# Path of a loose ref to its stat and content, so that an unchanged one is not opened again.
_cached: dict[str, tuple[tuple[int, ...], str]] = {}


class _Packed(NamedTuple):
    user: Mapping[str, str]
    own: Mapping[str, str]


def values(common_dir: str) -> Mapping[str, str]:
    """Return name to content: a commit or tag id, or the name of another ref. Raises OSError."""
    # Loose refs first: a ref that git packs meanwhile is then seen in at least one place.
    loose = dict(_loose(common_dir, "refs", but=_OWN))
    return {**_packed(common_dir).user, **loose}


def own(common_dir: str, below: str) -> Mapping[str, str]:
    """Return idumb's own refs in one folder, such as `refs/idumb/worktrees/main/`."""
    loose = dict(_loose(common_dir, below.rstrip("/")))
    packed = {name: oid for name, oid in _packed(common_dir).own.items() if name.startswith(below)}
    return {**packed, **loose} if packed else loose


def _loose(common_dir: str, folder: str, but: str | None = None) -> Iterator[tuple[str, str]]:
    try:
        with os.scandir(os.path.join(common_dir, folder)) as listing:
            entries = list(listing)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        name = f"{folder}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if name != but:
                yield from _loose(common_dir, name, but)
        elif not name.endswith(".lock"):
            try:
                yield name, _value(entry)
            except FileNotFoundError:
                continue  # packed or deleted between the two reads


def _value(entry: os.DirEntry[str]) -> str:
    status = os.stat(entry.path)
    signature = (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)
    noted = _cached.get(entry.path)
    if noted is None or noted[0] != signature:
        with open(entry.path, "rb") as stream:
            noted = (signature, os.fsdecode(stream.read().strip().removeprefix(b"ref: ")))
        _cached[entry.path] = noted
    return noted[1]


def _packed(common_dir: str) -> _Packed:
    path = os.path.join(common_dir, "packed-refs")
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return _Packed({}, {})
    # Git replaces this file instead of writing into it.
    return _read(path, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))


@functools.lru_cache(maxsize=1)
def _read(path: str, _: tuple[int, ...]) -> _Packed:
    user: dict[str, str] = {}
    ours: dict[str, str] = {}
    with open(path, "rb") as stream:
        for line in stream:
            if line[:1] in (b"#", b"^"):
                continue
            oid, _space, name = os.fsdecode(line).rstrip("\n").partition(" ")
            (ours if name.startswith(f"{_OWN}/") else user)[name] = oid
    return _Packed(user, ours)


class GitKeptRefs:
    """Implements the port `KeptRefs` for all working trees of a repository, which share their refs.

    Uses the git program alone, so that idumb can also be removed from repositories that libgit2 does not open.
    """

    def __init__(self, place: Repository) -> None:
        self._place = place

    def list(self) -> Mapping[str, str]:
        listed = git_program.output(self._place.root, ["for-each-ref", "--format=%(objectname) %(refname)", PREFIX])
        rows = (os.fsdecode(line).partition(" ") for line in listed.splitlines())
        return {name: oid for oid, _, name in rows}

    def bundle(self, path: str) -> int:
        """Write every ref with its objects into a file that git can read, forced to disk. Return the number of refs."""
        result = git_program.write(self._place.root, ["bundle", "create", "--quiet", path, f"--glob={PREFIX}*"])
        if result.status != 0:
            raise errors.Refusal(
                "backup.incomplete",
                f"git could not bundle the refs, so nothing was removed: {result.words}",
                hint="idumb doctor lists the broken refs; --no-backup continues without a backup",
            )
        os.chmod(path, 0o600)
        git_program.output(self._place.root, ["bundle", "verify", path])
        durable_files.force([path, os.path.dirname(path)])
        return len(git_program.output(self._place.root, ["bundle", "list-heads", path]).splitlines())

    def delete(self, expected: Mapping[str, str]) -> None:
        """Delete all refs or none. Refusal `git.ref-moved` if one of them has changed."""
        lines = b"".join(b"delete %s\0%s\0" % (os.fsencode(ref), oid.encode()) for ref, oid in expected.items())
        result = git_program.write(self._place.root, ["update-ref", "-z", "--stdin"], lines)
        if result.status != 0:
            raise errors.Refusal("git.ref-moved", f"git deletes no refs: {result.words}", hint="git for-each-ref")
        refs = os.path.join(self._place.common_dir, "refs")
        durable_files.force([refs, self._place.common_dir])
