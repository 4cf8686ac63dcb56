"""`idumb prove`: prove a recorded run, or the plan at HEAD from what is committed, as in a clone without a log.

Reads only: it takes no lock, writes no event, and changes nothing in the repository.
"""

from __future__ import annotations

import shlex

from idumb.app.consent.phase_grants import PhaseGrants
from idumb.app.contract import loading
from idumb.app.core import actions, run_lookup
from idumb.app.core.services import Result, Services
from idumb.app.verify import outside_work, prove_run
from idumb.app.verify.prove_run import Row
from idumb.domain import contract as contracts
from idumb.domain import outcome, rerun, wording
from idumb.domain.action import Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import UNPROVEN

_SETTINGS = (".idumb/config.yaml", ".idumb/policy/tools.yaml")
_NO_COMMIT = "no commit in the history of HEAD has its work"
_NO_LOG = "only the working tree that ran it has the log to compare with"


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
    return prove_run.prove_run(services, phase, task)


def _prove_head(services: Services, phase: str, task: str | None, approved: tuple[str, ...]) -> Result:
    """Run the checks of every task and of the phase in a fresh clone of HEAD.

    Tasks, checks and configuration are those that HEAD has. Refusals `prove.uncommitted`, `prove.nothing-done`,
    `consent.missing`.
    """
    contract = _committed_contract(services, phase)
    head, tree = str(services.history.head().commit), str(services.history.head_tree())
    commits = outside_work.commits_of_tasks(services.history.trailers_since(None))
    verified = outside_work.verified_report(services, contract) is not None
    chosen = [prove_run.named_task(contract, task)] if task else list(contract.order)
    if not verified and not commits.keys() & set(chosen):
        raise Refusal(
            "prove.nothing-done",
            f"Phase {contract.phase} has no run in this working tree, and no commit of HEAD's history has its work.",
            hint=Action.of("execute-phase", contract.phase),
            details={"phase": contract.phase},
        )
    _require_consent(services, contract, task, approved)
    work = frozenset(f.path for t in contract.tasks.values() for f in t.files or () if f.verb != "read")
    with services.interrupts.armed(), services.open_as_stranger(head, work) as (clone, checks):
        clone.show(tree, head)
        plans, given = contract.plan_by_task(), checks.given(contract.variables)
        proof = prove_run.Proof(services, contract, plans, tree, given, prove_run.notes_of(clone))
        rows = [_task(proof, id, commits.get(id), accepted=verified) for id in chosen]
        criteria = (
            []
            if task
            else [prove_run.rerun_check(proof, check, None) for check in rerun.checks_of_phase(contract.plans)]
        )
    facts = {"phase": contract.phase, "run": None, "commit": head, "checkpoint": None}
    return prove_run.answer(facts, rows, criteria, proof.notes, [Action.of("check-plan", contract.phase)])


def _require_checked_out(services: Services, commit: str) -> None:
    """Refusal `prove.other-commit`: plan and configuration are read from the files that are checked out."""
    head = services.history.head()
    if commit not in ("HEAD", head.branch) and not (len(commit) >= 7 and str(head.commit).startswith(commit)):
        words = f"{commit} is not checked out, and its plan and configuration may be other ones."
        raise Refusal("prove.other-commit", words, hint=f"git switch --detach {shlex.quote(commit)}")


def _newest_phase(services: Services) -> str:
    """Return the phase of the newest task that a commit in the history of HEAD has."""
    for task in outside_work.commits_of_tasks(services.history.trailers_since(None)):
        return run_lookup.find_task(task)[0]
    raise Refusal("prove.no-commit", "No commit in the history of HEAD has the work of a task.", hint=Action("next"))


def _committed_contract(services: Services, phase: str) -> Contract:
    """Return the contract that HEAD has: plans and configuration may not differ from the files."""
    contract = loading.require_contract(services, phase)
    paths = [*(plan.path for plan in contract.plans), *_SETTINGS]
    changed = paths if services.history.head_tree() is None else services.history.uncommitted(paths)
    if changed:
        raise Refusal(
            "prove.uncommitted",
            f"{wording.listed(changed)}: not committed as it is now, so another clone would prove something else.",
            hint=f"git add {shlex.join(changed)} && git commit",
            details={"phase": contract.phase},
        )
    return contract


def _require_consent(services: Services, contract: Contract, task: str | None, approved: tuple[str, ...]) -> None:
    """Require that a person agreed to run the commands of this contract here, for good or for this command."""
    if contract.hash in approved or PhaseGrants(services, contract).covers(contract.hash):
        return
    checks = [*rerun.checks_of_phase(contract.plans)]
    checks += [
        c for id, plan in contract.plan_by_task().items() for c in rerun.checks_of_task(contract.tasks[id], plan)
    ]
    commands = list(dict.fromkeys(check.command for check in checks if check.command))
    why = f"Proving phase {contract.phase} runs {len(commands)} commands of this repository"
    agree = Action.of("prove", contract.phase, *filter(None, [task]), "--commit", "HEAD", "--approve", contract.hash)
    choices = [Choice("agree", "run them in a fresh clone", "nothing changes in this working tree", agree)]
    details = actions.offer(why, why, commands, choices, phase=contract.phase, contract_hash=contract.hash)
    raise Refusal("consent.missing", f"{why}. Nothing was run.", hint=agree, details=details)


def _task(proof: prove_run.Proof, id: str, commit: str | None, *, accepted: bool) -> Row:
    declared = contracts.without_replaced(proof.contract, proof.contract.tasks[id], proof.contract.order)
    row: Row = {"id": id, "status": outcome.COMPLETED, "commit": commit, "checkpoint": None, "why": "", "checks": []}
    if commit is None and not accepted:
        return {**row, "result": prove_run.NO_COMMIT, "why": _NO_COMMIT}
    checks = [prove_run.rerun_check(proof, c, None) for c in rerun.checks_of_task(declared, proof.plans[id])]
    rerunnable = {check["subject"] for check in checks}
    whys = {id: prove_run.NO_PROOF if kind == UNPROVEN else _NO_LOG for id, kind in contracts.proofs(declared).items()}
    checks += [prove_run.not_rerun(c.id, c.text, whys[c.id]) for c in declared.acceptance if c.id not in rerunnable]
    return {**row, "result": prove_run.result_of_task(checks), "checks": checks}
