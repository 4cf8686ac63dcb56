"""Questions to a person about a phase: asked once, kept in its context file, and answered there, here or by a flag."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.planning import phase_context
from idumb.app.planning.phase_context import PhaseContext, PhaseLocation
from idumb.app.roles import role_calls, role_consent
from idumb.app.roles.role_calls import RoleRequest
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import agent, outcome, reply, wording
from idumb.domain.errors import EXIT_WAITING, InputError, Refusal
from idumb.domain.question import Question, number_questions, standard_questions

MOST = 12
"""Questions that are taken from one answer of an agent."""

Reader = Callable[[Question], str | None]
"""What a person at the terminal says to a question: "" leaves it open, None ends the talk."""

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["questions"],
    "properties": {
        "questions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["text"],
                "properties": {"text": {"type": "string"}, "why": {"type": "string"}},
            },
        }
    },
}


@dataclass(frozen=True, slots=True)
class Request:
    """`answers` are by the id of a question. `more` asks for questions though there are some; `usual` asks no agent."""

    phase: str
    answers: Mapping[str, str] = field(default_factory=dict)
    more: bool = False
    usual: bool = False
    approve: tuple[str, ...] = ()


def discuss(services: Services, request: Request, read: Reader | None) -> Result:
    """Ask what is open, and write down what is answered. Exit code 5 where questions wait and nobody could be asked."""
    preconditions.require_initialised(services)
    where = phase_context.locate(services, request.phase)
    known = phase_context.gather(services, where)
    warnings: list[str] = []
    if request.answers:
        _require_open(known, request.answers)
        _write(services, where, (), request.answers)
    elif request.more or not known.questions:
        asked, warnings = _new_questions(services, known, request)
        _write(services, where, number_questions(known.questions, asked), {})
    answered = list(request.answers)
    if read is not None and not request.answers:
        answered += _interview(services, where, read)
    return _result(services, where, answered, warnings)


def _require_open(known: PhaseContext, answers: Mapping[str, str]) -> None:
    phase, path = known.location.phase, known.location.path("CONTEXT")
    there = {q.id: q for q in known.questions}
    for identity, answer in answers.items():
        if identity not in there:
            raise InputError(
                "question.unknown",
                f"No question of phase {phase} has the id {identity}; it has {', '.join(there) or 'none yet'}.",
                hint=f"idumb discuss {phase}",
            )
        if there[identity].answer:
            raise Refusal(
                "question.answered",
                f"{identity} was answered already, and what a person wrote is not replaced.",
                hint=f"Change the answer in {path}",
            )
        if not wording.as_markdown(answer).strip():
            raise InputError(
                "question.no-answer",
                f"There is no word in the answer to {identity}.",
                hint=f"idumb discuss {phase} --answer {identity}=TEXT",
            )


def _new_questions(
    services: Services, known: PhaseContext, request: Request
) -> tuple[list[tuple[str, str]], list[str]]:
    """(text, why) of new questions, by the researcher where one is bound, else the usual ones; and warnings."""
    plain = list(standard_questions(known.roadmap, known.project, known.requirements))
    if request.usual or role_calls.binding_of(services, agent.RESEARCHER) is None:
        return plain, []
    command = f"idumb discuss {known.location.phase}{' --more' if request.more else ''}"
    role_consent.ensure(services, [agent.RESEARCHER], approve=request.approve, command=command)
    phase = f"phase {known.location.phase}"
    values = {**known.values(), "report": "", "discuss": phase}
    answered = role_calls.ask(services, RoleRequest(agent.RESEARCHER, phase.replace(" ", "-"), values, SCHEMA))
    found = reply.answer(answered.reply or answered.output, "questions")
    if answered.outcome == outcome.COMPLETED and isinstance(found, dict) and isinstance(found["questions"], list):
        return [one for row in found["questions"][:MOST] if (one := _question(row)) is not None], []
    why = answered.message or (found if isinstance(found, str) else "its answer was malformed")
    return plain, [f"The researcher brought no questions: {why}; these are the usual ones."]


def _question(row: Any) -> tuple[str, str] | None:
    if not isinstance(row, Mapping) or not isinstance(row.get("text"), str):
        return None
    why = row.get("why")
    return wording.one_line(row["text"]), wording.one_line(why) if isinstance(why, str) else ""


def _interview(services: Services, where: PhaseLocation, read: Reader) -> list[str]:
    """Ask one after the other; each answer is written before the next question, so that none is lost."""
    found = []
    for question in phase_context.gather(services, where).questions:
        if question.answer:
            continue
        said = read(question)
        if said is None:
            break
        if wording.as_markdown(said).strip():
            _write(services, where, (), {question.id: said})
            found.append(question.id)
    return found


def _write(services: Services, where: PhaseLocation, questions: Sequence[Question], answers: Mapping[str, str]) -> None:
    """Into the file as it is now: a person may have written in it meanwhile."""
    if not questions and not answers:
        return
    path = where.path("CONTEXT")
    with operation.owned(services, "discuss") as owned:
        owned.record()
        before = services.reports.read(path) or ""
        title = f"Phase {where.phase}: {where.title}" if where.title else f"Phase {where.phase}"
        text = services.texts.with_questions(before, title, questions, answers)
        services.reports.write_source(path, text)
        services.trees.force((path,))


def _result(services: Services, where: PhaseLocation, answered: Sequence[str], warnings: Sequence[str]) -> Result:
    questions = phase_context.gather(services, where).questions
    waiting = [q for q in questions if not q.answer]
    phase, path = where.phase, where.path("CONTEXT")
    ways = [f"idumb discuss {phase} --answer {waiting[0].id}=TEXT"] if waiting else [f"idumb plan-phase {phase}"]
    data = {
        "phase": phase,
        "path": path if questions else None,
        "questions": [{"id": q.id, "text": q.text, "why": q.why, "answer": q.answer or None} for q in questions],
        "answered": list(answered),
        "open": [q.id for q in waiting],
        "next": ways if waiting else [*ways, f"idumb discuss {phase} --more"],
    }
    if not waiting or answered:
        return Result(data, warnings=tuple(warnings))
    count = len(waiting)
    words = f"{count} question{'s' * (count != 1)} of phase {phase} wait{'s' * (count == 1)} for an answer."
    failure = ("question.waiting", words, f"{ways[0]}; or write below the question in {path}")
    return Result(data, EXIT_WAITING, tuple(warnings), failure, {"phase": phase})
