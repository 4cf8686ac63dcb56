"""Runs the checks of one task: its controls before the work, the checks after it, and what broke one that passed.

A check that also passes before the work does not show that the work was done. These controls run on the tree before
the work: in guided mode while the builder works, and a task waits LONGEST_CONTROLS for them. In strict mode and with
`checks.control: before` they run before the builder, and a criterion whose checks passed is an error, unless it says
`keeps:`. What broke a check is found on the trees that the tasks of the run left.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Checks, Services
from idumb.app.worktree import task_base
from idumb.domain import contract as contracts
from idumb.domain import failures, outcome, rerun, wording
from idumb.domain.failures import FailureMessage
from idumb.domain.plans.plan import CHECK, OPINION, UNPROVEN, VERIFY, Task
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.rerun import Check
from idumb.domain.runs.run import RunState
from idumb.domain.settings import CONTROL_BEFORE, CONTROL_OFF

SUBJECT = "invariant "
BROKE = " broke it"
LONGEST_CONTROLS = 30.0
"""Seconds that a guided task waits for its controls after the work: steps take no time, and checks may take long."""

_UNCHECKED = {OPINION: evidence.OPINION, UNPROVEN: evidence.UNPROVEN}
"""Results of criteria that no command proves."""


def run(checks: Checks, check: Check, tree: str | None) -> Evidence:
    if check.condition is not None:
        return checks.condition(check.subject, check.condition, tree=tree)
    return checks.command(check.subject, check.text, check.command or "", tree=tree)


def check_after(context: RunContext, attempt: Attempt, tree: str) -> Iterator[Evidence]:
    """Run criteria, Verify, tests, invariants and postconditions, each once, on the frozen files."""
    checks, interrupts, task = context.checks, context.services.interrupts, attempt.task
    effective = contracts.proofs(task)
    checks.renew()
    left = {check.subject: check for check in rerun.checks_of_task(task, attempt.plan)}
    for criterion in task.acceptance:
        if (proof := effective[criterion.id]) in _UNCHECKED:
            yield Evidence(criterion.id, criterion.text, _UNCHECKED[proof], tree=tree)
        elif criterion.id in left:
            with interrupts.armed():
                yield run(checks, left.pop(criterion.id), tree)
    for check in left.values():
        with interrupts.armed():
            yield run(checks, check, tree)


def is_broken(proof: Evidence) -> bool:
    """Whether this is an invariant that fails; one that cannot run or does not end says nothing about the work."""
    return SUBJECT in proof.subject and proof.result == evidence.FAILED and proof.command is not None


def explain(
    services: Services, checks: Checks, state: RunState, checked: Iterable[Evidence], task: str = "", base: str = ""
) -> list[Evidence]:
    """Return the evidence with what broke each invariant that fails.

    `task` is the task of the attempt and `base` its base; without them, it is the evidence at the end of a run.
    """

    def words(proof: Evidence) -> str:
        check = Check(proof.subject, proof.text, str(proof.command))
        before = task_base.tree_between_attempts(services, state, base) if task else ""
        earlier = _result(services, checks, [check], before) if before else evidence.FAILED
        if earlier in (evidence.ERRORED, evidence.TIMED_OUT):
            return f"it {earlier} before {task}, so what broke it is unknown"
        if earlier != evidence.FAILED:
            return f"{task} broke it"
        trees = _trees(services, state)
        return _first_broken(trees, lambda tree: _result(services, checks, [check], tree) == evidence.FAILED)

    return [replace(proof, violation=words(proof)) if is_broken(proof) else proof for proof in checked]


def explain_own(
    services: Services,
    checks: Checks,
    state: RunState,
    task: Task,
    own: Sequence[Check],
    checked: Sequence[Evidence],
) -> list[Evidence]:
    """Return the evidence of a completed task's `own` checks with what broke each since. They run in their order."""
    kept = state.tasks[task.id].checkpoint
    trees = _trees(services, state, since=kept.seq if kept else 0)

    def words(number: int) -> str:
        before = own[: number + 1]
        said = _first_broken(trees, lambda tree: _result(services, checks, before, tree) in evidence.BROKEN)
        criterion = own[number].subject
        by = said.removesuffix(BROKE)
        declares = by in state.tasks and any(criterion == c.id for c in task.acceptance)
        return said + f"; `- **Replaces:** {task.id}/{criterion}` in {by} says that it should" * declares

    return [
        replace(proof, violation=words(number)) if proof.result in evidence.BROKEN else proof
        for number, proof in enumerate(checked)
    ]


def _result(services: Services, checks: Checks, wanted: Sequence[Check], tree: str) -> str:
    """Return the result of the last of these checks on a tree, after the others ran there."""
    checks.renew()
    with services.interrupts.armed():
        return [run(checks, check, tree) for check in wanted][-1].result


def _first_broken(trees: Sequence[tuple[str, str]], fails: Callable[[str], bool]) -> str:
    first = bisect.bisect_left(trees, 1, key=lambda row: int(fails(row[1])))
    return trees[first][0] if first < len(trees) else "a change outside the run broke it"


def _trees(services: Services, state: RunState, since: int = -1) -> list[tuple[str, str]]:
    """Return the trees at the start of the run, and before and after each finished task; words say who broke one.

    Only those after the event `since`, and none that git has removed.
    """
    history, trees = services.history, list[tuple[str, str]]()
    done = ((t.checkpoint, t.id) for t in state.tasks.values() if t.status in outcome.DONE)
    ended = sorted((kept.seq, id, kept.commit, kept.tree) for kept, id in done if kept is not None)
    for seq, id, commit, tree in ((0, "", state.base.commit, state.base.tree), *ended):
        with contextlib.suppress(KeyError):  # the user rewrote history, and git removed the commit
            if seq > since and id and commit:
                trees.append((f"a change outside the run before {id}{BROKE}", history.tree_before(commit)))
            if seq > since:
                words = f"{id}{BROKE}" if id else "it did not hold before the run either"
                trees.append((words, tree if commit is None else history.tree_of(commit)))
    return trees


# The controls, which run before the work.


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


def run_controls(context: RunContext, attempt: Attempt) -> Attempt:
    """Run the controls before anything else, unless they have run.

    The attempt ends if the verdict needs them and a criterion was proven before the work.
    """
    if attempt.controls or not _start_controls(context, attempt):
        return attempt
    with context.services.interrupts.armed():
        results = context.checks.end_controls(limit=None if controls_decide(context) else LONGEST_CONTROLS)
    attempt = replace(attempt, controls=results)
    subjects = passed_before(attempt.task, results)
    if not subjects or not controls_decide(context):
        return attempt
    failure = _failure(context, subjects)
    return replace(attempt, failure=failure).ended(outcome.ERRORED, failure.message)


@contextlib.contextmanager
def controls_beside(context: RunContext, attempt: Attempt) -> Iterator[dict[str, str]]:
    """Run the controls while a builder works; afterwards the dictionary has their results."""
    results, limit = dict(attempt.controls), 0.0
    started = not controls_decide(context) and _start_controls(context, attempt)
    try:
        yield results
        limit = LONGEST_CONTROLS
    finally:
        if started:
            with context.services.interrupts.armed():
                results.update(context.checks.end_controls(limit=limit))


def with_controls(attempt: Attempt, checked: Sequence[Evidence]) -> list[Evidence]:
    """Return the evidence with the results before the work."""
    results = attempt.controls
    return [
        replace(e, control=results[e.command])
        if e.command is not None and e.command in results and not e.subject.startswith(("test ", "invariant "))
        else e
        for e in checked
    ]


def _start_controls(context: RunContext, attempt: Attempt) -> bool:
    """Begin to run the controls of a task; return whether it has any."""
    services, task = context.services, attempt.task
    needed = {} if services.settings.checks.control == CONTROL_OFF or task.is_human else commands(task)
    if needed:
        tree = task_base.tree_before(context, attempt)
        context.checks.start_controls(needed, tree=tree)
    return bool(needed)


def controls_decide(context: RunContext) -> bool:
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
