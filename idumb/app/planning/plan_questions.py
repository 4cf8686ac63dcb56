"""Questions about a plan on which planner and plan-checker did not agree. They wait for a person.

They belong to no run. Only the newest question about a plan counts, until the plan exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.app.planning import draft_plan, phase_context
from idumb.app.planning.draft_plan import Draft, PlanFile
from idumb.app.planning.phase_context import PhaseContext
from idumb.app.session import operation
from idumb.domain import canonical_json
from idumb.domain.action import PLAN, Action, Answer, Choice, Decision
from idumb.domain.agent import AgentResult
from idumb.domain.errors import InputError, Refusal
from idumb.domain.runs.event import Event

_MARK = "plan."
TAKE, AGAIN, NO = "take", "again", "no"


class Goal(Struct, frozen=True):
    """What to plan: the context of the phase, the file of the plan, and the gaps to close."""

    context: PhaseContext
    file: PlanFile
    gaps: str = ""

    @property
    def about(self) -> str:
        return f"phase-{self.context.location.phase}"


class Round(Struct):
    """The state after a round: the last draft, and the objections to it. `failed` is a call that gave no reply.

    `kept` is the path of a copy of the draft, so that it survives if the command is stopped in the next round.
    """

    number: int = 0
    draft: Draft | None = None
    objections: list[str] = field(default_factory=list)
    problem: str = ""
    failed: AgentResult | None = None
    kept: str | None = None

    @property
    def legal(self) -> bool:
        return self.draft is not None and self.draft.legal

    @property
    def good(self) -> bool:
        return self.legal and not self.objections and not self.problem

    @property
    def feedback(self) -> str:
        findings = self.draft.feedback if self.draft is not None else ""
        objections = "\n".join(f"- {objection}" for objection in self.objections)
        return "\n".join(text for text in (self.problem, findings, objections) if text)


def record(journal: Journal, goal: Goal, state: Round, command: Action, worktree: str) -> Decision:
    """Record the question about what the rounds left, and return it; `command` asks the planner again."""
    phase, draft = goal.context.location.phase, state.draft
    text = None if draft is None else draft.text
    evidence = [f"objection: {objection}" for objection in state.objections]
    if state.legal:
        headline = f"The plan-checker objects to the plan of phase {phase} after {state.number} rounds"
        why = "The plan is legal, and runs only with your consent. The plan-checker's objections are an opinion."
    else:
        evidence += draft.feedback.splitlines() if draft is not None else []
        headline = f"The planner wrote no legal plan for phase {phase} in {state.number} rounds"
        why = "Nothing was written. Without a plan, the phase cannot run."
    evidence += [state.problem] if state.problem else []
    evidence += [f"the draft is kept in {state.kept}"] if state.kept else []
    evidence += [] if text is None else text.split("\n")
    id = f"{_MARK}{phase}.{journal.operation}"
    question = Decision(id, PLAN, headline, why, tuple(evidence), tuple(_choices(id, goal, state, command)))
    details = {
        "phase": phase,
        "worktree": worktree,
        "path": goal.file.path,
        "go_on": str(command),
        "objections": state.objections,
        "draft": text,
        "draft_hash": None if text is None else canonical_json.digest(text),
        "kept": state.kept,
    }
    journal.write(journal.question_event(question, **details))
    return question


def _choices(id: str, goal: Goal, state: Round, command: Action) -> Iterator[Choice]:
    if state.legal:
        yield Choice(TAKE, "write the plan as it is", f"{goal.file.path} is written", Action.of("decide", id, TAKE))
    start = "from the last draft" if state.draft is not None else "from nothing"
    yield Choice(
        AGAIN,
        "ask planner and checker again, with guidance",
        f"{command} runs more rounds, {start}, with the guidance in the prompt",
        Action.of("decide", id, AGAIN, "--guidance", "TEXT"),
    )
    kept = "the draft is kept; you can edit and take it later" if state.kept else "nothing was written"
    yield Choice(NO, "leave the phase without this plan", kept, Action.of("decide", id, NO))


def open_questions(services: Services) -> list[dict[str, Any]]:
    """Return the open questions of this working tree."""
    names = Decision.__struct_fields__
    return [
        {**{name: row[name] for name in names if name in row}, "phase": row["phase"]}
        for row, answer in _newest(services).values()
        if answer is None and not services.files.exists(row["path"])
    ]


def sent_back(services: Services, path: str) -> tuple[str | None, Round]:
    """Return the draft and the objections that a person sent back to the planner of the plan at `path`, if he did."""
    asked, answer = _newest(services).get(path, ({}, None))
    if answer is None or answer.payload["choice"] != AGAIN:
        return None, Round()
    guidance = str(answer.payload.get("guidance") or "").strip()
    problem = f"A person read the last draft and says: {guidance}" if guidance else ""
    return asked["draft"] if _whole(asked) else None, Round(objections=list(asked["objections"]), problem=problem)


def _newest(services: Services) -> dict[str, tuple[Mapping[str, Any], Event | None]]:
    """Return the newest question about each plan of this working tree, with its answer, by path."""
    asked = (event.payload for event in services.log.events(kind="decision.asked") if event.run is None)
    here = [row for row in asked if row["kind"] == PLAN and row.get("worktree") == services.worktree]
    answers = (
        {event.payload["decision"]: event for event in services.log.events(kind="decision.answered")} if here else {}
    )
    return {row["path"]: (row, answers.get(row["id"])) for row in here}


def _whole(question: Mapping[str, Any]) -> bool:
    """Return whether the log has the whole draft; it never stores a known secret."""
    return question["draft"] is not None and canonical_json.digest(question["draft"]) == question["draft_hash"]


def require_open(services: Services, id: str) -> Mapping[str, Any] | None:
    """Return the open question with this id; None if it is not the newest one about a plan of this working tree.

    Refusal `decision.answered` or `decision.void` if it is no longer open.
    """
    found = next((pair for pair in _newest(services).values() if pair[0]["id"] == id), None)
    if found is None:
        return None
    question, answer = found
    if answer is not None:
        raise Refusal("decision.answered", f"{id} is already answered.", hint=question["go_on"])
    if services.files.exists(question["path"]):
        raise void(id, f"{question['path']} exists now", Action.of("check-plan", question["phase"]))
    return question


def apply_answer(services: Services, question: Mapping[str, Any], answer: Answer) -> list[Any]:
    """Do what the answer chose, and record it; return the next commands."""
    draft = _draft(services, question) if answer.choice == TAKE else None
    with operation.recorded(services, "decide") as journal:
        if draft is not None:
            draft_plan.write(services, draft)
        journal.write(journal.answer_event(answer))
    if answer.choice == TAKE:
        return [Action.of("check-plan", question["phase"]), Action.of("execute-phase", question["phase"])]
    return [question["go_on"]] if answer.choice == AGAIN else [Action("next")]


def _draft(services: Services, question: Mapping[str, Any]) -> Draft:
    if not _whole(question):
        kept = Action.of("plan-phase", question["phase"], "--from", question["kept"])
        raise void(question["id"], "the log does not contain the draft, because the draft contains a secret", kept)
    file = draft_plan.next_plan(services, phase_context.locate(services, question["phase"]))
    draft = draft_plan.judge(services, file, question["draft"])
    if not draft.legal:
        raise InputError(
            "plan.invalid",
            f"The draft is no longer legal; {file.path} was not written.",
            findings=draft.findings,
            hint=Action.of("decide", question["id"], AGAIN),
            details={"phase": question["phase"]},
        )
    return draft


def void(id: str, why: str, hint: Action | str) -> Refusal:
    """Return the refusal of an answer to a question that is none any more."""
    return Refusal("decision.void", f"{id} is void: {why}. Nothing was recorded.", hint=hint)
