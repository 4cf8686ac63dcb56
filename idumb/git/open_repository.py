"""Open a repository with libgit2, or say in one line why that is impossible or why nothing may run in it now.

libgit2 1.9 never returns from a loose object that is cut off, and no signal ends that. So loose objects are read and
verified here. What libgit2 reads by itself, such as the ancestors of a commit in a walk, is not protected.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import pygit2
from pygit2.enums import ObjectType, Option, RepositoryOpenFlag

from idumb.domain import errors
from idumb.git import git_program
from idumb.git.discover import Worktree
from idumb.system import machine, user_folders

_FULL = 40
_OID = re.compile(f"[0-9a-f]{{{_FULL}}}")
_KINDS = {b"commit": ObjectType.COMMIT, b"tree": ObjectType.TREE, b"blob": ObjectType.BLOB, b"tag": ObjectType.TAG}
UNREADABLE = "git.snapshot-unreadable"
_CODE, _HINT = "git.object-missing", "git fsck; idumb doctor"
_MOST_ALTERNATES = 50
_CACHE = 1 << 20
"""Bytes of objects that libgit2 remembers. Without a limit, a long run remembers every tree it has read."""

# File in git's folder -> code, message. The first that exists is reported.
_IN_PROGRESS = (
    ("rebase-merge", "git.rebase-in-progress", "a rebase is in progress"),
    ("rebase-apply/applying", "git.am-in-progress", "git am is in progress"),
    ("rebase-apply", "git.rebase-in-progress", "a rebase is in progress"),
    ("MERGE_HEAD", "git.merge-in-progress", "a merge is in progress"),
    ("CHERRY_PICK_HEAD", "git.cherry-pick-in-progress", "a cherry-pick is in progress"),
    ("REVERT_HEAD", "git.revert-in-progress", "a revert is in progress"),
    ("sequencer", "git.sequence-in-progress", "a sequence of cherry-picks or reverts is in progress"),
    ("BISECT_LOG", "git.bisect-in-progress", "a bisect is in progress"),
)


class Missing(errors.Refusal, KeyError):
    """An object is not there: libgit2's error for callers that expect it, and a refusal for the user."""

    def __init__(self, name: str) -> None:
        super().__init__(_CODE, f"object {name} is missing", hint=_HINT)


class Damaged(errors.Refusal, pygit2.GitError):
    """An object cannot be read: libgit2's error for callers that expect it, and a refusal for the user."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(_CODE, f"object {name} is damaged: {why}", hint=_HINT)


def unreadable(oid: str) -> errors.Refusal:
    words = f"object {oid} of a snapshot is missing or damaged"
    return errors.Refusal(UNREADABLE, words, hint="git fsck", details={"object": oid})


@contextlib.contextmanager
def refusals(name: str) -> Iterator[None]:
    """Raise Missing or Damaged, about the object `name` unless libgit2 names another one, if it cannot read."""
    try:
        yield
    except KeyError as problem:
        raise Missing((_OID.findall(str(problem)) or [name])[0]) from problem
    except pygit2.GitError as problem:
        raise Damaged(name, str(problem)) from problem


class CheckedRepository(pygit2.Repository):
    """The repository of `worktree`. `object_folders` have loose objects: its own, then its alternates."""

    worktree: Worktree
    object_folders: Sequence[str] = ()
    moved_refs = 0
    _packs: tuple[int, frozenset[str]] | None = None

    def read(self, oid: pygit2.Oid | str) -> tuple[int, bytes]:
        """Return kind and bytes of an object. Raises Missing or Damaged."""
        loose = self._loose(str(oid))
        with refusals(str(oid)):
            return super().read(oid) if loose is None else loose

    def __getitem__(self, oid: pygit2.Oid | str) -> Any:
        """Return an object. Raises Missing or Damaged."""
        self._loose(str(oid))
        with refusals(str(oid)):
            return super().__getitem__(oid)

    def write(self, kind: int, data: bytes | str) -> pygit2.Oid:
        """Write an object byte for byte, forced to disk before git can see it. Raises OSError if the disk is full.

        A power cut could otherwise keep its name and lose its bytes, and git does not rewrite an object that exists.
        """
        self.see_packs()
        oid, folder = self.odb.write(kind, data), self.object_folders[0]
        # libgit2 sometimes reports success for an object that did not fit on the disk.
        if not os.path.exists(f"{folder}/{str(oid)[:2]}/{str(oid)[2:]}") and oid not in self.odb:
            if machine.nearly_full(folder):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder)
            raise unreadable(str(oid))
        return oid

    @property
    def is_partial(self) -> bool:
        """Return whether it lacks objects that a remote has promised."""
        return self._packs is not None and any(name.endswith(".promisor") for name in self._packs[1])

    def see_packs(self) -> None:
        """Let libgit2 find only what is in packs that exist now.

        It goes on finding objects in a pack that git has removed, and reads them from the open file. If it then did not
        write such an object, a snapshot would lack it.
        """
        folder = os.path.join(self.object_folders[0], "pack")
        try:
            packs = os.stat(folder).st_mtime_ns, frozenset(os.listdir(folder))
        except OSError:
            packs = 0, frozenset()
        if packs != self._packs:
            self._packs = packs
            self.set_odb(pygit2.Odb(self.object_folders[0]))

    def _loose(self, name: str) -> tuple[ObjectType, bytes] | None:
        """Return a loose object; None if there is none, and for a shortened name."""
        for folder in self.object_folders if len(name) == _FULL else ():
            # What cannot be opened is left to libgit2, which looks into packs, and words the failure.
            with contextlib.suppress(OSError), open(f"{folder}/{name[:2]}/{name[2:]}", "rb") as stream:
                return _inflated(name, stream.read())
        return None


def _inflated(name: str, data: bytes) -> tuple[ObjectType, bytes]:
    inflater = zlib.decompressobj()
    try:
        whole = inflater.decompress(data)
    except zlib.error as problem:
        raise Damaged(name, str(problem)) from problem
    if not inflater.eof:
        raise Damaged(name, "its file is cut off")
    header, _, body = whole.partition(b"\0")
    kind = _KINDS.get(header.partition(b" ")[0])
    if kind is None or hashlib.sha1(whole, usedforsecurity=False).hexdigest() != name:
        raise Damaged(name, "its file has other bytes")
    return kind, body


def repository(worktree: Worktree) -> CheckedRepository:
    """Raises Refusal `git.unsupported-format`, `git.ownership` or `git.unreadable`."""
    # libgit2 then forces objects and refs to disk; for refs, it decides that when it first reads one.
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, 1)
    pygit2.settings.cache_max_size(_CACHE)
    try:
        opened = CheckedRepository(worktree.root, RepositoryOpenFlag.NO_SEARCH)
        opened.worktree, opened.object_folders = worktree, object_folders(worktree)
        with contextlib.suppress(pygit2.GitError, KeyError, ValueError):
            opened.lookup_reference("HEAD")
    except (pygit2.GitError, KeyError, ValueError) as problem:
        words = str(problem)
        if "owned by" in words:
            words = f"{worktree.root} belongs to another user, and git does not trust it"
            hint = "git status  (it names the missing safe.directory entry)"
            raise errors.Refusal("git.ownership", words, hint=hint) from problem
        if any(word in words for word in ("extension", "object format", "objectformat", "version")):
            words = f"{worktree.root} uses a repository format that idumb cannot read yet: {words}"
            raise errors.Refusal("git.unsupported-format", words, hint="git config --list --local") from problem
        words = f"{worktree.root} cannot be opened: {words}"
        raise errors.Refusal("git.unreadable", words, hint="git status") from problem
    return opened


@contextlib.contextmanager
def _head() -> Iterator[None]:
    try:
        yield
    except pygit2.GitError as problem:
        raise errors.Refusal("git.head-unreadable", f"HEAD cannot be read: {problem}", hint="git fsck") from problem


def head_of(repository: pygit2.Repository) -> str | None:
    """Return HEAD's commit; None before the first. Refusal `git.head-unreadable`."""
    with _head():
        return None if repository.head_is_unborn else str(repository.head.target)


def branch_of(repository: pygit2.Repository) -> str | None:
    """Return the full name of the branch that HEAD is on; None if it is detached. Refusal `git.head-unreadable`."""
    with _head():
        target = repository.lookup_reference("HEAD").raw_target
        return os.fsdecode(target) if isinstance(target, bytes) else None


def require_supported(worktree: Worktree) -> None:
    """Refuse a repository in which neither git nor idumb can ever work: format, owner or place."""
    require_usable(worktree)
    git_program.output(worktree.root, ["rev-parse", "--git-dir"])  # libgit2 may open what git refuses for its owner


def require_usable(worktree: Worktree) -> None:
    """Refuse a format that idumb cannot read, and a place that is not what git believes."""
    opened = repository(worktree)
    if opened.is_bare:
        words = f"{worktree.root} is configured as bare (git config core.bare shows it)"
        raise errors.Refusal("git.bare", words, hint="git config core.bare false, if it was set by accident")
    work_tree = os.path.realpath(opened.workdir or "")
    if work_tree != worktree.root:
        words = f"core.worktree names {work_tree}, not {worktree.root}"
        hint = "git config --unset core.worktree, or give that working tree a .git file"
        raise errors.Refusal("git.work-tree-elsewhere", words, hint=hint)
    _require_state_outside(worktree)


def _require_state_outside(worktree: Worktree) -> None:
    """Refuse a repository with idumb's own folder among the user's files: HOME may be one."""
    folder = os.path.realpath(user_folders.path())
    if os.path.commonpath((folder, worktree.root)) != worktree.root:
        return
    inside = f"./{os.path.relpath(folder, worktree.root)}/"
    if git_program.read(worktree.root, ["check-ignore", "-q", inside], extra=git_program.PATTERNS).status != 0:
        words = f"{folder}, idumb's own folder, is in this working tree, and git does not ignore it"
        hint = "add it to .gitignore, or set XDG_STATE_HOME to a folder outside the repository"
        raise errors.Refusal("git.holds-state", words, hint=hint)


def in_progress(worktree: Worktree) -> errors.Refusal | None:
    """Return the refusal of an operation that was begun and not finished."""
    for name, code, words in _IN_PROGRESS:
        if os.path.lexists(os.path.join(worktree.git_dir, name)):
            return errors.Refusal(code, f"{words}; finish it first", hint="git status shows how to finish or abort it")
    return None


def object_folders(worktree: Worktree) -> tuple[str, ...]:
    """Return the folder of the repository's objects, and its alternates.

    All are listed, because git ignores relative names in the second repository of such a chain.
    """
    folders = [worktree.objects]
    for folder in folders:
        with contextlib.suppress(OSError), open(os.path.join(folder, "info", "alternates"), "rb") as stream:
            # git decodes quoted names itself.
            plain = [line for line in stream.read().splitlines() if line and not line.startswith((b"#", b'"'))]
            alternates = (os.path.normpath(os.path.join(folder, os.fsdecode(line))) for line in plain)
            folders += [path for path in alternates if path not in folders][: _MOST_ALTERNATES - len(folders)]
    return tuple(folders)
