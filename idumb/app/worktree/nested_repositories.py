"""Submodules and nested repositories: what an attempt changed in them is a deviation that no answer makes its own."""

from __future__ import annotations

import dataclasses
import shlex

from idumb.app.core.run_context import Attempt, Bench
from idumb.app.core.services import attempt_ref
from idumb.app.ports.repository import Snapshot
from idumb.domain.plans.plan import Task
from idumb.domain.proof import ledger

_SHOWN = 5


def judge(bench: Bench, attempt: Attempt, found: ledger.Ledger) -> ledger.Ledger:
    """The ledger with a line for each path in another repository that is not as it was before the attempt."""
    if attempt.snapshot is None or bench.workspace.kind != "here":
        return found
    known = set(found.paths(ledger.PROTECTED))
    new = [one for one in bench.services.trees.inner_changes(attempt.snapshot) if one.path not in known]
    lines = tuple(
        ledger.Line(
            one.path, ledger.PROTECTED, ledger.MODIFIED, None, one.repository, within=one.repository, kept=one.kept
        )
        for one in new
    )
    return dataclasses.replace(found, lines=(*found.lines, *lines)) if lines else found


def since(bench: Bench, task: str, attempt: int) -> tuple[str, ...]:
    """Paths in other repositories that are not as they were before an attempt that was interrupted."""
    ref = attempt_ref(bench.services, bench.run, task, attempt, "base")
    commit = bench.services.history.refs(ref).get(ref)
    if commit is None:
        return ()
    return tuple(one.path for one in bench.services.trees.inner_changes(Snapshot(commit, "", ref)))


def tell(bench: Bench, task: Task, snapshot: Snapshot, found: ledger.Ledger) -> None:
    """Where the bytes of before are, and what cannot be brought back."""
    note = bench.services.reporter.note
    lines = [line for line in found.lines if line.within is not None]
    for line in [line for line in lines if line.kept][:_SHOWN]:
        note(f"{line.path} as it was before {task.id}: git show {shlex.quote(place(snapshot.ref, line.path))}")
    for repository in dict.fromkeys(line.within for line in lines if line.within is not None):
        note(
            f"{repository} is a submodule or a repository of its own, into which idumb brings nothing back:"
            f" git -C {shlex.quote(repository)} status shows what is changed in it"
        )


def place(snapshot: str, path: str) -> str:
    """What git calls the kept bytes of a path in another repository."""
    return f"{snapshot}:repositories/{path}"
