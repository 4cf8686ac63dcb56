"""Explains an invariant that does not hold: which task broke it, and since which version the contract has it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from idumb.app.contract import loading
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.app.ports.checks import Checks
from idumb.app.worktree import task_base
from idumb.domain import outcome
from idumb.domain.errors import IdumbError
from idumb.domain.plans.plan import Invariant, Plan
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.runs.run import RunState

SUBJECT = "invariant "
_UNKNOWN = frozenset({evidence.ERRORED, evidence.TIMED_OUT})


def is_broken(proof: Evidence) -> bool:
    """Whether this is an invariant that fails; one that cannot run or does not end says nothing about the work."""
    return SUBJECT in proof.subject and proof.result == evidence.FAILED and proof.command is not None


def explain(context: RunContext, attempt: Attempt, checked: Iterable[Evidence]) -> list[Evidence]:
    """Return the evidence of an attempt with the explanation of each broken invariant."""
    before = None
    if attempt.proven is not None:
        before = task_base.tree_between_attempts(context.services, context.journal.state, attempt.base)
    return [
        dataclasses.replace(proof, violation=_words(context, attempt, proof, before)) if is_broken(proof) else proof
        for proof in checked
    ]


def _words(context: RunContext, attempt: Attempt, proof: Evidence, before: str | None) -> str:
    services, state, task = context.services, context.journal.state, attempt.task.id
    since = _since(services, state, attempt.plan, proof)
    if before is None:
        return f"it does not hold after {task}; {since}"
    result = _result_on(services, context.checks, proof, before)
    if result in _UNKNOWN:
        return f"it {result} before {task}, so what broke it is unknown; {since}"
    if result != evidence.FAILED:
        return f"{task} broke it; {since}"
    return f"{_culprit(services, context.checks, state, proof)}; {since}"


def of_phase(
    services: Services, checks: Checks, state: RunState, plans: Sequence[Plan], checked: Iterable[Evidence]
) -> list[Evidence]:
    """Return the evidence at the end of a run with the explanation of each broken invariant."""

    def words(proof: Evidence) -> str:
        plan = next(p for p in plans if any(i.check == proof.command for i in p.invariants))
        culprit = _culprit(services, checks, state, proof) if checks.apart else "it does not hold at the end"
        return f"{culprit}; {_since(services, state, plan, proof)}"

    return [dataclasses.replace(proof, violation=words(proof)) if is_broken(proof) else proof for proof in checked]


def _result_on(services: Services, checks: Checks, proof: Evidence, tree: str) -> str:
    checks.renew()
    limit = float(services.settings.run.check_timeout)
    with services.interrupts.armed():
        return checks.command(proof.subject, proof.text, str(proof.command), timeout=limit, tree=tree).result


def _culprit(services: Services, checks: Checks, state: RunState, proof: Evidence) -> str:
    """Return the first finished task after which it does not hold, in words: by halving."""
    trees = list(_trees_after(services, state))
    if _result_on(services, checks, proof, _tree_at_start(services, state)) == evidence.FAILED:
        return "it did not hold before the run either"
    low, high = 0, len(trees)
    while low < high:
        middle = (low + high) // 2
        failed = _result_on(services, checks, proof, trees[middle][1]) == evidence.FAILED
        low, high = (low, middle) if failed else (middle + 1, high)
    return f"{trees[low][0]} broke it" if low < len(trees) else "a change outside the run broke it"


def _tree_at_start(services: Services, state: RunState) -> str:
    return state.base.tree if state.base.commit is None else services.history.tree_of(state.base.commit)


def _trees_after(services: Services, state: RunState) -> Iterable[tuple[str, str]]:
    """Yield the finished tasks in the order in which they ended, each with the tree that it left."""
    done = [(t.checkpoint, t.id) for t in state.tasks.values() if t.status in outcome.DONE and t.checkpoint is not None]
    for kept, task in sorted(done, key=lambda pair: pair[0].seq):
        try:
            yield task, kept.tree if kept.commit is None else services.history.tree_of(kept.commit)
        except KeyError:  # the user rewrote history, and git removed the commit
            continue


def _since(services: Services, state: RunState, plan: Plan, proof: Evidence) -> str:
    """Return since which version the contract has the invariant, in words."""
    id = proof.subject.rpartition(SUBJECT)[2]
    version = state.contract.version
    while version > 1 and _has(_invariants_of(services, state, plan.path, version - 1), id, proof.command):
        version -= 1
    why = next((a["why"] for a in state.contract.amendments if a["version"] == version and a.get("why")), "")
    return f"the contract has it since version {version}" + (f" ({why})" if why else "")


def _has(invariants: Sequence[Invariant], id: str, command: str | None) -> bool:
    return any(invariant.id == id and invariant.check == command for invariant in invariants)


def _invariants_of(services: Services, state: RunState, path: str, version: int) -> Sequence[Invariant]:
    """Return the invariants of a plan in an earlier version; none if that version is lost."""
    earlier = dataclasses.replace(state, contract=dataclasses.replace(state.contract, version=version))
    try:
        contract = loading.load_locked(services, earlier, path.rpartition("/")[0]).contract
    except IdumbError:
        return ()
    plans = () if contract is None else contract.plans
    return next((plan.invariants for plan in plans if plan.path == path), ())
