"""Prove a phase or a task: rerun the recorded evidence in a fresh clone of the commit, and compare.

Reads only: it takes no lock, writes no event, and changes nothing in the repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from idumb.app.consent import phase_grants
from idumb.app.contract import loading
from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.run_lookup import Place
from idumb.app.core.services import Services
from idumb.app.verify import prove_head, reruns
from idumb.app.verify.reruns import Proof, Row
from idumb.domain import contract as contracts
from idumb.domain import outcome, rerun, wording
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import HUMAN, OPINION, Task
from idumb.domain.proof import evidence
from idumb.domain.runs.run import RunState, TaskState

if TYPE_CHECKING:
    from idumb.git.checkouts.checkout import Checkout

_WORD = "a person's or a model's word, which cannot be rerun"
_COUNTED = "idumb counted this from the change itself"
_NO_PROOF = "the plan names no check for it"

_SAID = ("validator", evidence.SECRET)
_OWN = ".idumb/"


def prove(
    services: Services, phase: str | None, task: str | None = None, *, commit: str = "", approved: tuple[str, ...] = ()
) -> Result:
    """Rerun the evidence of the completed tasks of a phase's newest run, and say for each whether the commit proves it.

    Without a run of the phase in this working tree, or with `commit`, prove what is committed; `approved` are then
    hashes of contracts whose commands may run. A `task` is proven at its own commit, and a phase at its newest one.
    Without a phase, it is that of the newest task in the history of `commit`.
    """
    if commit:
        prove_head.require_checked_out(services, commit)
    phase = phase or prove_head.newest_phase(services)
    if commit or run_lookup.recorded_phase(services, phase) is None:
        return prove_head.prove(services, phase, task, approved)
    state = run_lookup.named_run(services, phase)
    contract = loading.locked_contract(services, state)
    chosen = _chosen(state, contract, task)
    phase_grants.require_ran(services, contract, state)
    rows = {
        one.id: _row(one, None, reruns.NO_COMMIT, "neither a commit nor a checkpoint has its work") for one in chosen
    }
    criteria, notes = list[Row](), list[str]()
    place = run_lookup.place_of_run(services, state) if task is None else run_lookup.place_of_task(state, chosen[0])
    there = [one for one in chosen if run_lookup.place_of_task(state, one) is not None]
    if place is not None:
        of_tasks, criteria, notes = _prove(services, state, contract, place, there, whole=task is None)
        rows |= {row["id"]: row for row in of_tasks}
    return _result(state, place, [*rows.values()], criteria, notes)


def _chosen(state: RunState, contract: Contract, task: str | None) -> list[TaskState]:
    """Return the completed tasks to prove. Refusal `prove.nothing-done` if there is none."""
    done = [one for one in state.tasks.values() if one.status in outcome.DONE and one.id in contract.tasks]
    if task is not None:
        task = reruns.chosen(contract, task)
        done = [one for one in done if one.id == task]
    if not done:
        what = (
            f"{task} is not completed" if task else f"Run {state.number} of phase {state.phase} has no completed task"
        )
        raise Refusal(
            "prove.nothing-done",
            f"{what}, so there is no evidence to rerun.",
            hint=Action.of("show", task) if task else Action.of("resume", state.phase),
            details={"phase": state.phase},
        )
    return done


def _prove(
    services: Services, state: RunState, contract: Contract, place: Place, tasks: Sequence[TaskState], *, whole: bool
) -> tuple[list[Row], list[Row], list[str]]:
    """Return the rows of the tasks, with `whole` those of the phase, and notes."""
    if place.commit is not None and not services.history.is_named(place.commit):
        why = f"commit {place.commit[:10]} is on no branch and no tag, so a clone does not have it"
        return [_row(task, place, reruns.NO_COMMIT, why) for task in tasks], [], []
    opened = services.open_as_stranger(place.commit or place.head, run_lookup.left_paths(state))
    with services.interrupts.armed(), opened as (clone, checks):
        tree = _tree(services, clone, place)
        if tree is None:
            why = f"checkpoint {(place.snapshot or '')[:10]} no longer exists"
            return [_row(task, place, reruns.NO_COMMIT, why) for task in tasks], [], []
        clone.show(tree, place.commit or place.head)
        given = checks.given(contract.variables)
        proof = Proof(services, contract, contract.plan_by_task(), tree, given, reruns.notes(clone))
        rows = [_task(proof, state, task, place, whole=whole) for task in tasks]
        criteria = list(_phase(proof, state)) if whole else []
        failing = any(c["result"] == rerun.NOW_FAILS for c in (*criteria, *(c for row in rows for c in row["checks"])))
        ignored = [path for path in services.trees.ignored() if not path.startswith(_OWN)] if failing else []
        if ignored:
            words = wording.listed(ignored)
            proof.notes.append(f"The clone has none of the files that git ignores in your working tree: {words}")
        return rows, criteria, proof.notes


def _tree(services: Services, clone: Checkout, place: Place) -> str | None:
    """Return the tree to prove: that of the commit, or what a commit of a checkpoint's paths would hold; or None."""
    if place.commit is not None:
        return services.history.tree_of(place.commit)
    try:
        kept = services.trees.tree_at(place.snapshot or "")
    except (Refusal, KeyError):
        return None
    return clone.committed(place.head, kept, place.paths)


def _task(proof: Proof, state: RunState, task: TaskState, place: Place, *, whole: bool) -> Row:
    declared = proof.contract.tasks[task.id]
    if whole:
        done = [id for id, one in state.tasks.items() if one.status in outcome.DONE]
        declared = contracts.without_replaced(proof.contract, declared, done)
    # The evidence of the attempt that completed it, perhaps in an earlier run.
    made_in = run_lookup.attempting_run(proof.services, state, task.id).id
    number = task.checkpoint.attempt if task.checkpoint is not None else task.attempt.number
    events = proof.services.log.events(run=made_in, task=task.id, kind="evidence.recorded")
    recorded = rerun.last_of_each([event.payload for event in events if event.attempt == number])
    checks = rerun.checks_of_task(declared, proof.plans[task.id])
    rows = [reruns.run(proof, check, recorded.pop(check.subject, None)) for check in checks]
    rows += _not_rerun(declared, recorded)
    return _row(task, place, reruns.result_of(rows), checks=rows)


def _row(task: TaskState, place: Place | None, result: str, why: str = "", checks: Sequence[Row] = ()) -> Row:
    return {
        "id": task.id,
        "status": task.status,
        "result": result,
        "commit": None if place is None else place.commit,
        "checkpoint": None if place is None else place.snapshot,
        "why": why,
        "checks": list(checks),
    }


def _not_rerun(declared: Task, recorded: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """Yield the evidence that no check of the plan repeats."""
    kinds = contracts.proofs(declared)
    for subject, row in recorded.items():
        has_command = bool(row.get("command"))
        words = _COUNTED if row["result"] in {evidence.PASSED, *evidence.BROKEN} else _NO_PROOF
        if kinds.get(subject) in (HUMAN, OPINION) or subject.startswith(_SAID) or row["result"] == evidence.OPINION:
            words = _WORD
        if has_command:
            words = "the plan no longer has this check"
        yield reruns.not_run(subject, row["text"], words, row["result"], row.get("command"))


def _phase(proof: Proof, state: RunState) -> Iterator[Row]:
    """Yield the success criteria and invariants of the phase, compared with its newest verification."""
    record = state.verification or {}
    recorded = {str(row["subject"]): row for row in record.get("evidence", ())}
    for check in rerun.checks_of_phase(proof.contract.plans):
        yield reruns.run(proof, check, recorded.pop(check.subject, None))
    for subject, row in recorded.items():
        if row.get("command") is None:
            words = _NO_PROOF if row["result"] == evidence.UNPROVEN else _WORD
            yield reruns.not_run(subject, row["text"], words, row["result"])


def _result(state: RunState, place: Place | None, rows: list[Row], criteria: list[Row], notes: Sequence[str]) -> Result:
    verify = Action.of("verify-work", state.phase)
    wrong, hidden = reruns.unproven(rows), [row["id"] for row in rows if row["checkpoint"] is not None]
    ways: list[Action | str] = [Action.of("show", wrong[0]), verify] if wrong else [verify]
    for row in rows:
        if row["result"] == reruns.NO_COMMIT and row["commit"]:
            ways = [f"git branch proof-of-{row['id']} {row['commit']}", verify]
    if hidden:
        words = f"{wording.listed(hidden)}: no commit has this work (commit: none), so a hidden checkpoint was proven"
        notes = [*notes, f"{words}; no clone but one of this repository has it"]
    commit, checkpoint = (None, None) if place is None else (place.commit, place.snapshot)
    facts = {"phase": state.phase, "run": state.id, "commit": commit, "checkpoint": checkpoint}
    return reruns.result(facts, rows, criteria, notes, ways)
