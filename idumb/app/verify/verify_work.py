"""Verify a phase: check its success criteria and goals against evidence gathered now, on the current tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from idumb.app import role_calls
from idumb.app.attempt import projections
from idumb.app.consent import needs, phase_grants
from idumb.app.contract import changed_contract, loading
from idumb.app.core import actions, questions, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.services import Result, Services, report_path
from idumb.app.session import failure_report, next_steps, operation
from idumb.app.verify import phase_evidence, verdict
from idumb.app.verify.verdict import Verdict
from idumb.app.worktree import done_work, preconditions, task_base
from idumb.app.worktree.done_work import FinalState
from idumb.domain import canonical_json, errors, outcome, paths, wording
from idumb.domain import contract as contracts
from idumb.domain.action import PHASE, Action, Choice, Decision, plain
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans import graph
from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import evidence, gate_table, verification
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import Deadline
from idumb.domain.proof.judgement import Opinion
from idumb.domain.runs.run import RunState


def verify(services: Services, phase: str, *, gaps: bool, asks: bool, approve: Sequence[str]) -> Result:
    """Judge a phase again, write VERIFICATION.md, and record the outcome.

    `gaps` writes a plan for the open criteria; without `asks`, no agent is called.
    """
    contract = loading.valid_contract(services, loading.load_phase(services, phase))
    state = run_lookup.require_run(services, contract.phase)
    changed_contract.require_contract_of_run(services, contract, state)
    preconditions.require_settled(state)
    preconditions.require_repository(services)
    (phase_grants.require_ran if state.verified else phase_grants.require_for)(services, contract, state)
    statuses = schedule.statuses(contract, state)
    unfinished = schedule.unfinished(statuses)
    if unfinished and gaps:
        judge_now = Action.of("verify-work", contract.phase)
        now = Choice("now", "judge what is done so far", "the phase stays partial", judge_now)
        raise Refusal(
            "verification.too-early",
            f"Phase {contract.phase} has unfinished tasks, and --gaps needs every task done or skipped:"
            f" {wording.listed(unfinished)}",
            hint=Action.of("resume", contract.phase),
            details={"phase": contract.phase, "choices": actions.choice_rows((now,))},
        )
    roles = needs.bound_judges(services) if asks else ()
    if roles:
        needs.of_roles(services, roles)  # refuses one that cannot start
        role_calls.ensure_consent(services, needs.of_run(services, contract), approve=approve)
    with operation.recorded(services, "verify-work", state) as journal:
        record = judge(services, journal, contract, asks=bool(roles))
        warnings = (*publish(services, journal, contract, record), *phase_evidence.missing_opinions(record))
        plan = None
        if gaps:
            from idumb.app.planning import draft_plan  # every run ends with a verification, and few need a gap plan

            plan = draft_plan.write_gap_plan(services, contract, record)
        kept = journal.state.reports
    report = report_path(contract.folder, "VERIFICATION")
    data = {"phase": contract.phase, "run": state.id, "report": report, "reports": kept, "gap_plan": plan, **record}
    if plan:
        data["next"] = [Action.of("check-plan", contract.phase), Action.of("execute-phase", contract.phase)]
    if unfinished:
        following = next_steps.of_run(services, contract, state, statuses)
        data["next"] = [action for action in following if action.verb != "verify-work"]
    status = record["status"]
    if status == "passed":
        return Result(data, errors.EXIT_DONE, warnings)
    code = errors.EXIT_WAITING if status == "waiting" else errors.EXIT_FAILED
    way = Action.of("show", contract.order[0])
    if status == "waiting" or record["decision"] is not None:
        way = actions.DECISIONS
    elif status == verdict.PARTIAL:
        way = Action.of("verify-work", contract.phase, "--gaps")
    hint = record.get("fix") or (data["next"][0] if unfinished else way)
    failure = (f"verification.{status}", f"Phase {contract.phase}: {record['reason']}", hint)
    return Result(data, code, warnings, failure, failure_report.report_verification(services, state, contract, record))


class Findings(Struct, frozen=True):
    """What a phase is judged by, gathered now.

    - `statuses`: of its tasks. `tree`: the frozen files. `final`: how they differ from what the tasks left.
    - `proofs`: of success criteria, invariants and tests. `outside`: criteria that only roadmap or context state.
    - `regressions`: the other checks of completed tasks, run again. `of_tasks`: what the log has of each task.
    - `opinions`: of verifier and skeptic. `contradictions`: what disagrees, in words.
    """

    statuses: Mapping[str, str]
    tree: str
    final: FinalState
    proofs: Sequence[Evidence]
    outside: Sequence[Evidence]
    regressions: Sequence[Evidence]
    of_tasks: Mapping[str, Sequence[Mapping[str, Any]]]
    opinions: Sequence[Opinion]
    contradictions: Sequence[str]

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return (*self.proofs, *self.outside, *self.regressions)

    @property
    def done(self) -> list[str]:
        return [task for task, status in self.statuses.items() if status in outcome.DONE]


def judge(services: Services, journal: Journal, contract: Contract, *, asks: bool = True) -> dict[str, Any]:
    """Run every success criterion, invariant and test once on the frozen tree; return the record that the log keeps.

    With `asks`, verifier and skeptic then give their opinions, in copies, if you consented to them.
    """
    findings = _gather(services, journal, contract, asks=asks)
    judged = _decide(services, contract, journal.state, findings)
    not_asked = [] if asks else verdict.roles_not_asked(needs.bound_judges(services))
    record = _record(services, contract, journal.state, findings, judged, not_asked)
    if judged.causes:
        question = _question(services, contract, journal.state, record)
        record["decision"] = question.id
        answer = journal.ask_once(services.asker, question)
        if answer is not None:
            record = _overridden(record, answer.choice, answer.by)
    elif judged.status == "passed":
        record["reason"] = "; ".join([judged.reason, *not_asked])
    journal.append("verification.recorded", **record)
    return record


def _gather(services: Services, journal: Journal, contract: Contract, *, asks: bool) -> Findings:
    checks = services.open_checks(services.here, journal.state.id).given(contract.variables)
    tree = done_work.present_tree(services, contract)
    judged = task_base.tree_between_attempts(services, journal.state, tree)
    phase = phase_evidence.Phase(services, journal, contract, checks, judged)
    proofs = phase_evidence.gather(phase)
    tests, regressions = phase_evidence.of_tasks(phase, proofs)
    proofs += tests
    checks.end_processes()
    final = done_work.compare_at_end(services, journal.state, contract, tree)
    outside = phase_evidence.uncovered_criteria(services, contract, tree)
    opinions = phase_evidence.ask_judges(phase, [*proofs, *outside], tree) if asks else ()
    of_tasks = projections.evidence_by_task(services, journal.state)
    own_checks = [*tests, *regressions]
    contradictions = _contradictions(services, contract, journal.state, of_tasks, own_checks, opinions)
    statuses = schedule.statuses(contract, journal.state)
    return Findings(statuses, tree, final, proofs, outside, regressions, of_tasks, opinions, contradictions)


def _decide(services: Services, contract: Contract, state: RunState, findings: Findings) -> Verdict:
    """Return the verdict; no answer of a person can make an unfinished run pass."""
    blocking, statuses = [o for o in findings.opinions if _blocks(services, o.role)], findings.statuses
    completed = [task for task in findings.done if statuses[task] == outcome.COMPLETED]
    as_left = contracts.without_replaced(contract, completed, findings.done)
    weak = [
        *verdict.uncovered(findings.proofs),
        *verdict.regressed(findings.regressions),
        *phase_evidence.unanswered_roles(blocking),
        *verification.unproven_work(as_left, findings.of_tasks),
        *verdict.unmet(verdict.requirements(contract, statuses)),
        *findings.final.wrong,  # a person may have changed the files since
        *(findings.contradictions if _blocks(services, gate_table.AGREEMENT) else ()),
        *(verdict.strict_causes(findings.evidence) if STRICT in (contract.mode, state.mode) else ()),
    ]
    gathered = [*findings.proofs, *findings.outside]
    judged = verdict.decide(contract, gathered, _reordered(contract), blocking, statuses, weak)
    unfinished = schedule.unfinished(statuses)
    return verdict.of_unfinished_run(judged, unfinished) if unfinished else judged


def _reordered(contract: Contract) -> list[str]:
    is_in_order = graph.topological_order(contract.dependencies) == contract.order
    return [] if is_in_order else ["the execution order changed"]


def _blocks(services: Services, name: str) -> bool:
    """Return whether a gate or role blocks the verification; otherwise it only reports."""
    return gate_table.rule(services.settings, name).level > gate_table.INFORMATIONAL


def _record(
    services: Services, contract: Contract, state: RunState, findings: Findings, judged: Verdict, not_asked: list[str]
) -> dict[str, Any]:
    """Return the payload of `verification.recorded`, without the answer of a person."""
    statuses = findings.statuses
    rows = [e.as_dict() for e in findings.evidence]
    completed = {t: r for t, r in findings.of_tasks.items() if statuses.get(t) == outcome.COMPLETED}
    remaining = [
        *verdict.uncovered(findings.outside),
        *not_asked,
        *phase_evidence.unanswered_roles([o for o in findings.opinions if not _blocks(services, o.role)]),
        *(() if _blocks(services, gate_table.AGREEMENT) else findings.contradictions),
    ]
    replaced = contracts.replaced(contract, findings.done)
    omitted = {t: contracts.standing(contract.tasks[t], s) for t, s in statuses.items() if s == outcome.OMITTED}
    return {
        "status": judged.status,
        "reason": judged.reason,
        "tree": findings.tree,
        "evidence": rows,
        "weaker": verdict.weaker(rows, completed),
        "requirements": verdict.requirements(contract, statuses),
        "goals": {p.path: p.goal for p in contract.plans},
        "mismatches": [*_reordered(contract), *findings.final.wrong],
        "workspace": msgspec.structs.asdict(findings.final),
        "unproven": [e.text for e in findings.evidence if e.result == evidence.UNPROVEN],
        "opinions": [e.text for e in findings.evidence if e.result == evidence.OPINION],
        "judged_by": plain(msgspec.to_builtins(findings.opinions)),
        "skipped": [t for t, s in statuses.items() if s == outcome.SKIPPED],
        "accepted": {t: state.tasks[t].reason for t, s in statuses.items() if s == outcome.ACCEPTED},
        **({"omitted": omitted} if omitted else {}),
        "unfinished": schedule.unfinished(statuses),
        "causes": judged.causes,
        **({"open": remaining} if remaining else {}),
        **({"replaced": replaced} if replaced else {}),
        "decision": None,
    }


def _contradictions(
    services: Services,
    contract: Contract,
    state: RunState,
    of_tasks: Mapping[str, Sequence[Mapping[str, Any]]],
    own_checks: Sequence[Evidence],
    opinions: Sequence[Opinion],
) -> tuple[str, ...]:
    """Return the contradictions in what was recorded about completed tasks."""
    work = {task: t.work for task, t in state.tasks.items() if t.status == outcome.COMPLETED}
    changed = {task: w.symbols for task, w in work.items()}
    touched = {task: w.touched for task, w in work.items()}
    tasks = [contract.tasks[task] for task in contract.order if task in work]
    seconds = gate_table.time_to_judge(services.settings, gate_table.AGREEMENT)
    deadline = Deadline.after(seconds, services.clock.monotonic)
    return verification.contradictions(tasks, changed, touched, of_tasks, own_checks, opinions, deadline)


def apply_answer(services: Services, journal: Journal, contract: Contract) -> tuple[str, tuple[str, ...]]:
    """Apply an answer to the newest verification if the files are still those that it judged.

    Returns the status, and warnings. Only `yes` changes the status.
    """
    record = dict(journal.state.verification or {})
    answer = journal.state.answers.get(str(record.get("decision")))
    if answer is None or answer["choice"] != questions.YES:
        return str(record.get("status")), ()
    present = {**record, "tree": done_work.present_tree(services, contract)}
    if _question_id(services, contract, journal.state, present) != record["decision"]:
        return str(record["status"]), (
            "The files have changed since the verification, so your answer does not apply to them.",
        )
    record = _overridden(record, answer["choice"], answer["by"])
    journal.append("verification.recorded", **record)
    return str(record["status"]), publish(services, journal, contract, record)


def _overridden(record: dict[str, Any], choice: str, by: str) -> dict[str, Any]:
    """Return the record with the answer to the question whether the phase counts as verified."""
    if choice == questions.YES:
        return {**record, "status": "passed", "reason": f"{record['reason']}; {by} accepted it as verified"}
    return {**record, "reason": f"{record['reason']}; {by} did not accept it as verified"}


def _question(services: Services, contract: Contract, state: RunState, record: Mapping[str, Any]) -> Decision:
    """Return the question that is asked if nothing failed, but a criterion or opinion is missing."""
    shown = (*record["causes"], f"report {report_path(contract.folder, 'VERIFICATION')}")
    id = _question_id(services, contract, state, record)
    return questions.from_table(PHASE, id, shown, phase=contract.phase, reason=record["reason"])


def _question_id(services: Services, contract: Contract, state: RunState, record: Mapping[str, Any]) -> str:
    """Return an id that stands for these causes and files, so that a yes applies to nothing else.

    After a no, the same question gets a new id.
    """
    tree = record["tree"]
    own_paths = [
        c.path for c in services.trees.changes(state.base.tree, tree) if paths.matches_any(c.path, paths.OWN_FILES)
    ]
    judged = services.trees.overlay(tree, state.base.tree, own_paths) if own_paths else tree
    name = f"{contract.phase}.verified.{state.number}.{canonical_json.digest([judged, record['causes']])[:8]}"
    ids = (name, *(f"{name}.{again}" for again in range(2, len(state.answers) + 2)))
    return next((i for i in ids if state.answers.get(i, {}).get("choice") != questions.NO), ids[-1])


def publish(
    services: Services, journal: Journal, contract: Contract, record: Mapping[str, Any] | None
) -> tuple[str, ...]:
    """Write the reports of a phase and commit them; return warnings. Without a record, it was not judged."""
    reports: list[str] = []
    if record is not None:
        reports.append(report_path(contract.folder, "VERIFICATION"))
        if not journal.state.reports_in_log:
            text = services.documents.verification(contract, record, now=services.clock.now())
            projections.write_report(services, reports[0], text)
    reports += projections.write_at_end(services, contract, journal.state)
    return projections.record_reports(services, journal, reports)
