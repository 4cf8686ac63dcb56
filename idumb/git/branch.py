"""What moves the user's branch: to a commit that was made beside it, and to a new branch for a run."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

from idumb.domain import errors
from idumb.git import git_program, index_file, open_repository, refs
from idumb.git.discover import Repository
from idumb.git.objects import durable_files, tree_objects

if TYPE_CHECKING:
    import pygit2


def advance(
    place: Repository,
    repository: pygit2.Repository,
    branch: str | None,
    commit: str,
    expected: str | None,
    message: str,
    own: Collection[str] = (),
) -> str:
    """Move the branch to a commit on top of `expected`, by compare-and-swap; None is a detached HEAD.

    First the index gets the entries of the paths that the commit changed, where it still has those from before: what
    else the user staged for them stays, except of `own`, of which the commit has his files as they are. The other way
    round, his next commit would undo the work if idumb were killed between the two. Return git's words if it refuses;
    the index is then as HEAD has it.
    Repeating the call is safe.
    """
    if open_repository.head_of(repository) == commit:
        durable_files.force_below(*((place.git_dir, ["HEAD"]) if branch is None else (place.common_dir, [branch])))
        return ""
    before, after = (tree_objects.tree_of(repository, commit_id) for commit_id in (expected, commit))
    try:
        followed = index_file.follow(place, repository, before, after, own)
    except errors.Refusal as refusal:
        return str(refusal)
    # Before the branch: git does not force it, and its rename must not precede its bytes.
    durable_files.force(path for path in (index_file.path_of(place), place.git_dir) if os.path.exists(path))
    try:
        refs.swap(repository, place, branch or "HEAD", expected, commit, message)
    except errors.Refusal as refusal:
        present = tree_objects.tree_of(repository, open_repository.head_of(repository))
        index_file.set_to(place, repository, present, followed)
        return str(refusal)
    return ""


def begin(place: Repository, repository: pygit2.Repository, name: str, commit: str | None) -> None:
    """Create a branch at `commit` and put HEAD on it. Index and files stay. If it was killed, repeat it.

    Refusal `git.branch-name`, `git.branch-exists` or `git.failed`.
    """
    if git_program.read(place.root, ["check-ref-format", "--branch", name]).status != 0:
        raise errors.Refusal(
            "git.branch-name", f"{name!r} is not a valid branch name.", hint="Correct git.branch_name or --branch"
        )
    ref = f"refs/heads/{name}"
    if commit is not None:
        _create(place, repository, name, ref, commit)
    place.guard()
    git_program.change(place.root, ["symbolic-ref", "-m", f"idumb: on to {name}", "HEAD", ref])
    durable_files.force([os.path.join(place.git_dir, "HEAD"), place.git_dir])


def _create(place: Repository, repository: pygit2.Repository, name: str, ref: str, commit: str) -> None:
    present, branch = repository.references.get(ref), repository.branches.local.get(name)
    is_elsewhere = branch is not None and branch.is_checked_out()
    if present is not None and (str(present.resolve().target) != commit or is_elsewhere):
        words = f"Branch {name} already exists, and it is not where HEAD is."
        raise errors.Refusal(
            "git.branch-exists", words, hint=f"git switch {name}, or choose another name: --branch NAME"
        )
    if present is None:
        refs.swap(repository, place, ref, None, commit, f"on to {name}")
