"""A branch for a run: made where HEAD is and HEAD put on it. Neither index nor work tree is read or written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from idumb.domain import errors
from idumb.git import git_program
from idumb.git.discover import Repository
from idumb.git.objects import durable_files
from idumb.git.refs import refs

if TYPE_CHECKING:
    import pygit2

_NOTHING = "0" * 40


def begin(place: Repository, repository: pygit2.Repository, name: str, commit: str | None) -> None:
    """Refusal `git.branch-name`, `git.branch-exists` or `git.failed`; killed in between, it is simply said again."""
    if git_program.read(place.root, ["check-ref-format", "--branch", name]).status != 0:
        raise errors.Refusal(
            "git.branch-name", f"{name!r} is no name for a branch.", hint="Correct git.branch_name or --branch"
        )
    ref = f"refs/heads/{name}"
    if commit is not None:
        _make(place, repository, name, ref, commit)
    place.guard()
    _run(place, ["symbolic-ref", "-m", f"idumb: on to {name}", "HEAD", ref])
    durable_files.force([os.path.join(place.git_dir, "HEAD"), place.git_dir])


def _make(place: Repository, repository: pygit2.Repository, name: str, ref: str, commit: str) -> None:
    found = repository.references.get(ref)
    if found is not None and (str(found.resolve().target) != commit or _is_elsewhere(repository, name)):
        raise errors.Refusal(
            "git.branch-exists",
            f"There is a branch {name} already, and it is not where HEAD is.",
            hint=f"git switch {name}, or choose another name: --branch NAME",
        )
    if found is None:
        place.guard()
        _run(place, ["update-ref", ref, commit, _NOTHING])
        refs.sync(place, ref)


def _is_elsewhere(repository: pygit2.Repository, name: str) -> bool:
    branch = repository.branches.local.get(name)
    return branch is not None and bool(branch.is_checked_out())


def _run(place: Repository, arguments: list[str]) -> None:
    done = git_program.write(place.root, arguments)
    if done.status != 0:
        raise git_program.failure(arguments, done)
