"""`idumb prove`: rerun evidence in a fresh clone: that of a recorded run, or the checks of the plan at HEAD.

Reads only: it takes no lock, writes no event, and changes nothing in the repository.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from idumb.app.consent import phase_grants
from idumb.app.consent.phase_grants import PhaseGrants
from idumb.app.contract import loading
from idumb.app.core import actions, run_lookup
from idumb.app.core.run_lookup import Place
from idumb.app.core.services import Result, Services, from_start
from idumb.app.verify import fresh_clone, recorded_elsewhere
from idumb.app.verify.fresh_clone import Proof, Rerun, Row
from idumb.domain import contract as contracts
from idumb.domain import outcome, rerun, wording
from idumb.domain.action import Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import HUMAN, OPINION, UNPROVEN, Task
from idumb.domain.proof import evidence
from idumb.domain.runs.run import RunState, TaskState

_WORD = "a person's or a model's word, which cannot be rerun"
_COUNTED = "idumb counted this from the change itself"
_NO_PROOF = "the plan names no check for it"
_NO_COMMIT = "no commit in the history of HEAD has its work"
_NO_LOG = "only the working tree that ran it has the log to compare with"

_SAID = ("validator", evidence.SECRET)
_OWN = ".idumb/"
_SETTINGS = (".idumb/config.yaml", ".idumb/policy/tools.yaml")


def prove(
    services: Services, phase: str | None, task: str | None = None, *, commit: str = "", approved: tuple[str, ...] = ()
) -> Result:
    """Rerun the evidence of a phase or a task, and say for each task whether the commit proves it.

    Without a run of the phase in this working tree, or with `commit`, prove what is committed; `approved` are then
    hashes of contracts whose commands may run. Without a phase, it is that of the newest task in the history of
    `commit`.
    """
    if commit:
        _require_checked_out(services, commit)
    phase = phase or _newest_phase(services)
    if commit or run_lookup.recorded_phase(services, phase) is None:
        return _prove_head(services, phase, task, approved)
    return _prove_run(services, phase, task)


# A recorded run


def _prove_run(services: Services, phase: str, task: str | None) -> Result:
    """Rerun the evidence of the completed tasks of a phase's newest run, and say for each whether the commit proves it.

    A `task` is proven at its own commit, and a phase at its newest one.
    """
    state = run_lookup.named_run(services, phase)
    contract = loading.locked_contract(services, state)
    chosen = _chosen(state, contract, task)
    phase_grants.require_ran(services, contract, state)
    why = "neither a commit nor a checkpoint has its work"
    rows = {one.id: fresh_clone.row(one.id, one.status, None, rerun.NO_COMMIT, why) for one in chosen}
    again = Rerun(())
    place = run_lookup.place_of_run(services, state) if task is None else run_lookup.place_of_task(state, chosen[0])
    there = [one for one in chosen if run_lookup.place_of_task(state, one) is not None]
    if place is not None:
        again = _prove(services, state, contract, place, there, whole=task is None)
        rows |= {row["id"]: row for row in again.tasks}
    return _result(state, place, replace(again, tasks=[*rows.values()]))


def _chosen(state: RunState, contract: Contract, task: str | None) -> list[TaskState]:
    """Return the completed tasks to prove. Refusal `prove.nothing-done` if there is none."""
    named = _named_tasks(contract, task)
    done = [one for one in state.tasks.values() if one.status in outcome.DONE and one.id in named]
    if not done:
        what = f"Run {state.number} of phase {state.phase} has no completed task"
        raise Refusal(
            "prove.nothing-done",
            f"{f'{named[0]} is not completed' if task else what}, so there is no evidence to rerun.",
            hint=Action.of("show", named[0]) if task else Action("next"),
            details={"phase": state.phase},
        )
    return done


def _prove(
    services: Services, state: RunState, contract: Contract, place: Place, tasks: Sequence[TaskState], *, whole: bool
) -> Rerun:
    """Rerun the checks of the tasks; with `whole`, also those of the phase."""

    def without(why: str) -> Rerun:
        return Rerun([fresh_clone.row(task.id, task.status, place, rerun.NO_COMMIT, why) for task in tasks])

    if place.commit is not None and not services.history.is_named(place.commit):
        return without(f"commit {place.commit[:10]} is on no branch and no tag, so a clone does not have it")
    with fresh_clone.cloned(services, contract, place, run_lookup.left_paths(state)) as proof:
        if proof is None:
            return without(f"checkpoint {(place.snapshot or '')[:10]} no longer exists")
        rows = [_of_run(proof, state, task, place, whole=whole) for task in tasks]
        again = Rerun(rows, list(_of_phase(proof, state)) if whole else [], proof.notes)
        failing = any(check["result"] in rerun.FAILS for check in again.checks)
        ignored = [path for path in services.trees.ignored() if not path.startswith(_OWN)] if failing else []
        if ignored:
            words = wording.listed(ignored)
            proof.notes.append(f"The clone has none of the files that git ignores in your working tree: {words}")
        return again


def _of_run(proof: Proof, state: RunState, task: TaskState, place: Place, *, whole: bool) -> Row:
    declared = proof.contract.tasks[task.id]
    if whole:
        done = [id for id, one in state.tasks.items() if one.status in outcome.DONE]
        [declared] = contracts.without_replaced(proof.contract, [task.id], done)
    # The evidence of the attempt that completed it, perhaps in an earlier run.
    made_in = run_lookup.attempting_run(proof.services, state, task.id).id
    number = task.checkpoint.attempt if task.checkpoint is not None else task.attempt.number
    events = proof.services.log.events(run=made_in, task=task.id, kind="evidence.recorded")
    recorded = rerun.last_of_each([event.payload for event in events if event.attempt == number])
    rows = fresh_clone.run_again(proof, rerun.checks_of_task(declared, proof.contract.plan_of[task.id]), recorded)
    rows += _unrepeated(declared, recorded)
    return fresh_clone.row(task.id, task.status, place, rerun.result_of(rows), checks=rows)


def _unrepeated(declared: Task, recorded: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """Yield the evidence that no check of the plan repeats."""
    kinds = contracts.proofs(declared)
    for subject, row in recorded.items():
        words = _COUNTED if row["result"] in {evidence.PASSED, *evidence.BROKEN} else _NO_PROOF
        if kinds.get(subject) in (HUMAN, OPINION) or subject.startswith(_SAID) or row["result"] == evidence.OPINION:
            words = _WORD
        if row.get("command"):
            words = "the plan no longer has this check"
        yield fresh_clone.not_rerun(subject, row["text"], words, row["result"], row.get("command"))


def _of_phase(proof: Proof, state: RunState) -> Iterator[Row]:
    """Yield the success criteria and invariants of the phase, compared with its newest verification."""
    recorded = {str(row["subject"]): row for row in (state.verification or {}).get("evidence", ())}
    yield from fresh_clone.run_again(proof, rerun.checks_of_phase(proof.contract.plans), recorded)
    for subject, row in recorded.items():
        if row.get("command") is None:
            words = _NO_PROOF if row["result"] == evidence.UNPROVEN else _WORD
            yield fresh_clone.not_rerun(subject, row["text"], words, row["result"])


def _result(state: RunState, place: Place | None, again: Rerun) -> Result:
    verify, rows = Action.of("verify-work", state.phase), again.tasks
    wrong, hidden = fresh_clone.unproven(rows), [row["id"] for row in rows if row["checkpoint"] is not None]
    ways: list[Action | str] = [Action.of("show", wrong[0]), verify] if wrong else [verify]
    for row in rows:
        if row["result"] == rerun.NO_COMMIT and row["commit"]:
            at_head = Action.of("prove", state.phase, "--commit", "HEAD")  # a squash or rebase may be there
            ways = [f"git branch proof-of-{row['id']} {row['commit']}", at_head]
    if hidden:
        words = f"{wording.listed(hidden)}: no commit has this work (commit: none), so a hidden checkpoint was proven"
        again = replace(again, notes=[*again.notes, f"{words}; no clone but one of this repository has it"])
    return fresh_clone.answer(state.phase, state.id, place, again, ways)


# The plan at HEAD


def _prove_head(services: Services, phase: str, task: str | None, approved: tuple[str, ...]) -> Result:
    """Run the checks of every task and of the phase in a fresh clone of HEAD.

    Tasks, checks and configuration are those that HEAD has. Refusals `prove.uncommitted`, `prove.nothing-done`,
    `consent.missing`.
    """
    contract = _committed_contract(services, phase)
    head = Place(str(services.history.head().commit))
    commits = recorded_elsewhere.commits_of_tasks(services.history.trailers_since(None))
    verified = recorded_elsewhere.verified_report(services, contract) is not None
    chosen = _named_tasks(contract, task)
    if not verified and not commits.keys() & set(chosen):
        raise Refusal(
            "prove.nothing-done",
            f"Phase {contract.phase} has no run in this working tree, and no commit of HEAD's history has its work.",
            hint=Action.of("execute-phase", contract.phase),
            details={"phase": contract.phase},
        )
    _require_consent(services, contract, task, approved)
    work = frozenset(f.path for t in contract.tasks.values() for f in t.files or () if f.verb != "read")
    with fresh_clone.cloned(services, contract, head, work) as proof:
        assert proof is not None  # noqa: S101 - a commit has a tree
        rows = [_of_head(proof, id, Place(commits.get(id)), accepted=verified) for id in chosen]
        criteria = [] if task else fresh_clone.run_again(proof, rerun.checks_of_phase(contract.plans), {})
    again = Rerun(rows, criteria, proof.notes)
    return fresh_clone.answer(contract.phase, None, head, again, [Action.of("check-plan", contract.phase)])


def _require_checked_out(services: Services, commit: str) -> None:
    """Refusal `prove.other-commit`: plan and configuration are read from the files that are checked out."""
    if not services.history.is_head(commit):
        words = f"{commit} is not checked out, and its plan and configuration may be other ones."
        raise Refusal("prove.other-commit", words, hint=f"git switch --detach {shlex.quote(commit)}")


def _newest_phase(services: Services) -> str:
    """Return the phase of the newest task that a commit in the history of HEAD has.

    After a squash, which drops the trailers, it is the one that the newest report in HEAD says was verified.
    """
    for task in recorded_elsewhere.commits_of_tasks(services.history.trailers_since(None)):
        return run_lookup.find_task(task)[0]
    reports = (
        (recorded_elsewhere.report_in_head(services, folder), phase) for phase, folder in services.plans.phases()
    )
    verified = [(str(report.get("created", "")), phase) for report, phase in reports if report]
    if verified:
        return max(verified)[1]
    raise Refusal("prove.no-commit", "No commit in the history of HEAD has the work of a task.", hint=Action("next"))


def _committed_contract(services: Services, phase: str) -> Contract:
    """Return the contract that HEAD has: plans and configuration may not differ from the files."""
    contract = loading.require_contract(services, phase)
    paths = [*(plan.path for plan in contract.plans), *_SETTINGS]
    if changed := services.history.uncommitted(paths):
        raise Refusal(
            "prove.uncommitted",
            f"{wording.listed(changed)}: not committed as it is now, so another clone would prove something else.",
            hint=f"git add {shlex.join(from_start(services, path) for path in changed)} && git commit",
            details={"phase": contract.phase},
        )
    return contract


def _require_consent(services: Services, contract: Contract, task: str | None, approved: tuple[str, ...]) -> None:
    """Require that a person agreed to run the commands of this contract here, for good or for this command."""
    if contract.hash in approved or PhaseGrants(services, contract).covers(contract.hash):
        return
    checks = [*rerun.checks_of_phase(contract.plans)]
    checks += [c for id, plan in contract.plan_of.items() for c in rerun.checks_of_task(contract.tasks[id], plan)]
    prepare = services.settings.checkout.prepare
    commands = list(dict.fromkeys((*prepare, *(check.command for check in checks if check.command))))
    why = f"Proving phase {contract.phase} runs {len(commands)} commands of this repository"
    agree = Action.of("prove", contract.phase, *filter(None, [task]), "--commit", "HEAD", "--approve", contract.hash)
    choices = [Choice("agree", "run them in a fresh clone", "nothing changes in this working tree", agree)]
    details = actions.offer(why, why, commands, choices, phase=contract.phase, contract_hash=contract.hash)
    raise Refusal("consent.missing", f"{why}. Nothing was run.", hint=agree, details=details)


def _of_head(proof: Proof, id: str, place: Place, *, accepted: bool) -> Row:
    [declared] = contracts.without_replaced(proof.contract, [id], proof.contract.order)
    if place.commit is None and not accepted:
        return fresh_clone.row(id, outcome.COMPLETED, place, rerun.NO_COMMIT, _NO_COMMIT)
    rows = fresh_clone.run_again(proof, rerun.checks_of_task(declared, proof.contract.plan_of[id]), {})
    rerunnable = {row["subject"] for row in rows}
    whys = {id: _NO_PROOF if kind == UNPROVEN else _NO_LOG for id, kind in contracts.proofs(declared).items()}
    rows += [fresh_clone.not_rerun(c.id, c.text, whys[c.id]) for c in declared.acceptance if c.id not in rerunnable]
    return fresh_clone.row(id, outcome.COMPLETED, place, rerun.result_of(rows), checks=rows)


def _named_tasks(contract: Contract, task: str | None) -> list[str]:
    """Return the task that a person named, or all. InputError if the contract has none such."""
    if task is None:
        return list(contract.order)
    _, id = run_lookup.find_task(task)
    run_lookup.require_task(contract.tasks, id, contract.phase)
    return [id]
