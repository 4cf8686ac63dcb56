"""The negative control: a check that also passes before the work does not show that the work was done.

While the builder works, each check runs on the tree before the work. In guided mode, a task never waits for that; in
strict mode and with `checks.control: before`, a criterion whose checks passed before is an error, unless it says
`keeps:`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import CONTROLS, RunContext
from idumb.app.worktree import task_base
from idumb.domain import contract as contracts
from idumb.domain import failures, outcome, wording
from idumb.domain.failures import FailureMessage
from idumb.domain.plans.plan import CHECK, VERIFY, Task
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import CONTROL_BEFORE, CONTROL_OFF, CheckSettings

DELAY = 1.0
"""Seconds that a builder of a guided plan works before its controls begin: a short task does not run checks twice."""


def commands(task: Task) -> dict[str, str]:
    """Return the commands that must depend on the work, each with its subject.

    Invariants, tests and criteria that keep a property say themselves what holds before the work.
    """
    proofs = contracts.proofs(task)
    own = [(c.command, c.id) for c in task.acceptance if c.command and proofs[c.id] == CHECK and not c.keeps]
    own += [(command, f"verify {i}") for i, command in enumerate(task.verify, 1)]
    conditions = enumerate(task.postconditions, 1)
    own += [(c.subject, f"postcondition {i}") for i, c in conditions if c.kind == "command"]
    kept = {c.command for c in task.acceptance if c.keeps}
    subjects: dict[str, str] = {}
    for command, subject in own:
        if command not in kept:
            subjects.setdefault(command, subject)
    return subjects


def start(context: RunContext, attempt: Attempt) -> None:
    """Begin to run the checks of a task on the tree before its work, beside the builder."""
    services, task = context.services, attempt.task
    off = _setting(context) == CONTROL_OFF
    needed = {} if off or task.is_human else commands(task)
    if not needed:
        return
    tree = task_base.tree_between_attempts(services, context.journal.state, attempt.base)
    limit = float(services.settings.run.check_timeout)
    context.notes[CONTROLS] = True
    context.checks.start_controls(needed, tree=tree, timeout=limit, delay=0.0 if _must_run(context) else DELAY)


def compare(context: RunContext, attempt: Attempt, checked: Sequence[Evidence]) -> tuple[Attempt, list[Evidence]]:
    """Return the evidence with the results before the work.

    Where controls must run, an attempt ends if nothing else failed and a criterion was proven before the work.
    """
    if _must_run(context) and CONTROLS not in context.notes:
        start(context, attempt)
    if CONTROLS not in context.notes:
        return attempt, list(checked)
    waits = _must_run(context) and not any(e.result in evidence.BROKEN for e in checked)
    with context.services.interrupts.armed():
        results = context.checks.controls(wait=waits)
    context.checks.stop_controls()
    compared = [
        dataclasses.replace(e, control=results[e.command])
        if e.command is not None and e.command in results and _is_controlled(e)
        else e
        for e in checked
    ]
    if not waits:
        return attempt, compared
    subjects = passed_before(attempt.task, results)
    if not subjects:
        return attempt, compared
    failure = _failure(context, subjects)
    attempt = dataclasses.replace(attempt, evidence=(*attempt.evidence, *compared), failure=failure)
    return attempt.ended(outcome.ERRORED, failure.message), compared


def _setting(context: RunContext) -> str:
    return (context.services.settings.checks or CheckSettings()).control


def _must_run(context: RunContext) -> bool:
    """Return whether the verdict waits for the controls."""
    return context.strict or _setting(context) == CONTROL_BEFORE


def _is_controlled(proof: Evidence) -> bool:
    return not proof.subject.startswith(("test ", "invariant "))


def passed_before(task: Task, results: Mapping[str, str]) -> list[str]:
    """Return the criteria of which every command passed before the work; `verify` stands for those that it proves."""
    proofs = contracts.proofs(task)
    subjects = [
        c.id
        for c in task.acceptance
        if c.command and not c.keeps and proofs[c.id] == CHECK and results.get(c.command) == evidence.PASSED
    ]
    by_verify = [c.id for c in task.acceptance if proofs[c.id] == VERIFY]
    needs_verify = bool(by_verify) or not task.acceptance
    kept = {c.command for c in task.acceptance if c.keeps}
    verify = [command for command in task.verify if command not in kept]
    if verify and needs_verify and all(results.get(command) == evidence.PASSED for command in verify):
        subjects += by_verify or ["Verify"]
    return subjects


def _failure(context: RunContext, subjects: Sequence[str]) -> FailureMessage:
    verb = "does" if len(subjects) == 1 else "do"
    words = f"{wording.listed(subjects)} passed before the work too, and so {verb} not show that it was done"
    fix = "Correct the check in the plan, or write `keeps:` instead of `check:` for a property that must stay true"
    command = f"idumb amend {context.contract.phase} --from-file"
    return FailureMessage(failures.PASSED_BEFORE, words, fix, command)
