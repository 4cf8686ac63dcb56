"""Commits as a run makes them: the work of a task, the commit beside the branch, and the branch that follows."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from idumb.app.ports import CommitAttempt
from idumb.git.history import GitHistory
from tests.adapters.git.conftest import trees_of
from tests.support.gitrepo import GitSandbox

MESSAGE = "T1-01: für alle\n\n# not a comment\n\nIdumb-Task: T1-01\nIdumb-Run: r1\n"


def hook(sandbox: GitSandbox, script: str, name: str = "pre-commit", folder: str = ".git/hooks") -> None:
    sandbox.write(f"{folder}/{name}", f"#!/bin/sh\n{script}\n", mode=0o755)


def work(sandbox: GitSandbox, files: Mapping[str, str | None]) -> str:
    """Write these files, or remove them; return the tree that a commit of them on HEAD has."""
    sandbox.change(files)
    return committed(sandbox, files)


def committed(sandbox: GitSandbox, paths: Collection[str]) -> str:
    trees = trees_of(sandbox)
    return trees.committed(sandbox.head() or None, trees.scan(paths), tuple(paths))


def make(history: GitHistory, tree: str, *, hooks: bool = True, message: str = MESSAGE) -> CommitAttempt:
    return history.make(tree, history.head().commit, message, hooks=hooks)


def advance(history: GitHistory, made: CommitAttempt) -> str:
    assert made.commit, made.words
    return history.advance(history.head().branch, made.commit, history.head().commit, "T1-01")


def commit(history: GitHistory, tree: str, *, hooks: bool = True) -> str:
    made = make(history, tree, hooks=hooks)
    assert advance(history, made) == ""
    return str(made.commit)
