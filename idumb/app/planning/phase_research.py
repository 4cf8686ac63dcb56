"""What is found out before a phase is planned: by research of an agent, and by questions to you.

Research records the context it was made from, so that stale research shows. Questions and answers are kept in the
context file of the phase.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from idumb.app import role_calls
from idumb.app.consent import needs
from idumb.app.core.journal import Journal
from idumb.app.core.services import Result, Services, write_forced
from idumb.app.planning import phase_context
from idumb.app.planning.phase_context import PhaseContext, PhaseLocation
from idumb.app.role_calls import RoleRequest
from idumb.app.session import operation
from idumb.domain import agent, outcome, phase_documents, replies, wording
from idumb.domain.action import Action
from idumb.domain.agent import AgentResult
from idumb.domain.errors import EXIT_FAILED, EXIT_WAITING, InputError, Refusal
from idumb.domain.phase_documents import Question, number_questions, standard_questions

_BACKUP_FOLDER = "research"
ASKING = "asking the researcher …"

Tell = Callable[[str], None]
"""Report progress to the user."""

_MOST_QUESTIONS = 12
"""The most questions taken from one reply of an agent."""

Reader = Callable[[Question], str | None]
"""Read an answer at the terminal: "" leaves the question open, None ends the discussion."""

_QUESTION = replies.object_of(text=replies.TEXT, why=replies.TEXT)
_QUESTIONS_SCHEMA = replies.object_of(questions=replies.list_of(_QUESTION))


def research(
    services: Services, phase: str, tell: Tell, *, again: bool, ask: bool, offered: str | None, approve: Collection[str]
) -> Result:
    """Write the research of a phase; Refusal `research.own` if the file was written by hand.

    `again` asks even if the research is current; `approve` is consent to the agent. `ask` shows the researcher's
    prompt; `offered` is a finished report to take instead.
    """
    context = phase_context.gather(services, phase_context.locate(services, phase))
    where, path = context.location, context.location.path("RESEARCH")
    command = Action.of("plan", "research", where.phase)
    if context.research_state == phase_context.OWN:
        raise Refusal(
            "research.own",
            f"idumb did not write {path}, so it does not replace it. Rename it to have the phase researched.",
            hint=Action.of("plan-phase", where.phase),
            details={"phase": where.phase},
        )
    data: dict[str, Any] = {
        "phase": where.phase,
        "path": path,
        "digest": context.digest,
        "written": False,
        "standing": context.research_state,
        "kept": None,
        "binding": None,
        "next": [Action.of("plan-phase", where.phase)],
    }
    if ask:
        take = replace(command, arguments=(*command.arguments, "--from", "FILE"))
        return Result({**data, "prompt": role_calls.prompt(services, _role_request(context)), "next": [take]})
    if offered is None:
        if context.research_state == phase_context.CURRENT and not again:
            return Result(data)
        role_calls.ensure_consent(services, needs.of_roles(services, [agent.RESEARCHER]), approve=approve)
    elif not offered.strip():
        raise InputError("research.empty", "The report is empty.", hint=Action.of("plan", "research", "--help"))
    with operation.recorded(services, "research") as journal:
        if offered is None:
            tell(ASKING)
        written = (
            ask_and_write(services, context, journal) if offered is None else _write_report(services, context, offered)
        )
    if isinstance(written, AgentResult):
        return Result(data, EXIT_FAILED, (), role_calls.no_answer(services, agent.RESEARCHER, written, command))
    return Result({**data, "written": True, "standing": phase_context.CURRENT, **written})


def _role_request(context: PhaseContext, wanted: str = "report") -> RoleRequest:
    values = {**context.values(), "report": "", "discuss": "", wanted: f"phase {context.location.phase}"}
    answer = _QUESTIONS_SCHEMA if wanted == "discuss" else None
    return RoleRequest(agent.RESEARCHER, f"phase-{context.location.phase}", values, answer)


def ask_and_write(services: Services, context: PhaseContext, journal: Journal) -> AgentResult | dict[str, str | None]:
    """Ask the researcher and write its report; return the result if it failed. A replaced report is kept."""
    result = role_calls.ask(services, _role_request(context), journal)
    body = result.reply or result.output
    if result.outcome != outcome.COMPLETED or not body.strip():
        return result
    return _write_report(services, context, body, role_calls.binding_of(services, agent.RESEARCHER), result.model)


def _write_report(
    services: Services, context: PhaseContext, body: str, binding: str | None = None, model: str | None = None
) -> dict[str, str | None]:
    where = context.location
    fields = {
        "type": "research",
        "phase": where.phase,
        "created": services.clock.now(),
        "bundle": context.digest,
        "binding": binding,
        "model": model,
    }
    path = where.path("RESEARCH")
    previous, kept = services.files.read(path), None
    if previous is not None:
        data = previous.encode("utf-8", "surrogateescape")
        kept = services.backups.keep(_BACKUP_FOLDER, path.rsplit("/", 1)[-1], data)
    services.files.write(path, services.documents.research(fields, body))
    return {"binding": binding, "model": model, "kept": kept}


def discuss(
    services: Services,
    phase: str,
    answers: Mapping[str, str],
    read: Reader | None,
    *,
    more: bool,
    usual: bool,
    approve: Collection[str],
) -> Result:
    """Ask open questions and write the answers down. Exit code 5 if questions wait and nobody could be asked.

    `answers` map question ids to answers. `more` asks for further questions; `usual` asks the built-in ones.
    """
    where = phase_context.locate(services, phase)
    context = phase_context.gather(services, where)
    warnings: list[str] = []
    if answers:
        _require_open(context, answers)
        _write_answers(services, where, (), answers)
    elif more or not context.questions:
        questions, warnings = _new_questions(services, context, usual=usual, approve=approve)
        _write_answers(services, where, number_questions(context.questions, questions), {})
    answered = list(answers)
    if read is not None and not answers:
        answered += _interview(services, where, read)
    return _discussed(services, where, answered, warnings)


def _require_open(context: PhaseContext, answers: Mapping[str, str]) -> None:
    phase, path = context.location.phase, context.location.path("CONTEXT")
    by_id = {q.id: q for q in context.questions}
    for id, answer in answers.items():
        if id not in by_id:
            words = f"Phase {phase} has no question {id}; its questions: {', '.join(by_id) or 'none yet'}."
            raise InputError("question.unknown", words, hint=Action.of("plan", "discuss", phase))
        if by_id[id].answer:
            words = f"{id} is already answered, and idumb does not overwrite an answer."
            raise Refusal("question.answered", words, hint=f"Change the answer in {path}")
        if not wording.as_markdown(answer).strip():
            again = Action.of("plan", "discuss", phase, "--answer", f"{id}=TEXT")
            raise InputError("question.no-answer", f"The answer to {id} is empty.", hint=again)


def _new_questions(
    services: Services, context: PhaseContext, *, usual: bool, approve: Collection[str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return (text, why) of new questions, from the researcher if one is bound, and warnings."""
    usual_questions = list(standard_questions(context.roadmap, context.project, context.requirements))
    if usual or role_calls.binding_of(services, agent.RESEARCHER) is None:
        return usual_questions, []
    role_calls.ensure_consent(services, needs.of_roles(services, [agent.RESEARCHER]), approve=approve)
    request = _role_request(context, "discuss")
    with operation.recorded(services, f"{request.role} {request.about}") as journal:
        result = role_calls.ask(services, request, journal)
    answer = replies.answer(result.reply or result.output, "questions")
    if result.outcome == outcome.COMPLETED and isinstance(answer, dict) and isinstance(answer["questions"], list):
        return [
            question for row in answer["questions"][:_MOST_QUESTIONS] if (question := _question(row)) is not None
        ], []
    why = result.message or (answer if isinstance(answer, str) else "its reply was malformed")
    return usual_questions, [f"The researcher asked nothing: {why}. These are the usual questions."]


def _question(row: Any) -> tuple[str, str] | None:
    if not isinstance(row, Mapping) or not isinstance(row.get("text"), str):
        return None
    why = row.get("why")
    return wording.one_line(row["text"]), wording.one_line(why) if isinstance(why, str) else ""


def _interview(services: Services, where: PhaseLocation, read: Reader) -> list[str]:
    """Ask each open question, and write each answer before the next question, so that none is lost."""
    answered = []
    for question in phase_context.gather(services, where).questions:
        if question.answer:
            continue
        answer = read(question)
        if answer is None:
            break
        if wording.as_markdown(answer).strip():
            _write_answers(services, where, (), {question.id: answer})
            answered.append(question.id)
    return answered


def _write_answers(
    services: Services, where: PhaseLocation, questions: Sequence[Question], answers: Mapping[str, str]
) -> None:
    """Write into the current context file, which may have been edited since it was read."""
    if not questions and not answers:
        return
    path = where.path("CONTEXT")
    with operation.recorded(services, "discuss"):
        previous = services.files.read(path) or ""
        title = f"Phase {where.phase}: {where.title}" if where.title else f"Phase {where.phase}"
        text = phase_documents.updated(previous, title, questions, answers)
        write_forced(services, path, text)


def _discussed(services: Services, where: PhaseLocation, answered: Sequence[str], warnings: Sequence[str]) -> Result:
    questions = phase_context.gather(services, where).questions
    waiting = [q for q in questions if not q.answer]
    phase, path = where.phase, where.path("CONTEXT")
    ways = [Action.of("plan-phase", phase), Action.of("plan", "discuss", phase, "--more")]
    if waiting:
        ways = [Action.of("plan", "discuss", phase, "--answer", f"{waiting[0].id}=TEXT")]
    data = {
        "phase": phase,
        "path": path if questions else None,
        "questions": [{"id": q.id, "text": q.text, "why": q.why, "answer": q.answer or None} for q in questions],
        "answered": list(answered),
        "open": [q.id for q in waiting],
        "next": ways,
    }
    if not waiting or answered:
        return Result(data, warnings=tuple(warnings))
    count = len(waiting)
    words = f"{count} question{'s' * (count != 1)} about phase {phase} need{'s' * (count == 1)} an answer."
    failure = ("question.waiting", words, ways[0])
    return Result(data, EXIT_WAITING, tuple(warnings), failure, {"phase": phase})
