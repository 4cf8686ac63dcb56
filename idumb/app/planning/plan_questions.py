"""Questions about a plan on which planner and plan-checker did not agree. They wait for a person.

They belong to no run. Only the newest question about a plan counts, until the plan exists.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.planning import draft_plan, phase_context
from idumb.app.planning.draft_plan import Draft
from idumb.app.planning.phase_context import PhaseLocation
from idumb.app.session import operation
from idumb.domain import canonical_json
from idumb.domain.decision import Answer, Choice, Decision
from idumb.domain.errors import InputError, Refusal
from idumb.domain.runs.event import Event

MARK = "plan."
KIND = "plan"
TAKE, AGAIN, NO = "take", "again", "no"


@dataclasses.dataclass(frozen=True, slots=True)
class Unsettled:
    """What the rounds left. `command` asks the planner again; `kept` is the path of a copy of the draft."""

    where: PhaseLocation
    path: str
    rounds: int
    draft: Draft | None
    objections: tuple[str, ...]
    problem: str
    kept: str | None
    command: str

    @property
    def legal(self) -> bool:
        return self.draft is not None and self.draft.legal


@dataclasses.dataclass(frozen=True, slots=True)
class SentBack:
    """What a person sent back to the planner: the draft, the objections, and guidance."""

    text: str | None
    objections: tuple[str, ...]
    guidance: str


def question(journal: Journal, left: Unsettled) -> Decision:
    id = f"{MARK}{left.where.phase}.{journal.operation}"
    phase, rounds = left.where.phase, left.rounds
    against = [f"objection: {one}" for one in left.objections]
    if left.draft is not None and not left.draft.legal:
        against += left.draft.feedback.splitlines()
    kept = [f"the draft is kept in {left.kept}"] if left.kept else []
    if left.legal:
        what = f"The plan-checker objects to the plan of phase {phase} after {rounds} rounds"
        why = "The plan is legal, and runs only with your consent. The plan-checker's objections are an opinion."
    else:
        what = f"The planner wrote no legal plan for phase {phase} in {rounds} rounds"
        why = "Nothing was written. Without a plan, the phase cannot run."
    text = left.draft.text.split("\n") if left.draft is not None else []
    return Decision(
        id=id,
        kind=KIND,
        what=what,
        why=why,
        evidence=(*against, *([left.problem] if left.problem else []), *kept, *text),
        choices=tuple(_choices(id, left)),
    )


def _choices(id: str, left: Unsettled) -> Iterator[Choice]:
    if left.legal:
        yield Choice(TAKE, "write the plan as it is", f"{left.path} is written", f"idumb decide {id} {TAKE}")
    start = "from the last draft" if left.draft is not None else "from nothing"
    yield Choice(
        AGAIN,
        "ask planner and checker again, with guidance",
        f"{left.command} runs more rounds, {start}, with the guidance in the prompt",
        f"idumb decide {id} {AGAIN} --guidance TEXT",
    )
    kept = "the draft is kept; you can edit and take it later" if left.kept else "nothing was written"
    yield Choice(NO, "leave the phase without this plan", kept, f"idumb decide {id} {NO}")


def record(journal: Journal, left: Unsettled, asked: Decision, answer: Answer | None, worktree: str) -> None:
    """Record the question, and the answer if it was given at once."""
    text = left.draft.text if left.draft is not None else None
    about = {
        "phase": left.where.phase,
        "worktree": worktree,
        "path": left.path,
        "go_on": left.command,
        "objections": list(left.objections),
        "draft": text,
        "draft_hash": None if text is None else canonical_json.digest(text),
        "kept": left.kept,
    }
    events = [journal.asked(asked, **about)]
    events += [] if answer is None else [journal.answered(answer)]
    journal.write(*events)


def open_questions(services: Services) -> list[dict[str, Any]]:
    """Return the open questions of this working tree, the oldest first."""
    names = [field.name for field in dataclasses.fields(Decision)]
    return [
        {**{name: asked.payload[name] for name in names}, "phase": asked.payload["phase"]}
        for asked, answer in _newest(services)
        if answer is None and not services.reports.exists(asked.payload["path"])
    ]


def sent_back(services: Services, path: str) -> SentBack | None:
    """Return what was sent back to the planner of the plan at `path`; None if nothing was."""
    for asked, answer in _newest(services):
        question = asked.payload
        if question["path"] == path and answer is not None and answer.payload["choice"] == AGAIN:
            text = question["draft"] if _whole(question) else None
            return SentBack(text, tuple(question["objections"]), str(answer.payload.get("guidance") or ""))
    return None


def _newest(services: Services) -> list[tuple[Event, Event | None]]:
    """Return the newest question about each plan of this working tree, with its answer."""
    newest: dict[str, Event] = {}
    for event in services.log.events(kind="decision.asked"):
        if event.run is None and event.payload["kind"] == KIND and event.payload.get("worktree") == services.worktree:
            newest.pop(event.payload["path"], None)
            newest[event.payload["path"]] = event
    return [(asked, _answer(services, asked)) for asked in newest.values()]


def _answer(services: Services, asked: Event) -> Event | None:
    answers = services.log.events(kind="decision.answered", after=asked.seq)
    return next((one for one in answers if one.payload["decision"] == asked.payload["id"]), None)


def _whole(question: Mapping[str, Any]) -> bool:
    """Return whether the log has the whole draft; it never stores a known secret."""
    return question["draft"] is not None and canonical_json.digest(question["draft"]) == question["draft_hash"]


def require_open(services: Services, id: str) -> Mapping[str, Any] | None:
    """Return the open question with this id; None if this working tree has none.

    Refusal `decision.answered` or `decision.void` if it is no longer open.
    """
    every = [e for e in services.log.events(kind="decision.asked") if e.run is None and e.payload["id"] == id]
    own = [e.payload for e in every if e.payload.get("worktree") == services.worktree]
    if not own:
        return None
    question = own[-1]
    newest = {asked.payload["id"]: answer for asked, answer in _newest(services)}
    if newest.get(id) is not None:
        raise Refusal("decision.answered", f"{id} is already answered.", hint=question["go_on"])
    if services.reports.exists(question["path"]):
        raise _void(id, f"{question['path']} exists now", f"idumb check-plan {question['phase']}")
    if id not in newest:
        raise _void(id, "a later question replaced it", "idumb decisions")
    return question


def apply_answer(services: Services, question: Mapping[str, Any], answer: Answer) -> Result:
    """Do what the answer chose, and record it."""
    draft = _draft(services, question) if answer.choice == TAKE else None
    with operation.owned(services, "decide") as owned:
        journal = owned.record()
        if draft is not None:
            draft_plan.write(services, draft)
        journal.write(journal.answered(answer))
    after = {
        TAKE: [f"idumb check-plan {question['phase']}", f"idumb execute-phase {question['phase']}"],
        AGAIN: [question["go_on"]],
    }
    data = {"decision": answer.decision, "choice": answer.choice, "verification": None, "remembered": None}
    return Result({**data, "version": None, "next": after.get(answer.choice, ["idumb next"])})


def _draft(services: Services, question: Mapping[str, Any]) -> Draft:
    if not _whole(question):
        kept = f"idumb plan-phase {question['phase']} --from {question['kept']}"
        raise _void(
            str(question["id"]), "the log does not contain the draft, because the draft contains a secret", kept
        )
    where = phase_context.locate(services, question["phase"])
    identity, path = draft_plan.next_path(services, where)
    if path != question["path"]:
        raise _void(
            str(question["id"]), f"the next plan of the phase is now {path}", f"idumb plan-phase {question['phase']}"
        )
    draft = draft_plan.judge(services, where, identity, path, question["draft"])
    if not draft.legal:
        raise InputError(
            "plan.invalid",
            f"The draft is no longer legal; {path} was not written.",
            findings=draft.findings,
            hint=f"idumb decide {question['id']} {AGAIN}",
            details={"phase": question["phase"]},
        )
    return draft


def _void(id: str, why: str, hint: str) -> Refusal:
    return Refusal("decision.void", f"{id} is void: {why}. Nothing was recorded.", hint=hint)
