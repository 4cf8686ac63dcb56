"""The reports of a run, read from the log: their texts, and what its page shows, which `views/html` renders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from idumb.app.attempt import projections
from idumb.app.contract import loading
from idumb.app.core import kept_runs, run_lookup, schedule
from idumb.app.core.services import Result, Services
from idumb.app.reading import metrics, show
from idumb.app.session import operation
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.grant import APPROVE
from idumb.domain.plans import graph
from idumb.domain.plans.plan import Plan, Task
from idumb.domain.proof import evidence
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState


class Span(Struct, frozen=True):
    """When an attempt worked, as UTC times. `end` is "" if it still works or was killed."""

    task: str
    attempt: int
    outcome: str
    start: str
    end: str


class Moment(Struct, frozen=True):
    """Something that a person or idumb did to the whole run. `kind` is event, decision or amendment."""

    at: str
    kind: str
    words: str
    by: str = ""
    why: str = ""
    task: str = ""


class Card(Struct, frozen=True):
    """A task with what was done. `proofs` has a row for each criterion: text, proof, and the last result or "".

    `attempts` are rows as of `idumb show`. `change` is as of `idumb show --diff`; None without one that is kept.
    `spent` is the row of its calls as of `idumb show --usage`; None if no agent was asked. `transcripts` are by
    attempt and role.
    """

    task: Task
    plan: Plan
    status: str
    reason: str
    proofs: tuple[Mapping[str, Any], ...]
    attempts: tuple[Mapping[str, Any], ...]
    change: Mapping[str, Any] | None
    spent: Mapping[str, Any] | None
    transcripts: Mapping[int, Mapping[str, str]]


class Page(Struct, frozen=True):
    """A run. `unproven` are pairs of a subject and why nothing proves it; `agreed` says who consented to the run."""

    contract: Contract
    state: RunState
    made_at: str
    cards: tuple[Card, ...]
    waves: tuple[tuple[str, ...], ...]
    spans: tuple[Span, ...]
    moments: tuple[Moment, ...]
    agreed: tuple[Moment, ...]
    unproven: tuple[tuple[str, str], ...]
    deviations: tuple[tuple[str, str], ...]
    spent: Mapping[str, Any] = field(default_factory=dict)
    sums: tuple[Mapping[str, Any], ...] = ()


def report(services: Services, phase: str, *, write: bool) -> Result:
    """Return every report of a phase. `write` also writes the files, and the plan if only the run has it."""
    state = run_lookup.named_run(services, phase)
    contract = loading.locked_contract(services, state)
    texts = projections.reports_of(services, contract, state)
    plans = [row for row in services.plans.plans(contract.folder) if services.plans.is_kept(row[0])]
    if write:
        with operation.recorded(services, "report"):
            for path, data in plans:
                services.files.write_source(path, data.decode("utf-8", "surrogateescape"))
            for path, text in texts.items():
                projections.write_report(services, path, text)
    return Result(
        {
            "phase": state.phase,
            "run": state.id,
            "reports": [{"path": path, "text": text} for path, text in texts.items()],
            "written": [*(path for path, _ in plans), *texts] if write else [],
        }
    )


def page(services: Services, phase: str) -> Page:
    """Return the page of the newest run of a phase. Refusal `run.none` if it never ran."""
    state = run_lookup.named_run(services, phase)
    contract = loading.locked_contract(services, state)
    statuses = schedule.statuses(contract, state)
    used = metrics.usage(services, state.phase).data
    by_task = {row["name"]: row for row in used["sums"] if row["by"] == "task"}
    cards = tuple(_card(services, contract, state, task, statuses[task], by_task.get(task)) for task in contract.order)
    events = list(services.log.events(run=state.id))
    return Page(
        contract,
        state,
        services.clock.now(),
        cards,
        tuple(map(tuple, graph.waves(contract.dependencies, contract.order))),
        tuple(_spans(events)),
        tuple(_moments(events)),
        tuple(_agreed(services, state)),
        tuple(_unproven(state, cards)),
        tuple((card.task.id, path) for card in cards for path in _deviations(card)),
        used["total"],
        tuple(row for row in used["sums"] if row["by"] != "task"),
    )


def _card(
    services: Services, contract: Contract, state: RunState, name: str, status: str, spent: Mapping[str, Any] | None
) -> Card:
    task, attempted = contract.tasks[name], run_lookup.attempting_run(services, state, name)
    attempts = show.attempts_of(services, attempted, name)
    recorded = attempted.tasks.get(name)
    kept = recorded is not None and recorded.work.base and (recorded.checkpoint or recorded.work.left_tree)
    is_kept = bool(kept) and attempted.id not in kept_runs.freed(services)
    change = show.change_of(services, recorded) if recorded is not None and is_kept else None
    last = {row["subject"]: row["result"] for row in (attempts[-1]["evidence"] if attempts else ())}
    proofs = ({"id": c.id, "text": c.text, "proof": c.proof, "result": last.get(c.id, "")} for c in task.acceptance)
    reason = state.tasks[name].reason if name in state.tasks else ""
    numbers = (row["attempt"] for row in attempts)
    transcripts = {number: services.transcripts(attempted.id, name, number) for number in numbers}
    return Card(
        task, contract.plan_of[name], status, reason, tuple(proofs), tuple(attempts), change, spent, transcripts
    )


def _spans(events: list[Event]) -> Iterator[Span]:
    """Yield a span for each attempt, in the order in which they started. One that waited for a person ends there."""
    ends: dict[tuple[str | None, int | None], list[Event]] = {}
    for event in events:
        if event.kind in ("attempt.finished", "attempt.interrupted"):
            ends.setdefault((event.task, event.attempt), []).append(event)
    for event in events:
        if event.kind == "attempt.started":
            ended = ends.get((event.task, event.attempt), [])
            result = str(ended[-1].payload.get("outcome", "interrupted")) if ended else "interrupted"
            yield Span(event.task or "", event.attempt or 1, result, event.at, ended[0].at if ended else "")


_OF_RUN = {
    "run.started": "the run started",
    "run.resumed": "the run went on",
    "run.halted": "the run halted",
    "run.interrupted": "the run was stopped",
    "run.completed": "every task has ended",
    "run.failed": "the run failed",
    "rollback.completed": "rolled back",
    "undo.completed": "undid the rollback",
    "task.accepted": "accepted as it is",
    "task.skipped": "skipped",
    "verification.recorded": "verification",
}


def _moments(events: list[Event]) -> Iterator[Moment]:
    questions = {e.payload["id"]: e.payload for e in events if e.kind == "decision.asked"}
    for event in events:
        facts, task = event.payload, event.task or ""
        by, why = str(facts.get("by") or ""), str(facts.get("why") or facts.get("reason") or "")
        if event.kind == "contract.amended":
            yield Moment(event.at, "amendment", f"version {facts['version']}: {'; '.join(facts['what'])}", by, why)
        elif event.kind == "decision.answered":
            question = questions.get(facts["decision"], {})
            what = f"{question.get('what', facts['decision'])}: {facts['choice']}"
            yield Moment(event.at, "decision", what, by, str(facts.get("guidance") or ""), task)
        elif event.kind in _OF_RUN:
            status = f": {facts['status']}" if event.kind == "verification.recorded" else ""
            yield Moment(event.at, "event", _OF_RUN[event.kind] + status, by, why, task)


_HOW = {
    APPROVE: "approved the plan",
    "terminal": "agreed to the plan at a terminal",
    "amendment": "agreed to the plan, and that carried over to its next version",
}


def _agreed(services: Services, state: RunState) -> Iterator[Moment]:
    """Yield who consented to a contract of this run, the earliest first."""
    hashes = {state.contract.hash, *state.contract.earlier}
    for grant in reversed(services.consent.grants(state.phase)):
        if grant.contract_hash in hashes:
            yield Moment(grant.at, "consent", _HOW.get(grant.how, "agreed to the plan by its hash"), grant.by)


_WHY_NOT = {
    evidence.WAITING: "waits for a person",
    evidence.OPINION: "only an opinion supports it",
    evidence.UNPROVEN: "nothing checks it",
    "": "no evidence was recorded",
}


def _unproven(state: RunState, cards: tuple[Card, ...]) -> Iterator[tuple[str, str]]:
    """Yield what nothing proved: criteria of tasks without a check that passed, and what verification found."""
    for card in cards:
        if card.status not in outcome.DONE:
            yield card.task.id, f"the task is {card.status}"
            continue
        for row in card.proofs:
            if row["result"] != evidence.PASSED:
                yield f"{card.task.id} {row['id']}", _WHY_NOT.get(row["result"], row["result"])
    record = state.verification or {}
    for text in record.get("unproven", ()):
        yield text, ""
    if not record:
        yield f"phase {state.phase}", "the phase was not verified"


def _deviations(card: Card) -> Iterator[str]:
    last = card.attempts[-1] if card.attempts else {}
    yield from last.get("deviations") or ()
