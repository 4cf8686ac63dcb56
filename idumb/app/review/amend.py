"""Amend a locked plan: check the changed plan in full, show the difference, and lock the new version for the run."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from idumb.app.attempt import projections
from idumb.app.consent import phase_grants
from idumb.app.consent.phase_grants import PhaseGrants
from idumb.app.contract import changed_contract, contract_versions, loading, plan_checks
from idumb.app.contract.changed_contract import ChangesSinceLock, since_lock
from idumb.app.contract.contract_versions import NextVersion
from idumb.app.core import actions, run_lookup
from idumb.app.core.services import Result, Services, same_command
from idumb.app.history import rollback
from idumb.app.review import ask_consent
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import amendment
from idumb.domain.action import Action, Choice, Decision
from idumb.domain.amendment import Amendment, Overlap
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.plans.plan import STRICT, FileClaim, Plan
from idumb.domain.proof import ledger
from idumb.domain.runs.run import RunState

_VERBS = {ledger.CREATED: "create", ledger.MODIFIED: "modify", ledger.DELETED: "delete"}


class Rewrite(Struct, frozen=True):
    """A plan that idumb wrote anew, such as one whose source changed: its path, its present bytes and the new ones."""

    path: str
    before: bytes
    after: bytes


class Request(Struct, frozen=True):
    """Flags of `amend`. `deviations` are (task, path); `plan` is the plan id for changes that name no task.

    `agreed` is the contract hash that you agree to without a question; `yes` agrees to any outcome.
    `rewrite` is instead of `amendments` and `deviations`.
    """

    phase: str
    amendments: tuple[Amendment, ...] = ()
    deviations: tuple[tuple[str, str], ...] = ()
    from_file: bool = False
    plan: str | None = None
    why: str = ""
    yes: bool = False
    agreed: str | None = None
    rewrite: Rewrite | None = None


class Proposal(Struct, frozen=True):
    """The next contract of a run, how it differs from the present one, and where it overlaps completed work."""

    next_version: NextVersion
    difference: ChangesSinceLock
    overlaps: Sequence[Overlap]


def amend(services: Services, request: Request, who: str) -> Result:
    """Amend the plans of a phase. Writes nothing unless the whole outcome is legal and confirmed."""
    current, state = _current(services, request)
    proposal = _proposed(services, request, state, current, who)
    _confirm(services, request, proposal)
    next_version, difference = proposal.next_version, proposal.difference
    with operation.recorded(services, "amend", state) as journal:
        if amendment.running_tasks(difference.diff, state):
            rollback.finish_killed(services, journal, difference.contract)
        contract_versions.lock_next(services, journal, next_version)
        projections.write_at_end(services, next_version.contract, journal.state)
    data = {
        "phase": state.phase,
        "run": state.id,
        "version": state.contract.version,
        "contract_hash": next_version.contract.hash,
        "from": difference.contract.hash,
        "what": list(next_version.changes),
        "reset": list(next_version.reset),
        "completed_work": [
            {"task": one.task, "verb": one.verb, "path": one.path, "of": one.completed, "words": one.words}
            for one in proposal.overlaps
        ],
        "path": next_version.path,
        **difference.diff.as_dict(),
        "next": [Action.of("resume", state.phase)],
    }
    return Result(data)


def _current(services: Services, request: Request) -> tuple[Contract, RunState]:
    """Return the checked plans and the run; Refusal if the plans were edited and `--from-file` is missing."""
    loaded = loading.load_phase(services, request.phase)
    contract = plan_checks.startable_contract(services, loaded)
    state = run_lookup.require_run(services, contract.phase)
    preconditions.require_settled(state)
    changed_contract.require_not_dropped(state)
    if not request.from_file:
        changed_contract.require_contract_of_run(services, contract, state)
    elif contract.hash == state.contract.hash:
        raise Refusal(
            "amend.nothing",
            f"The plans of phase {contract.phase} have not changed since they were locked.",
            hint=Action.of("amend", "--help"),
        )
    return contract, state


def _proposed(services: Services, request: Request, state: RunState, present: Contract, who: str) -> Proposal:
    """Return what the amendment would change; Refusal if that is illegal."""
    rewrite = None if request.from_file else request.rewrite or _rewrite(services, request, state, present)
    sources, amended = services.plans.plans(present.folder), present
    if rewrite is not None:
        sources = tuple((path, rewrite.after if path == rewrite.path else data) for path, data in sources)
        amended = _rewritten(services, state.phase, present.folder, rewrite.path, sources)
    difference = since_lock(services, state, amended)
    overlaps = amendment.overlaps(difference.diff, amended, state)
    _require_legal(services, state, amended, difference, overlaps)
    decisions = [change.text for change in request.amendments if change.kind == amendment.DECIDE]
    changes_tasks, locked = difference.diff.changes_tasks, difference.contract
    differences = () if decisions and rewrite is not None and not changes_tasks else difference.diff.lines()
    is_strict = STRICT in (state.mode, amended.mode)
    next_version = NextVersion(
        amended,
        sources,
        (*differences, *(f"decision: {' '.join(text.split())}" for text in decisions)),
        who,
        request.why,
        path=rewrite.path if rewrite is not None else None,
        before=rewrite.before if rewrite is not None else b"",
        changes_tasks=changes_tasks,
        reset=amendment.tasks_to_reset(difference.diff, state),
        consents=not is_strict or PhaseGrants(services, locked).covers(locked.hash, plain=True),
    )
    return Proposal(next_version, difference, overlaps)


def _rewritten(
    services: Services, phase: str, folder: str, path: str, sources: Sequence[tuple[str, bytes]]
) -> Contract:
    """Return the contract of these plans, of which the one at `path` is rewritten. InputError if it is not valid."""
    contract_versions.require_file(services, path, phase)
    loaded = loading.load_sources(services, phase, folder, sources)
    try:
        return plan_checks.startable_contract(services, loading.with_links(services, loaded))
    except InputError as problem:  # of the plan as it would be: check-plan does not show them
        edit = Action.of("amend", phase, "--from-file")
        problem.step = "Nothing was written; correct the options"
        problem.details["choices"] = actions.choice_rows([Choice("edit", "edit the plan", "then adopt it", edit)])
        raise


def _require_legal(
    services: Services, state: RunState, amended: Contract, difference: ChangesSinceLock, overlaps: Sequence[Overlap]
) -> None:
    """Refuse what the state of the run forbids, and added tasks that conflict with completed work."""
    refused = amendment.forbidden(difference.diff, difference.contract, amended, state)
    if refused is None and overlaps:
        refused = amendment.conflict_with_completed(overlaps, plan_checks.unmet_claims(services, amended, state))
    if refused is not None:
        raise Refusal(
            refused.code,
            f"{refused.words}.",
            hint=Action.of("check-plan", state.phase, "--diff"),
            details={
                "choices": actions.choice_rows(_reverting(state, refused.tasks)),
                "phase": state.phase,
                "tasks": list(refused.tasks),
                "lines": list(difference.diff.lines()),
            },
        )


def _rewrite(services: Services, request: Request, state: RunState, contract: Contract) -> Rewrite:
    changes = (*request.amendments, *(_deviation(services, state, *change) for change in request.deviations))
    paths = dict[str, None]()
    for change in changes:
        if change.kind in (amendment.WIDEN, amendment.DROP):
            run_lookup.require_task(contract.tasks, change.task or "", contract.phase)
            paths[contract.plan_of[change.task or ""].path] = None
        else:
            paths[receiving_plan(contract, request.plan).path] = None
    if not paths:
        raise InputError("amend.nothing", "No amendment is named.", hint=Action.of("amend", "--help"))
    if len(paths) > 1:  # with one file, a crash cannot leave half an amendment
        raise Refusal(
            "amend.several-plans",
            f"An amendment can change only one plan; this one changes {', '.join(paths)}.",
            hint="Amend one plan after the other, or edit the files and use idumb amend --from-file",
            details={"phase": contract.phase},
        )
    [path] = paths
    before = services.plans.read(path)
    return Rewrite(path, before, services.plans.amended(before, path, changes))


def receiving_plan(contract: Contract, id: str | None) -> Plan:
    """Return the plan with this id, by default the last one; InputError `plan.unknown`."""
    plans = [plan for plan in contract.plans if id in (None, plan.plan)]
    if not plans:
        ids = ", ".join(plan.plan for plan in contract.plans)
        words = f"Phase {contract.phase} has no plan {id}; its plans: {ids}."
        raise InputError("plan.unknown", words, hint=Action.of("check-plan", contract.phase))
    return plans[-1]


def _reverting(state: RunState, tasks: Sequence[str]) -> tuple[Choice, ...]:
    """Return the choice to revert the work of these tasks, and of all since; () if none was begun in this run."""
    begun = sorted((task for task in tasks if task in state.attempted), key=state.attempted.__getitem__)
    if not begun:
        return ()
    back = Action.of("rollback", state.phase, "--to", changed_contract.rollback_target(state, begun[0]))
    means = "the work since is kept in a snapshot; then repeat the command"
    return (Choice("back", f"revert {begun[0]} and what was done after it", means, back),)


def _deviation(services: Services, state: RunState, task: str, path: str) -> Amendment:
    """Return an amendment that declares a file which the task changed without declaring it."""
    for line in run_lookup.last_ledger(services, state.id, task):
        if line.get("path") == path and line["status"] in (ledger.UNDECLARED, ledger.PROTECTED):
            return Amendment(amendment.WIDEN, task, claim=FileClaim(_VERBS[line["actual"]], path))
    raise InputError(
        "amend.no-deviation",
        f"The last attempt at {task} made no undeclared change to {path}.",
        hint=Action.of("show", task),
        details={"task": task},
    )


def _confirm(services: Services, request: Request, proposal: Proposal) -> None:
    """Require your agreement to this outcome: by hash, by --yes, or at the terminal."""
    next_version, difference, phase = proposal.next_version, proposal.difference, request.phase
    new = next_version.contract
    if STRICT in (difference.state.mode, new.mode):
        if not request.from_file:  # it must be approved as it is in the file
            raise Refusal(
                "amend.strict",
                f"Phase {phase} is strict: it runs only plans that were approved as they are in their files.",
                hint=f"Edit the plan, then idumb approve {phase} and idumb amend {phase} --from-file",
                details={"phase": phase},
            )
        phase_grants.require_approval(services, new)
    changes = list(next_version.changes)
    if request.agreed is not None and request.agreed != new.hash:
        raise Refusal(
            "amend.other-contract",
            f"--hash names {request.agreed[:16]}, but the amended contract is {new.hash[:16]}.",
            hint=same_command(services),
            details={"command": same_command(services), "expected": new.hash, "lines": changes},
        )
    if request.yes or request.agreed is not None:
        return
    locked_lines = set(ask_consent.contract_lines(services, difference.contract, {}))
    runs = [line for line in ask_consent.contract_lines(services, new, {}) if line not in locked_lines]
    evidence = (
        *changes,
        *(overlap.words for overlap in proposal.overlaps),
        *(f"new: {line.strip()}" for line in runs),
        *(f"{task} can be retried" for task in next_version.reset),
    )
    means = f"the plan is written, consent is recorded for contract {new.hash[:16]}"
    question = Decision.confirmation(
        f"amend.{new.hash[:12]}",
        "consent",
        f"Amend phase {phase} to version {difference.state.contract.version + 1} of its contract",
        "The run continues under the version that you agree to. Completed work stays as it is, and nothing runs now.",
        evidence,
        Choice("amend", "write it and lock it", means, same_command(services, "--hash", new.hash)),
        "do not change the plan",
        "nothing happens",
    )
    words = f"Nothing was written: the amendment of phase {phase} needs your confirmation."
    details = actions.offer_of(question, contract_hash=new.hash, lines=changes)
    actions.require_yes(services, question, Refusal("amend.not-confirmed", words, details=details))
