"""Verify a phase backward: from its success criteria and goals to evidence made now, on the tree as it stands."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from idumb.app.attempt import projections, questions
from idumb.app.attempt.proofs import evidence_payload
from idumb.app.consent import approvals
from idumb.app.contract import changed_contract, loading
from idumb.app.core import projection_paths, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.roles import opinions, role_consent
from idumb.app.session import failure_report, next_steps, operation
from idumb.app.verify import phase_evidence, verdict
from idumb.app.worktree import final_state, preconditions
from idumb.domain import canonical_json, errors, outcome, paths, wording
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import Refusal
from idumb.domain.plans import graph
from idumb.domain.proof import evidence, levels
from idumb.domain.runs.run import RunState


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """Flags of `verify-work`. `gaps` writes a plan of what is open; `asks` false leaves verifier and skeptic alone."""

    phase: str
    gaps: bool = False
    asks: bool = True
    approve: tuple[str, ...] = ()


def verify(services: Services, request: Request) -> Result:
    """`idumb verify-work N`: judge again, write VERIFICATION.md, record the outcome."""
    phase = request.phase
    preconditions.require_initialised(services)
    loaded = loading.of(services, phase)
    contract = loading.runnable(services, loaded)
    state = run_lookup.require_run(services, contract.phase)
    changed_contract.same_contract(services, contract, state)
    preconditions.require_settled(state)
    preconditions.require_repository(services)
    approvals.require_for(services, contract, state)
    shown = schedule.statuses(contract, state)
    unfinished = schedule.unfinished(shown)
    if unfinished and request.gaps:
        raise Refusal(
            "verification.too-early",
            f"Gaps are planned once every task of phase {contract.phase} is done or skipped; these are not:"
            f" {wording.listed(unfinished)}",
            hint=f"idumb verify-work {contract.phase} judges what is there, idumb resume {contract.phase} goes on",
            details={"phase": contract.phase},
        )
    asked = opinions.bound_roles(services) if request.asks else ()
    if asked:
        # The hash of the contract may stand beside that of the agents, as in the question of a run.
        named = tuple(one for one in request.approve if one != contract.hash)
        role_consent.ensure(services, asked, approve=named, command=f"idumb verify-work {contract.phase}")
    with operation.owned(services, "verify-work") as owned:
        journal = owned.journal(state)
        record = judge(services, journal, contract, asks=bool(asked))
        report = write_report(services, contract, record)
        reports = (report, *projections.ending(services, contract, journal.state))
        warnings = (*projections.record_reports(services, journal, reports), *opinions.missing_opinions(record))
        plan = _gap_plan(services, contract, record) if request.gaps else None
    data = {"phase": contract.phase, "run": state.id, "report": report, "gap_plan": plan, **record}
    data |= {"next": [f"idumb check-plan {contract.phase}", f"idumb execute-phase {contract.phase}"]} if plan else {}
    onward = (
        next_steps.next_commands(contract, state, shown, "", record, asked=bool(next_steps.pending(state)))
        if unfinished
        else []
    )
    data |= {"next": [c for c in onward if c != f"idumb verify-work {contract.phase}"]} if unfinished else {}
    if record["status"] == "passed":
        return Result(data, errors.EXIT_DONE, (*warnings, *verdict.unmet_requirements(record)))
    code = errors.EXIT_WAITING if record["status"] == "waiting" else errors.EXIT_FAILED
    return Result(
        data,
        code,
        warnings,
        (
            f"verification.{record['status']}",
            f"Phase {contract.phase}: {record['reason']}",
            data["next"][0] if unfinished else _next_command(contract, record),
        ),
        failure_report.of_verification(services, state, contract, record),
    )


def _next_command(contract: Contract, record: Mapping[str, Any]) -> str:
    if record["status"] == "waiting" or record["decision"] is not None:
        return "idumb decisions"
    if record["status"] == verdict.PARTIAL:
        return f"idumb verify-work {contract.phase} --gaps"
    return f"idumb show {contract.order[0]}"


def _gap_plan(services: Services, contract: Contract, record: dict[str, Any]) -> str | None:
    from idumb.app.verify import gap_plan  # every run ends with a verification, and few want a plan

    return gap_plan.write(services, contract, record)


def judge(services: Services, journal: Journal, contract: Contract, *, asks: bool = True) -> dict[str, Any]:
    """Run every success criterion, invariant and test once on the frozen tree; the record that the log keeps.

    Verifier and skeptic are asked afterwards, in copies, where `asks` is true and somebody consented to them.
    """
    shown = schedule.statuses(contract, journal.state)
    unfinished = schedule.unfinished(shown)
    workspace = services.open_workspace("here", journal.state.id)
    checks = services.open_checks(workspace, journal.state.id)
    tree = final_state.scan(services, contract)
    found = phase_evidence.gather(services, checks, contract, tree, journal)
    checks.end_processes()
    spoiled = [c.path for c in services.trees.changes(tree, final_state.scan(services, contract)) if c.old is not None]
    standing = final_state.compare(services, journal.state, contract, tree)
    mismatches = _mismatches(contract, standing)
    uncovered = verdict.uncovered(found)
    found += phase_evidence.stated_criteria(services, contract, tree)
    said = opinions.ask(services, journal, contract, found, tree) if asks else ()
    heard = [one for one in said if levels.rule(services.settings, one.role).level > levels.INFORMATIONAL]
    weak = (*uncovered, *opinions.unanswered_roles(heard))
    status, reason, causes = verdict.decide(contract, found, spoiled, mismatches, heard, shown, weak)
    if unfinished:
        status, reason, causes = verdict.of_unfinished_run(status, reason, unfinished)
    record: dict[str, Any] = {
        "status": status,
        "reason": reason,
        "tree": tree,
        "evidence": [evidence_payload(e) for e in found],
        "requirements": verdict.requirements(contract, shown),
        "goals": {p.path: p.goal for p in contract.plans},
        "mismatches": mismatches,
        "workspace": standing.as_dict(),
        "spoiled": spoiled,
        "unproven": [e.text for e in found if e.result == evidence.UNPROVEN],
        "opinions": [e.text for e in found if e.result == evidence.OPINION],
        "judged_by": [opinions.as_dict(one) for one in said],
        "skipped": [t for t, s in shown.items() if s == outcome.SKIPPED],
        "accepted": {t: journal.state.tasks[t].reason for t, s in shown.items() if s == outcome.ACCEPTED},
        "unfinished": unfinished,
        "causes": causes,
        "decision": None,
    }
    if causes:
        question = _question(services, contract, journal.state, record)
        record["decision"] = question.id
        answer = phase_evidence.answer_to(services, journal, question)
        if answer is not None:
            record = _overridden(record, answer.choice, answer.by)
    elif status == "passed" and not asks:
        record["reason"] = "; ".join([reason, *verdict.roles_not_asked(opinions.bound_roles(services))])
    journal.write(journal.event("verification.recorded", **record))
    return record


def apply_answer(services: Services, journal: Journal, contract: Contract) -> tuple[str, tuple[str, ...]]:
    """What a person's answer makes of the newest verification, where the files are still those that it judged.

    The status now, and warnings. Only `yes` changes it.
    """
    record = dict(journal.state.verification or {})
    answer = journal.state.answers.get(str(record.get("decision")))
    if answer is None or answer["choice"] != questions.YES:
        return str(record.get("status")), ()
    present = {**record, "tree": final_state.scan(services, contract)}
    if _question_id(services, contract, journal.state, present) != record["decision"]:
        return str(record["status"]), ("The files changed since they were judged, so nothing is verified by it yet.",)
    record = _overridden(record, answer["choice"], answer["by"])
    journal.write(journal.event("verification.recorded", **record))
    reports = (write_report(services, contract, record), *projections.ending(services, contract, journal.state))
    return str(record["status"]), projections.record_reports(services, journal, reports)


def _overridden(record: dict[str, Any], choice: str, by: str) -> dict[str, Any]:
    """The record once a person was asked whether the phase counts as verified all the same."""
    if choice == questions.YES:
        return {**record, "status": "passed", "reason": f"{record['reason']}; verified on the word of {by}"}
    return {**record, "reason": f"{record['reason']}; {by} says that this does not do"}


def _question(services: Services, contract: Contract, state: RunState, record: Mapping[str, Any]) -> Decision:
    """Asked where all that can fail passed, and something that was to speak for the phase did not."""
    return Decision(
        id=_question_id(services, contract, state, record),
        kind=next_steps.VERIFICATION,
        what=f"Phase {contract.phase}: does it count as verified?",
        why=f"{record['reason']}.",
        evidence=(*record["causes"], f"report {projection_paths.report_path(contract.folder, 'VERIFICATION')}"),
        choices=(
            Choice(questions.YES, "it does", "the phase is verified, and the report names your word"),
            Choice(
                questions.NO,
                "it does not",
                f"the phase stays partial; idumb verify-work {contract.phase} judges it again",
            ),
        ),
    )


def _question_id(services: Services, contract: Contract, state: RunState, record: Mapping[str, Any]) -> str:
    """The same for the same causes and the same files: a yes counts for nothing else. After a no it is asked anew."""
    tree = record["tree"]
    own = [c.path for c in services.trees.changes(state.base.tree, tree) if paths.matches_any(c.path, paths.OWN_FILES)]
    judged = services.trees.overlay(tree, state.base.tree, own) if own else tree
    about = [e["subject"] for e in record["evidence"] if e["result"] in verdict.WEAK]
    silent = [one["role"] for one in record["judged_by"] if one["verdict"] is None]
    name = f"{contract.phase}.verified.{state.number}.{canonical_json.digest([judged, about, silent])[:8]}"
    known = (name, *(f"{name}.{again}" for again in range(2, len(state.answers) + 2)))
    return next((i for i in known if state.answers.get(i, {}).get("choice") != questions.NO), known[-1])


def _mismatches(contract: Contract, workspace: final_state.Workspace) -> list[str]:
    """The graph is built again, and what completed tasks left is held against the tree as it stands."""
    wrong: list[str] = []
    if graph.topological_order(contract.dependencies).ids != contract.order:
        wrong.append("the execution order changed")
    return [*wrong, *workspace.wrong]


def write_report(services: Services, contract: Contract, record: Mapping[str, Any]) -> str:
    path = projection_paths.report_path(contract.folder, "VERIFICATION")
    projections.write_report(
        services, path, services.documents.verification(contract, record, now=services.clock.now())
    )
    return path
