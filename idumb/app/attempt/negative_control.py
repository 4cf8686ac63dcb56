"""The negative control: a check that also passes before the work does not show that the work was done.

Each check runs on the tree before the work: in guided mode while the builder works, and a task waits LONGEST for that.
In strict mode and with `checks.control: before` it runs before the builder, and a criterion whose checks passed is an
error, unless it says `keeps:`.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.worktree import task_base
from idumb.domain import contract as contracts
from idumb.domain import failures, outcome, rerun, wording
from idumb.domain.failures import FailureMessage
from idumb.domain.plans.plan import CHECK, VERIFY, Task
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import CONTROL_BEFORE, CONTROL_OFF

LONGEST = 30.0
"""Seconds that a guided task waits for its controls after the work: steps take no time, and checks may take long."""


def commands(task: Task) -> dict[str, str]:
    """Return the commands that must depend on the work, each with its subject.

    Invariants, tests and criteria that keep a property say themselves what holds before the work.
    """
    kept = {c.command for c in task.acceptance if c.keeps}
    subjects: dict[str, str] = {}
    for check in rerun.checks_of_task(task):
        if check.command and check.command not in kept and not check.is_test:
            subjects.setdefault(check.command, check.subject)
    return subjects


def run_before(context: RunContext, attempt: Attempt) -> Attempt:
    """Run the controls before anything else, unless they have run.

    The attempt ends if the verdict needs them and a criterion was proven before the work.
    """
    if attempt.controls or not _start(context, attempt):
        return attempt
    with context.services.interrupts.armed():
        results = context.checks.end_controls(limit=None if decides(context) else LONGEST)
    attempt = dataclasses.replace(attempt, controls=results)
    subjects = passed_before(attempt.task, results)
    if not subjects or not decides(context):
        return attempt
    failure = _failure(context, subjects)
    return dataclasses.replace(attempt, failure=failure).ended(outcome.ERRORED, failure.message)


@contextlib.contextmanager
def beside(context: RunContext, attempt: Attempt) -> Iterator[dict[str, str]]:
    """Run the controls while a builder works; afterwards the dictionary has their results."""
    results, limit = dict(attempt.controls), 0.0
    started = not decides(context) and _start(context, attempt)
    try:
        yield results
        limit = LONGEST
    finally:
        if started:
            with context.services.interrupts.armed():
                results.update(context.checks.end_controls(limit=limit))


def compare(attempt: Attempt, checked: Sequence[Evidence]) -> list[Evidence]:
    """Return the evidence with the results before the work."""
    results = attempt.controls
    return [
        dataclasses.replace(e, control=results[e.command])
        if e.command is not None and e.command in results and not e.subject.startswith(("test ", "invariant "))
        else e
        for e in checked
    ]


def _start(context: RunContext, attempt: Attempt) -> bool:
    """Begin to run the controls of a task; return whether it has any."""
    services, task = context.services, attempt.task
    needed = {} if services.settings.checks.control == CONTROL_OFF or task.is_human else commands(task)
    if needed:
        tree = task_base.tree_between_attempts(services, context.journal.state, attempt.base, attempt.mine)
        limit = float(services.settings.run.check_timeout)
        context.checks.start_controls(needed, tree=tree, timeout=limit)
    return bool(needed)


def decides(context: RunContext) -> bool:
    """Return whether the verdict needs the controls."""
    return context.strict or context.services.settings.checks.control == CONTROL_BEFORE


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
