"""Prove a run, or a task of it: rerun the recorded evidence in a fresh clone of the commit, and compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from idumb.app.consent import phase_grants
from idumb.app.contract import loading
from idumb.app.core import run_lookup
from idumb.app.core.run_lookup import Place
from idumb.app.core.services import Checks, Result, Services
from idumb.domain import contract as contracts
from idumb.domain import errors, outcome, rerun, wording
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import HUMAN, OPINION, Plan, Task
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.rerun import Check
from idumb.domain.runs.run import RunState, TaskState

if TYPE_CHECKING:
    from idumb.git.checkouts.checkout import Checkout

PROVEN, MISMATCH, NO_COMMIT, NOTHING_TO_RUN = "proven", "mismatch", "no_commit", "nothing_to_run"

Row = dict[str, Any]

_WORD = "a person's or a model's word, which cannot be rerun"
_COUNTED = "idumb counted this from the change itself"
NO_PROOF = "the plan names no check for it"

_SAID = ("validator", evidence.SECRET)
_OWN = ".idumb/"


class Proof(Struct):
    """One clone with the checks that ran in it. A command that several tasks share runs once.

    `plans` are those of `contract`, by task.
    """

    services: Services
    contract: Contract
    plans: Mapping[str, Plan]
    tree: str
    checks: Checks
    notes: list[str]
    ran: dict[tuple[str, bool], Evidence] = field(default_factory=dict)


def prove_run(services: Services, phase: str, task: str | None) -> Result:
    """Rerun the evidence of the completed tasks of a phase's newest run, and say for each whether the commit proves it.

    A `task` is proven at its own commit, and a phase at its newest one.
    """
    state = run_lookup.named_run(services, phase)
    contract = loading.locked_contract(services, state)
    chosen = _chosen(state, contract, task)
    phase_grants.require_ran(services, contract, state)
    rows = {one.id: _row(one, None, NO_COMMIT, "neither a commit nor a checkpoint has its work") for one in chosen}
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
        task = named_task(contract, task)
        done = [one for one in done if one.id == task]
    if not done:
        what = (
            f"{task} is not completed" if task else f"Run {state.number} of phase {state.phase} has no completed task"
        )
        raise Refusal(
            "prove.nothing-done",
            f"{what}, so there is no evidence to rerun.",
            hint=Action.of("show", task) if task else Action("next"),
            details={"phase": state.phase},
        )
    return done


def _prove(
    services: Services, state: RunState, contract: Contract, place: Place, tasks: Sequence[TaskState], *, whole: bool
) -> tuple[list[Row], list[Row], list[str]]:
    """Return the rows of the tasks, with `whole` those of the phase, and notes."""
    if place.commit is not None and not services.history.is_named(place.commit):
        why = f"commit {place.commit[:10]} is on no branch and no tag, so a clone does not have it"
        return [_row(task, place, NO_COMMIT, why) for task in tasks], [], []
    opened = services.open_as_stranger(place.commit or place.head, run_lookup.left_paths(state))
    with services.interrupts.armed(), opened as (clone, checks):
        tree = _tree(services, clone, place)
        if tree is None:
            why = f"checkpoint {(place.snapshot or '')[:10]} no longer exists"
            return [_row(task, place, NO_COMMIT, why) for task in tasks], [], []
        clone.show(tree, place.commit or place.head)
        given = checks.given(contract.variables)
        proof = Proof(services, contract, contract.plan_by_task(), tree, given, notes_of(clone))
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
    rows = [rerun_check(proof, check, recorded.pop(check.subject, None)) for check in checks]
    rows += _unrepeated(declared, recorded)
    return _row(task, place, result_of_task(rows), checks=rows)


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


def _unrepeated(declared: Task, recorded: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """Yield the evidence that no check of the plan repeats."""
    kinds = contracts.proofs(declared)
    for subject, row in recorded.items():
        has_command = bool(row.get("command"))
        words = _COUNTED if row["result"] in {evidence.PASSED, *evidence.BROKEN} else NO_PROOF
        if kinds.get(subject) in (HUMAN, OPINION) or subject.startswith(_SAID) or row["result"] == evidence.OPINION:
            words = _WORD
        if has_command:
            words = "the plan no longer has this check"
        yield not_rerun(subject, row["text"], words, row["result"], row.get("command"))


def _phase(proof: Proof, state: RunState) -> Iterator[Row]:
    """Yield the success criteria and invariants of the phase, compared with its newest verification."""
    record = state.verification or {}
    recorded = {str(row["subject"]): row for row in record.get("evidence", ())}
    for check in rerun.checks_of_phase(proof.contract.plans):
        yield rerun_check(proof, check, recorded.pop(check.subject, None))
    for subject, row in recorded.items():
        if row.get("command") is None:
            words = NO_PROOF if row["result"] == evidence.UNPROVEN else _WORD
            yield not_rerun(subject, row["text"], words, row["result"])


def _result(state: RunState, place: Place | None, rows: list[Row], criteria: list[Row], notes: Sequence[str]) -> Result:
    verify = Action.of("verify-work", state.phase)
    wrong, hidden = _unproven(rows), [row["id"] for row in rows if row["checkpoint"] is not None]
    ways: list[Action | str] = [Action.of("show", wrong[0]), verify] if wrong else [verify]
    for row in rows:
        if row["result"] == NO_COMMIT and row["commit"]:
            ways = [f"git branch proof-of-{row['id']} {row['commit']}", verify]
    if hidden:
        words = f"{wording.listed(hidden)}: no commit has this work (commit: none), so a hidden checkpoint was proven"
        notes = [*notes, f"{words}; no clone but one of this repository has it"]
    commit, checkpoint = (None, None) if place is None else (place.commit, place.snapshot)
    facts = {"phase": state.phase, "run": state.id, "commit": commit, "checkpoint": checkpoint}
    return answer(facts, rows, criteria, notes, ways)


def notes_of(clone: Checkout) -> list[str]:
    """Return what another clone would not have, and what this one lacks."""
    provided = f"{', '.join(clone.provided)} is copied from your working tree (checkout.provide)"
    return [*([f"{provided}; another clone does not have it"] if clone.provided else []), *clone.missing]


def named_task(contract: Contract, task: str) -> str:
    """Return the id of a task that a person named. InputError if the contract has none such."""
    _, id = run_lookup.find_task(task)
    run_lookup.require_task(contract.tasks, id, contract.phase)
    return id


def rerun_check(proof: Proof, check: Check, recorded: Mapping[str, Any] | None) -> Row:
    """Run a check of the locked plan, and compare."""
    was = None if recorded is None else str(recorded["result"])
    now = _now(proof, check)
    result, why = rerun.compare(was, now), ""
    same = (check.command, proof.services.redaction.redact(check.command or ""))  # the log keeps no secret
    if recorded is not None and check.command is not None and recorded.get("command") not in same:
        why = f"the evidence was recorded for another command: {recorded['command']}"
        result = rerun.CHANGED_COMMAND if now.passed else rerun.NOW_FAILS
    return {
        "subject": check.subject,
        "text": check.text,
        "command": check.command,
        "recorded": was,
        "result": result,
        "now": now.result,
        "exit_code": now.exit_code,
        "output": "" if now.passed else now.output,
        "seconds": round(now.seconds, 3),
        "why": why,
    }


def _now(proof: Proof, check: Check) -> Evidence:
    limit = float(proof.services.settings.run.check_timeout)
    if check.condition is not None and check.command is None:
        return proof.checks.condition(check.subject, check.condition, timeout=limit, tree=proof.tree)
    command = check.command or ""
    key = (command, "invariant" in check.subject.split())  # an invariant also holds if there is no test yet
    if key not in proof.ran:
        proof.ran[key] = proof.checks.command(check.subject, check.text, command, timeout=limit, tree=proof.tree)
        proof.checks.end_processes()
        # the clone itself names what it borrows
        proof.notes += [reason for reason in proof.ran[key].weaker if not reason.endswith("(checkout.provide)")]
    return proof.ran[key]


def not_rerun(subject: str, text: str, why: str, recorded: str | None = None, command: str | None = None) -> Row:
    """Return the row of evidence that no check of the plan repeats."""
    shown: Row = {"subject": subject, "text": text, "command": command, "recorded": recorded}
    return {**shown, "now": None, "exit_code": None, "output": "", "seconds": 0.0, "result": rerun.NOT_RUN, "why": why}


def result_of_task(checks: Sequence[Mapping[str, Any]]) -> str:
    """Return the result of a task: a mismatch if a check fails now, proven if at least one ran."""
    results = {row["result"] for row in checks}
    if rerun.NOW_FAILS in results:
        return MISMATCH
    return PROVEN if results - {rerun.NOT_RUN} else NOTHING_TO_RUN


def _unproven(rows: Sequence[Row]) -> list[str]:
    return [row["id"] for row in rows if row["result"] in (MISMATCH, NO_COMMIT)]


def answer(
    facts: Row, rows: list[Row], criteria: list[Row], notes: Sequence[str], ways: Sequence[Action | str]
) -> Result:
    """Return the answer of `prove`; `ways` are the commands that help if something is not proven."""
    wrong = [*_unproven(rows), *(row["subject"] for row in criteria if row["result"] == rerun.NOW_FAILS)]
    reran = [row for row in (*criteria, *(c for row in rows for c in row["checks"])) if row["result"] != rerun.NOT_RUN]
    data = {**facts, "proven": bool(reran) and not wrong, "tasks": rows, "criteria": criteria}
    warnings = tuple(dict.fromkeys(notes))
    if data["proven"]:
        return Result(data, warnings=warnings)
    words = "Nothing is proven: the plan has no check that can be rerun."
    if wrong:
        words = f"{wording.listed(wrong)} {'is' if len(wrong) == 1 else 'are'} not proven in a fresh clone."
    failure = ("prove.mismatch", words, ways[0])
    return Result({**data, "next": list(ways)}, errors.EXIT_FAILED, warnings, failure, {"phase": facts["phase"]})
