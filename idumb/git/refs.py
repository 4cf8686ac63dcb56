"""Refs below `refs/idumb/`: created or moved by compare-and-swap, with their files and folders forced to disk.

Refs are listed from plain files: libgit2 reads them one by one, and some repositories have thousands.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Mapping

import pygit2

from idumb.domain import errors
from idumb.git import git_program
from idumb.git.discover import Repository
from idumb.git.objects import durable_files

PREFIX = "refs/idumb/"
_WAIT = ("-c", "core.filesRefLockTimeout=1500")
"""Milliseconds in which git tries to move a ref that another git has locked."""
_COMMITS = 2000
# Refs of ours that this process wrote since the last question, by shared git folder; None if it deleted one.
unasked: dict[str, dict[str, str | None]] = {}


def written(place: Repository) -> dict[str, str | None]:
    """Return the refs written since the last question."""
    return unasked.pop(place.common_dir, {})


def current(repository: pygit2.Repository, ref: str) -> str | None:
    """Return what a ref names, or None. Refusal `git.ref-moved` if its file is damaged."""
    try:
        present = repository.references.get(ref)
    except (pygit2.GitError, ValueError) as problem:
        raise errors.Refusal(
            "git.ref-moved", f"{ref} cannot be read: {problem}", hint="idumb doctor --fix"
        ) from problem
    return None if present is None else str(present.target)


def move(repository: pygit2.Repository, place: Repository, ref: str, oid: str, reason: str = "") -> None:
    """Create `ref`, or move it from its present value, durably, and read it back.

    Waits while git has it locked, as `git pack-refs` does. Refusal `git.ref-moved` if git refuses it, or if another
    process was faster. `reason` is for the reflog, if the user wants one for each ref.
    """
    _require_own(ref)
    missing, old = _missing_folders(place.common_dir, ref), current(repository, ref)
    # Check ownership after the old value was read: a takeover between check and write changes that value.
    place.guard()
    result = git_program.write(
        place.root, [*_WAIT, "update-ref", "-m", f"idumb: {reason}", ref, oid, old or git_program.NOTHING]
    )
    if current(repository, ref) != oid or result.status != 0:
        words = f"{ref} could not be moved to {oid[:12]}: {result.words or 'another process moved it'}"
        raise errors.Refusal("git.ref-moved", words, hint="idumb doctor")
    unasked.setdefault(place.common_dir, {})[ref] = oid
    # `git pack-refs` may have packed it meanwhile, or before, and removed its folders.
    durable_files.force(p for p in (os.path.join(place.common_dir, ref), *missing) if os.path.exists(p))


def _require_own(ref: str) -> None:
    if not ref.startswith(PREFIX):
        message = f"idumb writes and deletes below {PREFIX} only, not {ref}"
        raise ValueError(message)


def delete(repository: pygit2.Repository, place: Repository, ref: str, expected: str) -> None:
    """Delete a ref of ours that still has the expected value, if there is one. Refusal `git.ref-moved` otherwise."""
    _require_own(ref)
    if current(repository, ref) is not None:
        delete_all(place, {ref: expected})


def delete_all(place: Repository, expected: Mapping[str, str]) -> None:
    """Delete all of these refs of ours or none. Refusal `git.ref-moved` if one of them has changed."""
    for ref in expected:
        _require_own(ref)
    place.guard()
    lines = b"".join(b"delete %s\0%s\0" % (os.fsencode(ref), oid.encode()) for ref, oid in expected.items())
    result = git_program.write(place.root, ["update-ref", "-z", "--stdin"], lines)
    if result.status != 0:
        raise errors.Refusal("git.ref-moved", f"git deletes no refs: {result.words}", hint="git for-each-ref")
    unasked.setdefault(place.common_dir, {}).update(dict.fromkeys(expected))
    durable_files.force({place.common_dir, *(_missing_folders(place.common_dir, ref)[-1] for ref in expected)})


def _missing_folders(common_dir: str, ref: str) -> list[str]:
    """Return the missing folders of the ref, and the existing folder that holds, or will hold, the first of them."""
    folders = [os.path.dirname(os.path.join(common_dir, ref))]
    while not os.path.isdir(folders[-1]):
        folders.append(os.path.dirname(folders[-1]))
    return folders


def of_user(common_dir: str) -> dict[str, str]:
    """Return the user's refs: name to a commit or tag id, or to the name of another ref. Raises OSError."""
    return {name: oid for name, oid in listed(common_dir, "refs/").items() if not name.startswith(PREFIX)}


def listed(common_dir: str, folder: str) -> dict[str, str]:
    """Return the refs in a folder such as `refs/tags/`, loose and packed, with their content. Raises OSError."""
    loose: dict[str, str] = {}
    top = os.path.join(common_dir, folder)
    # Loose refs first: one that git packs meanwhile is then seen in at least one place.
    for here, below, names in os.walk(top):
        if here == top and folder == "refs/":
            below[:] = [name for name in below if name != "idumb"]
        for name in names:
            with contextlib.suppress(FileNotFoundError), open(f"{here}/{name}", "rb") as stream:
                if not name.endswith(".lock"):
                    ref = os.path.relpath(f"{here}/{name}", common_dir)
                    loose[ref] = os.fsdecode(stream.read().strip().removeprefix(b"ref: "))
    return {name: oid for name, oid in _packed(common_dir).items() if name.startswith(folder)} | loose


def _packed(common_dir: str) -> Mapping[str, str]:
    path = os.path.join(common_dir, "packed-refs")
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return {}
    # Git replaces this file instead of writing into it.
    return _parsed(path, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))


@functools.lru_cache(maxsize=1)
def _parsed(path: str, _: tuple[int, ...]) -> Mapping[str, str]:
    with open(path, "rb") as stream:
        rows = [os.fsdecode(line).rstrip("\n").partition(" ") for line in stream if line[:1] not in (b"#", b"^")]
    return {name: oid for oid, _space, name in rows}


def bytes_on_disk(place: Repository) -> int | None:
    """Return the size on disk of what only our refs reach; None if git fails, as if objects are missing.

    With trees alone, git does not leave out what the user's commits have, so their newest trees are named.
    """
    users = [f"--exclude={PREFIX}*", "--all"]
    trees = git_program.read(place.root, ["log", *users, f"--max-count={_COMMITS}", "--format=^%T"])
    arguments = ["rev-list", "--objects", "--disk-usage", "--stdin", f"--glob={PREFIX}*", "--not", *users]
    size = git_program.read(place.root, arguments, trees.out)
    return int(size.out) if size.status == 0 else None


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
        delete_all(self._place, expected)
