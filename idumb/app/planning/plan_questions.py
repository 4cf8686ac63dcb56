"""Questions about a plan that the rounds of planner and checker did not settle. They wait until a person answers.

They belong to no run, so the log has them apart. Of a phase the newest one counts, until its plan is there.
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
    """What the rounds left. `command` asks the planner again; `kept` is a copy of the draft."""

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
    """What a person sent back to the planner: the draft, what is against it, and their own words."""

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
        why = "The plan is legal, and nothing of it runs before you agree to it. What the checker says is an opinion."
    else:
        what = f"The planner wrote no legal plan of phase {phase} in {rounds} rounds"
        why = "Nothing was written. Without a plan the phase cannot run."
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
    begins = "they begin from the last draft" if left.draft is not None else "the planner is asked once more"
    yield Choice(
        AGAIN,
        "ask planner and checker again, with guidance",
        f"{left.command} makes more rounds; {begins}, and the words of --guidance are in the prompt",
        f"idumb decide {id} {AGAIN} --guidance TEXT",
    )
    kept = "the draft is kept and can be edited and taken later" if left.kept else "nothing was written"
    yield Choice(NO, "leave the phase without this plan", kept, f"idumb decide {id} {NO}")


def record(journal: Journal, left: Unsettled, asked: Decision, answer: Answer | None, worktree: str) -> None:
    """The question, and the answer where a person gave it at once."""
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
    events = [journal.event("decision.asked", **dataclasses.asdict(asked), **about)]
    events += [] if answer is None else [journal.event("decision.answered", **dataclasses.asdict(answer))]
    journal.write(*events)


def open_questions(services: Services) -> list[dict[str, Any]]:
    """The questions of this work tree that are open, the oldest first, as every other question."""
    names = [field.name for field in dataclasses.fields(Decision)]
    return [
        {**{name: asked.payload[name] for name in names}, "phase": asked.payload["phase"]}
        for asked, answer in _newest(services)
        if answer is None and not services.reports.exists(asked.payload["path"])
    ]


def sent_back(services: Services, path: str) -> SentBack | None:
    """What a person sent back to the planner of the plan at `path`; None where nobody did."""
    for asked, answer in _newest(services):
        p = asked.payload
        if p["path"] == path and answer is not None and answer.payload["choice"] == AGAIN:
            text = p["draft"] if _whole(p) else None
            return SentBack(text, tuple(p["objections"]), str(answer.payload.get("guidance") or ""))
    return None


def _newest(services: Services) -> list[tuple[Event, Event | None]]:
    """The newest question about each plan of this work tree, with its answer."""
    found: dict[str, Event] = {}
    for event in services.log.events(kind="decision.asked"):
        if event.run is None and event.payload["kind"] == KIND and event.payload.get("worktree") == services.worktree:
            found.pop(event.payload["path"], None)
            found[event.payload["path"]] = event
    return [(asked, _answer(services, asked)) for asked in found.values()]


def _answer(services: Services, asked: Event) -> Event | None:
    given = services.log.events(kind="decision.answered", after=asked.seq)
    return next((one for one in given if one.payload["decision"] == asked.payload["id"]), None)


def _whole(p: Mapping[str, Any]) -> bool:
    """Whether the log has the draft as it was: a known secret is never written to it."""
    return p["draft"] is not None and canonical_json.digest(p["draft"]) == p["draft_hash"]


def require_open(services: Services, id: str) -> Mapping[str, Any] | None:
    """The question of this work tree, as it was recorded; None where none has the id.

    Refusal `decision.answered`, and `decision.void` where it is no longer open.
    """
    every = [e for e in services.log.events(kind="decision.asked") if e.run is None and e.payload["id"] == id]
    own = [e.payload for e in every if e.payload.get("worktree") == services.worktree]
    if not own:
        return None
    p = own[-1]
    newest = {asked.payload["id"]: answer for asked, answer in _newest(services)}
    if newest.get(id) is not None:
        raise Refusal("decision.answered", f"{id} was answered already.", hint=p["go_on"])
    if services.reports.exists(p["path"]):
        raise _void(id, f"{p['path']} is there now", f"idumb check-plan {p['phase']}")
    if id not in newest:
        raise _void(id, "a later question took its place", "idumb decisions")
    return p


def apply_answer(services: Services, p: Mapping[str, Any], answer: Answer) -> Result:
    """Do what a person chose."""
    draft = _draft(services, p) if answer.choice == TAKE else None
    with operation.owned(services, "decide") as owned:
        journal = owned.record()
        if draft is not None:
            draft_plan.write(services, draft)
        journal.write(journal.event("decision.answered", **dataclasses.asdict(answer)))
    after = {TAKE: [f"idumb check-plan {p['phase']}", f"idumb execute-phase {p['phase']}"], AGAIN: [p["go_on"]]}
    data = {"decision": answer.decision, "choice": answer.choice, "verification": None, "remembered": None}
    return Result({**data, "version": None, "next": after.get(answer.choice, ["idumb next"])})


def _draft(services: Services, p: Mapping[str, Any]) -> Draft:
    if not _whole(p):
        kept = f"idumb plan-phase {p['phase']} --from {p['kept']}"
        raise _void(str(p["id"]), "the log does not hold the draft, because it has a known secret in it", kept)
    where = phase_context.locate(services, p["phase"])
    identity, path = draft_plan.next_path(services, where)
    if path != p["path"]:
        raise _void(str(p["id"]), f"the phase's next plan is {path} now", f"idumb plan-phase {p['phase']}")
    draft = draft_plan.judge(services, where, identity, path, p["draft"])
    if not draft.legal:
        raise InputError(
            "plan.invalid",
            f"The draft is not legal any more; {path} was not written.",
            findings=draft.findings,
            hint=f"idumb decide {p['id']} {AGAIN}",
            details={"phase": p["phase"]},
        )
    return draft


def _void(id: str, why: str, hint: str) -> Refusal:
    return Refusal("decision.void", f"{id} is void: {why}. Nothing was recorded.", hint=hint)
