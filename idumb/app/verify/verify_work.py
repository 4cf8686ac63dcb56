"""Verify a phase backward: from its success criteria and goals to evidence made now, on the tree as it stands."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from idumb.app.attempt import projections, proofs, questions
from idumb.app.attempt.proofs import evidence_payload
from idumb.app.consent import approvals
from idumb.app.contract import changed_contract, loading
from idumb.app.core import projection_paths, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.ports.checks import Checks
from idumb.app.roles import opinions, role_calls
from idumb.app.session import failure_report, next_steps, operation
from idumb.app.worktree import final_state, preconditions
from idumb.domain import canonical_json, errors, listing, outcome, paths
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.decision import Answer, Choice, Decision
from idumb.domain.errors import Refusal
from idumb.domain.plans import graph
from idumb.domain.plans.plan import HUMAN, OPINION, Criterion
from idumb.domain.proof import evidence, judgement, levels
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.judgement import Judgement, Opinion
from idumb.domain.runs.run import RunState

PARTIAL = "partial"
_WEAK = frozenset({evidence.OPINION, evidence.UNPROVEN})
ROADMAP = ".planning/ROADMAP.md"


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
            f" {listing.listed(unfinished)}",
            hint=f"idumb verify-work {contract.phase} judges what is there, idumb resume {contract.phase} goes on",
            details={"phase": contract.phase},
        )
    asked = opinions.bound(services) if request.asks else ()
    if asked:
        # The hash of the contract may stand beside that of the agents, as in the question of a run.
        named = tuple(one for one in request.approve if one != contract.hash)
        role_calls.ensure_consent(services, asked, approve=named, command=f"idumb verify-work {contract.phase}")
    with operation.owned(services, "verify-work") as owned:
        journal = owned.journal(state)
        record = judge(services, journal, contract, asks=bool(asked))
        report = write_report(services, contract, record)
        reports = (report, *projections.ending(services, contract, journal.state))
        warnings = (*projections.record_reports(services, journal, reports), *opinions.silent(record))
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
        return Result(data, errors.EXIT_DONE, (*warnings, *unmet(record)))
    code = errors.EXIT_WAITING if record["status"] == "waiting" else errors.EXIT_FAILED
    return Result(
        data,
        code,
        warnings,
        (
            f"verification.{record['status']}",
            f"Phase {contract.phase}: {record['reason']}",
            data["next"][0] if unfinished else _onward(contract, record),
        ),
        failure_report.of_verification(services, state, contract, record),
    )


def _onward(contract: Contract, record: Mapping[str, Any]) -> str:
    if record["status"] == "waiting" or record["decision"] is not None:
        return "idumb decisions"
    if record["status"] == PARTIAL:
        return f"idumb verify-work {contract.phase} --gaps"
    return f"idumb show {contract.order[0]}"


def _gap_plan(services: Services, contract: Contract, record: dict[str, Any]) -> str | None:
    from idumb.app.verify import gaps  # every run ends with a verification, and few want a plan

    return gaps.write(services, contract, record)


def judge(services: Services, journal: Journal, contract: Contract, *, asks: bool = True) -> dict[str, Any]:
    """Run every success criterion, invariant and test once on the frozen tree; the record that the log keeps.

    Verifier and skeptic are asked afterwards, in copies, where `asks` is true and somebody consented to them.
    """
    shown = schedule.statuses(contract, journal.state)
    unfinished = schedule.unfinished(shown)
    workspace = services.open_workspace("here", journal.state.id)
    checks = services.open_checks(workspace, journal.state.id)
    tree = final_state.scan(services, contract)
    found = _evidence(services, checks, contract, tree, journal)
    checks.end_processes()
    spoiled = [c.path for c in services.trees.changes(tree, final_state.scan(services, contract)) if c.old is not None]
    standing = final_state.compare(services, journal.state, contract, tree)
    mismatches = _mismatches(contract, standing)
    uncovered = _uncovered(found)
    found += _stated(services, contract, tree)
    said = opinions.ask(services, journal, contract, found, tree) if asks else ()
    heard = [one for one in said if levels.rule(services.settings, one.role).level > levels.INFORMATIONAL]
    weak = (*uncovered, *opinions.unanswered(heard))
    status, reason, causes = _status(contract, found, spoiled, mismatches, heard, shown, weak)
    if unfinished:
        status, reason, causes = _in_part(status, reason, unfinished)
    record: dict[str, Any] = {
        "status": status,
        "reason": reason,
        "tree": tree,
        "evidence": [evidence_payload(e) for e in found],
        "requirements": _requirements(contract, shown),
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
        answer = _answer(services, journal, question)
        if answer is not None:
            record = _with_word(record, answer.choice, answer.by)
    elif status == "passed" and not asks:
        record["reason"] = "; ".join([reason, *_not_asked(opinions.bound(services))])
    journal.write(journal.event("verification.recorded", **record))
    return record


def confirm(services: Services, journal: Journal, contract: Contract) -> tuple[str, tuple[str, ...]]:
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
    record = _with_word(record, answer["choice"], answer["by"])
    journal.write(journal.event("verification.recorded", **record))
    reports = (write_report(services, contract, record), *projections.ending(services, contract, journal.state))
    return str(record["status"]), projections.record_reports(services, journal, reports)


def _with_word(record: dict[str, Any], choice: str, by: str) -> dict[str, Any]:
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
    about = [e["subject"] for e in record["evidence"] if e["result"] in _WEAK]
    silent = [one["role"] for one in record["judged_by"] if one["verdict"] is None]
    name = f"{contract.phase}.verified.{state.number}.{canonical_json.digest([judged, about, silent])[:8]}"
    known = (name, *(f"{name}.{again}" for again in range(2, len(state.answers) + 2)))
    return next((i for i in known if state.answers.get(i, {}).get("choice") != questions.NO), known[-1])


def _evidence(services: Services, checks: Checks, contract: Contract, tree: str, journal: Journal) -> list[Evidence]:
    limit = float(services.settings.run.check_timeout)
    commands: dict[str, tuple[str, str]] = {}
    found: list[Evidence] = []
    for plan in contract.plans:
        prefix = f"plan {plan.plan} " if len(contract.plans) > 1 else ""
        found.extend(
            _criterion(services, checks, contract, criterion, prefix, tree, journal)
            for criterion in plan.success_criteria
        )
        for invariant in plan.invariants:
            commands.setdefault(invariant.check, (f"{prefix}invariant {invariant.id}", invariant.text))
        for task in plan.tasks:
            if journal.state.tasks[task.id].status not in outcome.DONE:
                continue
            for i, test in enumerate(task.tests, 1):
                commands.setdefault(test.command, (f"{task.id} test {i}", test.intent or test.command))
    for command, (subject, text) in commands.items():
        services.interrupts.check()
        with services.interrupts.armed():
            found.append(checks.command(subject, text, command, timeout=limit, tree=tree))
    return found


def _criterion(
    services: Services,
    checks: Checks,
    contract: Contract,
    criterion: Criterion,
    prefix: str,
    tree: str,
    journal: Journal,
) -> Evidence:
    subject = f"{prefix}{criterion.id}"
    if criterion.command:
        with services.interrupts.armed():
            limit = float(services.settings.run.check_timeout)
            return checks.command(subject, criterion.text, criterion.command, timeout=limit, tree=tree)
    if criterion.proof == HUMAN and schedule.settled(schedule.statuses(contract, journal.state)):
        return _ask(services, contract, criterion, subject, tree, journal)
    result = evidence.OPINION if criterion.proof == OPINION else evidence.UNPROVEN
    return Evidence(subject, criterion.text, result, tree=tree)


def _ask(
    services: Services, contract: Contract, criterion: Criterion, subject: str, tree: str, journal: Journal
) -> Evidence:
    question = Decision(
        id=f"{contract.phase}.{subject.replace(' ', '.')}.{journal.state.number}",
        kind="criterion",
        what=f"Phase {contract.phase}, {criterion.id}: {criterion.text}",
        why="The plan says that a person judges this success criterion.",
        evidence=criterion.instructions,
        choices=(
            Choice(questions.YES, "it holds", "the criterion counts as proven by you"),
            Choice(questions.NO, "it does not hold", "the phase is not verified"),
        ),
    )
    answer = _answer(services, journal, question)
    if answer is None:
        return Evidence(subject, criterion.text, evidence.WAITING, tree=tree)
    return dataclasses.replace(
        questions.evidence_of_answers([question], [answer], tree)[0], subject=subject, text=criterion.text
    )


def _answer(services: Services, journal: Journal, question: Decision) -> Answer | None:
    """What a person said already, or says now; None where the question waits."""
    known = journal.state.answers.get(question.id)
    if known is not None:
        return Answer(question.id, known["choice"], known["by"], known.get("guidance", ""))
    asked = services.asker.ask(question)
    new = question.id not in journal.state.decisions
    events = [journal.event("decision.asked", **dataclasses.asdict(question))] if new else []
    if asked is not None:
        events.append(journal.event("decision.answered", **dataclasses.asdict(asked)))
    if events:
        journal.write(*events)
    return asked


def _mismatches(contract: Contract, workspace: final_state.Workspace) -> list[str]:
    """The graph is built again, and what completed tasks left is held against the tree as it stands."""
    wrong: list[str] = []
    if graph.topological_order(contract.dependencies).ids != contract.order:
        wrong.append("the execution order changed")
    return [*wrong, *workspace.wrong]


def _stated(services: Services, contract: Contract, tree: str) -> list[Evidence]:
    """Criteria of roadmap and context file that no plan has taken up. Nobody consented to anything in those files."""
    taken = {_folded(c.text) for p in contract.plans for c in p.success_criteria}
    taken |= {_folded(c.text) for task in contract.tasks.values() for c in task.acceptance}
    found = []
    for source, text in _sources(services, contract):
        for number, words in enumerate(services.texts.stated_criteria(text), 1):
            if _folded(words) not in taken:
                taken.add(_folded(words))
                found.append(Evidence(f"{source} {number}", words, evidence.UNPROVEN, tree=tree))
    return found


def _sources(services: Services, contract: Contract) -> list[tuple[str, str]]:
    """What the roadmap says of the phase, and the context file; a file that cannot be read says nothing."""
    texts = []
    for source, path in (("roadmap", ROADMAP), ("context", projection_paths.report_path(contract.folder, "CONTEXT"))):
        try:
            texts.append((source, services.reports.read(path) or ""))
        except OSError as problem:
            services.reporter.note(f"{path} could not be read: {problem.strerror or problem}")
    stating = [(source, text) for source, text in texts if services.texts.stated_criteria(text)]
    section = services.texts.roadmap_section  # dear, so only where there is anything to find
    return [(source, section(text, contract.phase) if source == "roadmap" else text) for source, text in stating]


def _folded(text: str) -> str:
    return " ".join(text.split()).rstrip(".").casefold()


def _status(
    contract: Contract,
    found: list[Evidence],
    spoiled: list[str],
    mismatches: list[str],
    said: Sequence[Opinion],
    shown: Mapping[str, str],
    weak: Sequence[str],
) -> tuple[str, str, list[str]]:
    """Status, reason, and the causes for which only a person's yes is missing. `weak` is what fails nothing."""
    wrong = _wrong(found, spoiled, mismatches)
    if wrong:
        return "failed", wrong, []
    waiting = [e for e in found if e.result == evidence.WAITING]
    if waiting:
        words = f"{len(waiting)} {'criterion waits' if len(waiting) == 1 else 'criteria wait'} for a person"
        return "waiting", words, []
    refuted = judgement.refutations(said)
    on_a_word = _on_a_word(shown)
    if refuted:
        doubts = [listing.listed((_refuted(one) for one in refuted), 3, between="; "), *weak]
        return PARTIAL, "; ".join(doubts), []
    if not any(e.passed for e in found) and outcome.COMPLETED not in shown.values():
        unproven = ["no task is proven, and the phase itself declares no check", *weak, *on_a_word]
        return PARTIAL, "; ".join(unproven), []
    if weak:
        return PARTIAL, "; ".join([*weak, *on_a_word]), list(weak)
    if any(e.passed for e in found):
        return "passed", "; ".join(["every check passed", *on_a_word]), []
    return "passed", "; ".join([f"only by {_by(contract, shown)}; the phase itself declares none", *on_a_word]), []


def _by(contract: Contract, shown: Mapping[str, str]) -> str:
    """What the tasks are proven by, where the phase itself declares no check."""
    done = (task for task, status in shown.items() if status == outcome.COMPLETED)
    if any(contracts.is_checked(contract.plan_of(task), contract.tasks[task]) for task in done):
        return "the tasks' own checks"
    return "what validators and people said of the tasks, which have no checks"


def _wrong(found: Sequence[Evidence], spoiled: Sequence[str], mismatches: Sequence[str]) -> str:
    """What fails the phase, "" where nothing does."""
    bad = [e for e in found if e.result in proofs.BROKEN]
    if bad:
        return listing.listed(f"{e.subject} {e.result}" for e in bad)
    return f"a check changed {listing.listed(spoiled)}" if spoiled else listing.listed(mismatches, between="; ")


def _uncovered(found: Sequence[Evidence]) -> list[str]:
    """Success criteria of the plans that no proof covers."""
    words = {evidence.OPINION: "is covered by an opinion alone", evidence.UNPROVEN: "has no proof"}
    return [f"{e.subject} {words[e.result]}" for e in found if e.result in _WEAK]


def _not_asked(left_out: Sequence[str]) -> list[str]:
    """Bound roles whose opinion the caller did not want."""
    words = f"the {' and the '.join(left_out)} {'was' if len(left_out) == 1 else 'were'} not asked"
    return [words] if left_out else []


def _in_part(status: str, reason: str, unfinished: Mapping[str, str]) -> tuple[str, str, list[str]]:
    """The verdict on a run with tasks that are not done: nothing makes it pass, a person's word neither."""
    tasks = listing.listed(f"{task} ({standing})" for task, standing in unfinished.items())
    words = f"{len(unfinished)} {'task is' if len(unfinished) == 1 else 'tasks are'} not done: {tasks}"
    return ("failed" if status == "failed" else PARTIAL), f"{words}; {reason}", []


def _on_a_word(shown: Mapping[str, str]) -> list[str]:
    """Whom nothing proves: tasks that a person took as they were, or left out."""
    accepted = [t for t, s in shown.items() if s == outcome.ACCEPTED]
    skipped = [t for t, s in shown.items() if s == outcome.SKIPPED]
    words = [f"{_were(accepted)} accepted by a person, not proven"] if accepted else []
    return [*words, *([f"{_were(skipped)} skipped"] if skipped else [])]


def _were(tasks: Sequence[str]) -> str:
    return f"{listing.listed(tasks)} {'was' if len(tasks) == 1 else 'were'}"


def _refuted(one: Judgement) -> str:
    place = next(c for c in one.citations if c.resolves)
    return f"{one.criterion} is refuted at {place.file}:{place.line}"


def unmet(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """A warning for each requirement that no done task serves, because its tasks were skipped or it has none."""
    rows = record["requirements"] if record is not None and record["status"] == "passed" else ()
    return tuple(
        f"{row['id']} is not met: "
        + (", ".join(f"{t['id']} is {t['status']}" for t in row["tasks"]) or "no task names it")
        for row in rows
        if not row["met"]
    )


def _requirements(contract: Contract, shown: Mapping[str, str]) -> list[dict[str, Any]]:
    """Backward from each requirement: the tasks that serve it, their state, and how their criteria are proven."""
    rows = []
    for plan in contract.plans:
        for requirement, text in plan.requirements.items():
            tasks = [t for t in plan.tasks if requirement in t.requirements]
            rows.append(
                {
                    "id": requirement,
                    "text": text,
                    "tasks": [{"id": t.id, "status": shown[t.id], "proofs": contracts.proofs(t)} for t in tasks],
                    "met": bool(tasks) and all(shown[t.id] in outcome.DONE for t in tasks),
                }
            )
    return rows


def write_report(services: Services, contract: Contract, record: Mapping[str, Any]) -> str:
    path = projection_paths.report_path(contract.folder, "VERIFICATION")
    projections.write_report(
        services, path, services.documents.verification(contract, record, now=services.clock.now())
    )
    return path
