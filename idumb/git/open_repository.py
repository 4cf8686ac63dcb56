"""Open a repository with libgit2, or say in one line why that is impossible or why nothing may run in it now.

Also finds the folders from which it reads objects.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence

import pygit2
from pygit2.enums import Option, RepositoryOpenFlag

from idumb.domain import errors
from idumb.git import git_program
from idumb.git.discover import Repository
from idumb.git.objects.checked_repository import CheckedRepository
from idumb.system.files import user_folders

_MOST_LENDERS = 50
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


def repository(place: Repository) -> pygit2.Repository:
    """Raises Refusal `git.unsupported-format`, `git.ownership` or `git.unreadable`."""
    # libgit2 then forces objects and refs to disk; for refs, it decides that when it first reads one.
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, 1)
    pygit2.settings.cache_max_size(_CACHE)
    try:
        opened = CheckedRepository(place.root, RepositoryOpenFlag.NO_SEARCH)
        opened.folders = lenders(place)
        with contextlib.suppress(pygit2.GitError, KeyError, ValueError):
            opened.lookup_reference("HEAD")
    except (pygit2.GitError, KeyError, ValueError) as problem:
        raise _refusal(place, str(problem)) from problem
    return opened


def _refusal(place: Repository, words: str) -> errors.Refusal:
    """Return one clear line for a repository that libgit2 does not open."""
    if "owned by" in words or "owner" in words:
        return errors.Refusal(
            "git.ownership",
            f"{place.root} belongs to another user, and git does not trust it",
            hint="git status  (it names the missing safe.directory entry)",
        )
    if "extension" in words or "object format" in words or "objectformat" in words or "version" in words:
        return errors.Refusal(
            "git.unsupported-format",
            f"{place.root} uses a repository format that idumb cannot read yet: {words}",
            hint="git config --list --local",
        )
    return errors.Refusal("git.unreadable", f"{place.root} cannot be opened: {words}", hint="git status")


def head_of(repository: pygit2.Repository) -> str | None:
    """Return HEAD's commit; None before the first."""
    return None if repository.head_is_unborn else str(repository.head.target)


def branch_of(repository: pygit2.Repository) -> str | None:
    """Return the full name of the branch that HEAD is on; None if HEAD is detached."""
    target = repository.lookup_reference("HEAD").raw_target
    return os.fsdecode(target) if isinstance(target, bytes) else None


def obstacle(place: Repository) -> tuple[str, str] | None:
    """Return (code, message) of the first obstacle."""
    return _format(place) or _state_folder_within(place) or in_progress(place) or _index(place)


def unsupported(place: Repository) -> tuple[str, str] | None:
    """Return (code, message) if neither git nor idumb can ever work here: format, owner or place."""
    arguments = ["rev-parse", "--git-dir"]
    refused = _format(place) or _of_git(arguments, git_program.read(place.root, arguments))
    return refused or _state_folder_within(place)


def _state_folder_within(place: Repository) -> tuple[str, str] | None:
    """Return why nothing may run if idumb's own folder is among the user's files: HOME may be a repository."""
    folder = os.path.realpath(user_folders.path())
    if os.path.commonpath((folder, place.root)) != place.root:
        return None
    inside = f"./{os.path.relpath(folder, place.root)}/"  # this command does not support literal paths
    if git_program.read(place.root, ["check-ignore", "-q", inside], extra={"GIT_LITERAL_PATHSPECS": "0"}).status == 0:
        return None
    return "git.holds-state", f"{folder}, idumb's own folder, is in this working tree, and git does not ignore it"


def _of_git(arguments: Sequence[str], result: git_program.Result) -> tuple[str, str] | None:
    """Ask git itself: it may refuse what libgit2 opens, because of its owner or a damaged index."""
    if result.status == 0:
        return None
    refusal = git_program.failure(arguments, result)
    return refusal.code, refusal.message


def in_progress(place: Repository) -> tuple[str, str] | None:
    """Return (code, message) of an operation that was begun and not finished."""
    for name, code, words in _IN_PROGRESS:
        if os.path.lexists(os.path.join(place.git_dir, name)):
            return code, f"{words}; finish it first (git status says how)"
    return None


def _format(place: Repository) -> tuple[str, str] | None:
    try:
        opened = repository(place)
    except errors.Refusal as refusal:
        return refusal.code, refusal.message
    if opened.is_bare:
        return "git.bare", f"{place.root} is configured as bare (git config core.bare shows it)"
    work_tree = os.path.realpath(opened.workdir or "")
    if work_tree != place.root:
        return "git.work-tree-elsewhere", f"core.worktree names {work_tree}, not {place.root}"
    return None


def _index(place: Repository) -> tuple[str, str] | None:
    lock = os.path.join(place.git_dir, "index.lock")
    if os.path.lexists(lock):
        return "git.index-locked", f"{lock} exists: another git command is running, or one was killed (git status)"
    result = git_program.read(place.root, ["ls-files", "--unmerged", "-z"])
    refused = _of_git(["ls-files"], result)
    if refused is not None or not result.out:
        return refused
    path = os.fsdecode(result.out.split(b"\0")[0].partition(b"\t")[2])
    return "git.unmerged", f"{path} is unmerged in the index; resolve it first (git status lists all)"


def lenders(repository: Repository) -> tuple[str, ...]:
    """Return the user's object folder, and those that it borrows from.

    All are listed, because git ignores relative names in the second repository of such a chain.
    """
    folders = [os.path.join(repository.common_dir, "objects")]
    for folder in folders:
        folders += [path for path in _borrowed_by(folder) if path not in folders][: _MOST_LENDERS - len(folders)]
    return tuple(folders)


def _borrowed_by(objects: str) -> list[str]:
    try:
        with open(os.path.join(objects, "info", "alternates"), "rb") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return []
    # git decodes quoted names itself.
    plain = [os.fsdecode(line) for line in lines if line and not line.startswith((b"#", b'"'))]
    return [os.path.normpath(os.path.join(objects, line)) for line in plain]


def alternates(folders: Iterable[str]) -> bytes:
    """Return the content of the alternates file for these object folders."""
    return b"".join(os.fsencode(folder) + b"\n" for folder in folders)
