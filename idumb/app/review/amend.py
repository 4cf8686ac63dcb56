"""Amend a locked plan: the difference is shown first, all of it is checked anew, and the run goes on under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from idumb.app.attempt import projections
from idumb.app.consent import approvals
from idumb.app.contract import changed_contract, contract_versions, loading, plan_checks
from idumb.app.contract.contract_versions import Next
from idumb.app.contract.plan_changes import Since, since
from idumb.app.core import next_actions, run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.history import rollback
from idumb.app.review import ask_consent
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import amendment, plan_diff
from idumb.domain.amendment import Amendment, Overlap
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import InputError, Refusal
from idumb.domain.plans.plan import STRICT, FileClaim, Plan
from idumb.domain.proof import ledger
from idumb.domain.runs.run import RunState

_VERBS = {ledger.CREATED: "create", ledger.MODIFIED: "modify", ledger.DELETED: "delete"}


@dataclass(frozen=True, slots=True)
class Request:
    """Flags of `amend`. `deviations` are (task, path); `plan` is the id of the plan for what names no task.

    `agreed` is the contract hash that a person agrees to without being asked, `yes` their word for whatever comes out.
    `command` is what was typed, without those two.
    """

    phase: str
    amendments: tuple[Amendment, ...] = ()
    deviations: tuple[tuple[str, str], ...] = ()
    from_file: bool = False
    plan: str | None = None
    why: str = ""
    yes: bool = False
    agreed: str | None = None
    command: str = "idumb amend"


def amend(services: Services, request: Request, who: str) -> Result:
    """`idumb amend N`: nothing is written where anything of the outcome is not as it must be."""
    preconditions.require_initialised(services)
    now, state = _current(services, request)
    wanted, found, met = _amended(services, request, state, now)
    consents = STRICT not in (state.mode, wanted.contract.mode) or services.consent.given(found.contract.hash)
    wanted = replace(wanted, by=who, why=request.why, consents=consents)
    _confirm(services, request, found, wanted, met)
    with operation.owned(services, "amend") as owned:
        journal = owned.journal(state)
        if amendment.running_tasks(found.diff, state):
            rollback.finish_killed(services, journal, found.contract)
        contract_versions.lock(services, journal, wanted)
        projections.ending(services, wanted.contract, journal.state)
    data = {
        "phase": state.phase,
        "run": state.id,
        "version": state.contract.version,
        "contract_hash": wanted.contract.hash,
        "from": found.contract.hash,
        "what": list(wanted.what),
        "reset": list(wanted.reset),
        "completed_work": [
            {"task": one.task, "verb": one.verb, "path": one.path, "of": one.of, "words": one.words} for one in met
        ],
        "path": wanted.path,
        **plan_diff.as_dict(found.diff),
        "next": [f"idumb resume {state.phase}"],
    }
    return Result(data)


def _current(services: Services, request: Request) -> tuple[Contract, RunState]:
    """The plans as they are, checked in full, and the run; Refusal where a hand changed them and nobody said so."""
    loaded = loading.of(services, request.phase)
    contract = loading.runnable(services, loaded)
    state = run_lookup.require_run(services, contract.phase)
    preconditions.require_settled(state)
    if not request.from_file:
        changed_contract.same_contract(services, contract, state)
    elif contract.hash == state.contract.hash:
        raise Refusal(
            "amend.nothing", f"The plans of phase {contract.phase} are as they were locked.", hint="idumb amend --help"
        )
    return contract, state


def _amended(
    services: Services, request: Request, state: RunState, now: Contract
) -> tuple[Next, Since, tuple[Overlap, ...]]:
    """The contract that would follow, how it differs from the one of the run, and what it does to completed work."""
    sources = services.plans.plans(now.folder)
    path: str | None = None
    before = b""
    if not request.from_file:
        changes = (*request.amendments, *(_deviation(services, state, *one) for one in request.deviations))
        path = _one_plan(now, request, changes)
        contract_versions.require_file(services, path, state.phase)
        before = dict(sources)[path]
        made = services.plans.amended(before, path, changes)
        sources = tuple((p, made if p == path else data) for p, data in sources)
        loaded = loading.of_sources(services, state.phase, now.folder, sources)
        now = loading.runnable(services, loading.with_links(services, loaded))
    found = since(services, state, now)
    refused = amendment.forbidden(found.diff, found.contract, now, state)
    met = amendment.overlaps(found.diff, now, state)
    if refused is None and met:
        refused = amendment.conflict_with_completed(met, plan_checks.unmet(services, now, state))
    if refused is not None:
        raise Refusal(
            refused.code,
            f"{refused.words}.",
            hint=f"idumb plan-diff {state.phase}; idumb rollback {state.phase} --to TASK takes work back first",
            details={"phase": state.phase, "tasks": list(refused.tasks), "lines": list(plan_diff.lines(found.diff))},
        )
    said = [f"decision: {' '.join(one.text.split())}" for one in request.amendments if one.kind == amendment.DECIDE]
    texts = () if said and found.diff.texts == (path,) and not found.diff.changes_tasks else plan_diff.lines(found.diff)
    what = (*texts, *said)
    made_next = Next(now, sources, what, "", path=path, before=before, changes_tasks=found.diff.changes_tasks)
    return replace(made_next, reset=amendment.tasks_to_reset(found.diff, state)), found, met


def _one_plan(contract: Contract, request: Request, changes: Sequence[Amendment]) -> str:
    """The path of the plan that all changes are of; one at a time, so that a crash leaves no half of an amendment."""
    named = [_plan_of(contract, request, change) for change in changes]
    if not named:
        raise InputError("amend.nothing", "No amendment is named.", hint="idumb amend --help")
    if len({plan.path for plan in named}) > 1:
        raise Refusal(
            "amend.several-plans",
            f"One amendment changes one plan; these are of {', '.join(dict.fromkeys(p.path for p in named))}.",
            hint="Say them one after the other, or change the files and idumb amend --from-file",
            details={"phase": contract.phase},
        )
    return named[0].path


def _plan_of(contract: Contract, request: Request, change: Amendment) -> Plan:
    if change.kind in (amendment.WIDEN, amendment.DROP):
        task = change.task or ""
        if task not in contract.tasks:
            raise InputError(
                "task.unknown",
                f"Phase {contract.phase} has no task {change.task}.",
                hint=f"idumb graph {request.phase}",
                details={"phase": contract.phase},
            )
        return contract.plan_of(task)
    found = [p for p in contract.plans if request.plan in (None, p.plan)]
    if not found:
        known = ", ".join(p.plan for p in contract.plans)
        raise InputError("plan.unknown", f"Phase {contract.phase} has no plan {request.plan}.", hint=f"It has {known}")
    return found[-1]


def _deviation(services: Services, state: RunState, task: str, path: str) -> Amendment:
    """A file that the task changed without having declared it, as a claim of what it did."""
    attempts = services.log.events(run=state.id, task=task, kind="attempt.finished", newest_first=True, limit=1)
    for event in attempts:
        for line in event.payload["ledger"]:
            if line.get("path") == path and line["status"] in (ledger.UNDECLARED, ledger.PROTECTED):
                return Amendment(amendment.WIDEN, task, claim=FileClaim(_VERBS[line["actual"]], path))
    raise InputError(
        "amend.no-deviation",
        f"The last attempt at {task} changed no undeclared {path}.",
        hint=f"idumb show {task} lists what it changed",
        details={"task": task},
    )


def _confirm(services: Services, request: Request, found: Since, wanted: Next, met: Sequence[Overlap]) -> None:
    """A person's word for just this outcome: by hash, by --yes, or at the terminal after the difference was shown."""
    new = wanted.contract
    if STRICT in (found.state.mode, new.mode):
        _require_approval(services, request, new)
    if request.agreed is not None and request.agreed != new.hash:
        raise Refusal(
            "amend.other-contract",
            f"--hash names {request.agreed[:16]}, but the amended contract is {new.hash[:16]}.",
            hint=f"{request.command} shows what changes",
            details={"command": request.command, "expected": new.hash, "lines": list(wanted.what)},
        )
    if request.yes or request.agreed is not None:
        return
    question = _question(services, request, found, wanted, met)
    answer = services.asker.ask(question)
    if answer is None or answer.choice != "amend":
        raise Refusal(
            "amend.not-confirmed",
            f"Nothing was written: the amendment of phase {request.phase} needs your word.",
            hint=f"{request.command} --hash {new.hash}",
            details={
                "contract_hash": new.hash,
                "lines": list(wanted.what),
                "evidence": list(question.evidence),
                "choices": next_actions.rows(question.choices),
            },
        )


def _require_approval(services: Services, request: Request, contract: Contract) -> None:
    """What is strict runs as it was approved, and only a plan that is there can be looked at and approved."""
    if not request.from_file:
        raise Refusal(
            "amend.strict",
            f"Phase {request.phase} is strict: it runs only what was approved as a whole, as it stands in the file.",
            hint=f"Change the plan, then idumb approve {request.phase} and idumb amend {request.phase} --from-file",
            details={"phase": request.phase},
        )
    approvals.require(services, contract)


def _question(services: Services, request: Request, found: Since, wanted: Next, met: Sequence[Overlap]) -> Decision:
    """Everything that is new, then everything that would newly be run or written."""
    known = set(ask_consent.lines(services, found.contract))
    runs = [line for line in ask_consent.lines(services, wanted.contract) if line not in known]
    resets = [f"{task} may be tried again" for task in wanted.reset]
    return Decision(
        id=f"amend.{wanted.contract.hash[:12]}",
        kind="consent",
        what=f"Amend phase {request.phase} to version {found.state.contract.version + 1} of its contract",
        why="The run goes on under what you agree to now. What is done stays as it is; nothing is run at this moment.",
        evidence=(*wanted.what, *(one.words for one in met), *(f"new: {line.strip()}" for line in runs), *resets),
        choices=(
            Choice(
                "amend",
                "write it and lock it",
                f"the plan is written, consent is recorded for contract {wanted.contract.hash[:16]}",
                f"{request.command} --hash {wanted.contract.hash}",
            ),
            Choice("no", "leave the plan as it is", "nothing happens"),
        ),
    )
