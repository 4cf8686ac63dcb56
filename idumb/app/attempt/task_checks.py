"""Runs the checks of one task, and finds which task broke one that passed before.

For that, it runs on the trees that the tasks of the run left.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

from idumb.app.core.services import Checks, Services
from idumb.app.worktree import task_base
from idumb.domain import contract as contracts
from idumb.domain import outcome, rerun
from idumb.domain.plans.plan import OPINION, UNPROVEN, Plan, Task
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.rerun import Check
from idumb.domain.runs.run import RunState


def run(checks: Checks, check: Check, timeout: float, tree: str | None) -> Evidence:
    if check.condition is not None:
        return checks.condition(check.subject, check.condition, timeout=timeout, tree=tree)
    return checks.command(check.subject, check.text, check.command or "", timeout=timeout, tree=tree)


def check_after(services: Services, checks: Checks, task: Task, plan: Plan, tree: str | None) -> Iterator[Evidence]:
    """Run criteria, Verify, tests, invariants and postconditions, each once, on the frozen files."""
    limit, interrupts = float(services.settings.run.check_timeout), services.interrupts
    effective = contracts.proofs(task)
    checks.renew()
    left = {check.subject: check for check in rerun.checks_of_task(task, plan)}
    for criterion in task.acceptance:
        if (proof := effective[criterion.id]) in _UNCHECKED:
            yield Evidence(criterion.id, criterion.text, _UNCHECKED[proof], tree=tree)
        elif criterion.id in left:
            with interrupts.armed():
                yield run(checks, left.pop(criterion.id), limit, tree)
    for check in left.values():
        with interrupts.armed():
            yield run(checks, check, limit, tree)


_UNCHECKED = {OPINION: evidence.OPINION, UNPROVEN: evidence.UNPROVEN}
"""Results of criteria that no command proves."""


SUBJECT = "invariant "
BROKE = " broke it"


def is_broken(proof: Evidence) -> bool:
    """Whether this is an invariant that fails; one that cannot run or does not end says nothing about the work."""
    return SUBJECT in proof.subject and proof.result == evidence.FAILED and proof.command is not None


def explain(
    services: Services, checks: Checks, state: RunState, checked: Iterable[Evidence], task: str = "", base: str = ""
) -> list[Evidence]:
    """Return the evidence with what broke each invariant that fails.

    `task` is the task of the attempt and `base` its base; without them, it is the evidence at the end of a run.
    """
    before = task_base.tree_between_attempts(services, state, base) if task else ""

    def words(proof: Evidence) -> str:
        def result(tree: str) -> str:
            checks.renew()
            limit = float(services.settings.run.check_timeout)
            with services.interrupts.armed():
                return checks.command(proof.subject, proof.text, str(proof.command), timeout=limit, tree=tree).result

        earlier = result(before) if before else evidence.FAILED
        if earlier in (evidence.ERRORED, evidence.TIMED_OUT):
            return f"it {earlier} before {task}, so what broke it is unknown"
        if earlier != evidence.FAILED:
            return f"{task} broke it"
        return _first_broken(_trees(services, state), lambda tree: result(tree) == evidence.FAILED)

    return [dataclasses.replace(proof, violation=words(proof)) if is_broken(proof) else proof for proof in checked]


def explain_own(
    services: Services,
    checks: Checks,
    state: RunState,
    task: Task,
    own: Sequence[Check],
    checked: Sequence[Evidence],
) -> list[Evidence]:
    """Return the evidence of a completed task's `own` checks with what broke each since. They run in their order."""
    kept, limit = state.tasks[task.id].checkpoint, float(services.settings.run.check_timeout)
    trees = _trees(services, state, since=kept.seq if kept else 0)

    def words(number: int) -> str:
        def fails(tree: str) -> bool:
            checks.renew()
            with services.interrupts.armed():
                return [run(checks, check, limit, tree) for check in own[: number + 1]][-1].result in evidence.BROKEN

        said, criterion = _first_broken(trees, fails), own[number].subject
        by = said.removesuffix(BROKE)
        declares = by in state.tasks and any(criterion == c.id for c in task.acceptance)
        return said + f"; `- **Replaces:** {task.id}/{criterion}` in {by} says that it should" * declares

    return [
        dataclasses.replace(proof, violation=words(number)) if proof.result in evidence.BROKEN else proof
        for number, proof in enumerate(checked)
    ]


def _first_broken(trees: Sequence[tuple[str, str]], fails: Callable[[str], bool]) -> str:
    first = bisect.bisect_left(trees, 1, key=lambda row: int(fails(row[1])))
    return trees[first][0] if first < len(trees) else "a change outside the run broke it"


def _trees(services: Services, state: RunState, since: int = -1) -> list[tuple[str, str]]:
    """Return the tree at the start of the run, and those that finished tasks left; if one fails, its words say why.

    Only those after the event `since`, and none that git has removed.
    """
    done = ((t.checkpoint, t.id) for t in state.tasks.values() if t.status in outcome.DONE)
    ended = sorted((kept.seq, f"{id}{BROKE}", kept.commit, kept.tree) for kept, id in done if kept is not None)
    start = (0, "it did not hold before the run either", state.base.commit, state.base.tree)
    trees = list[tuple[str, str]]()
    for _, words, commit, tree in (row for row in (start, *ended) if row[0] > since):
        with contextlib.suppress(KeyError):  # the user rewrote history, and git removed the commit
            trees.append((words, tree if commit is None else services.history.tree_of(commit)))
    return trees
