"""States in which nothing may run, each with one clear line and the command that shows more."""

from __future__ import annotations

import os
from collections.abc import Sequence

from idumb.domain import errors
from idumb.git import git_program, open_repository
from idumb.git.discover import Repository

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


def find(place: Repository) -> tuple[str, str] | None:
    """Return (code, message) of the first obstacle."""
    return _format(place) or _in_progress(place) or _index(place)


def unsupported(place: Repository) -> tuple[str, str] | None:
    """Return (code, message) if neither git nor idumb can ever work here: format, owner or working tree."""
    asked = ["rev-parse", "--git-dir"]
    return _format(place) or _of_git(asked, git_program.read(place.root, asked))


def _of_git(arguments: Sequence[str], result: git_program.Result) -> tuple[str, str] | None:
    """Ask git itself: it may refuse what libgit2 opens, because of its owner or a damaged index."""
    if result.status == 0:
        return None
    refusal = git_program.failure(arguments, result)
    return refusal.code, refusal.message


def _in_progress(place: Repository) -> tuple[str, str] | None:
    for name, code, words in _IN_PROGRESS:
        if os.path.lexists(os.path.join(place.git_dir, name)):
            return code, f"{words}; finish it first (git status says how)"
    return None


def _format(place: Repository) -> tuple[str, str] | None:
    try:
        repository = open_repository.repository(place)
    except errors.Refusal as refusal:
        return refusal.code, refusal.message
    if repository.is_bare:
        return "git.bare", f"{place.root} is configured as bare (git config core.bare shows it)"
    work_tree = os.path.realpath(repository.workdir or "")
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
