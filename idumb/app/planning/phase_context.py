"""A phase in the roadmap, and the context for its plan: roadmap, project, requirements, answers and research."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from idumb.app.contract import plan_checks
from idumb.app.core import actions
from idumb.app.core.services import Services, write_forced
from idumb.app.session import operation
from idumb.domain import canonical_json, phase_documents, whole_numbers, wording
from idumb.domain.action import Action, Choice
from idumb.domain.errors import InputError
from idumb.domain.phase_documents import Question
from idumb.domain.plans import phase_ids

_PROJECT = ".planning/PROJECT.md"
ROADMAP = ".planning/ROADMAP.md"
_NUMBER = re.compile(r"(\d+)([A-Za-z]?)")

MISSING = "missing"
STALE = "stale"
CURRENT = "current"
OWN = "written by hand"
"""States of research: none, made from other context, made from this context, or not made by idumb."""
_QUOTED = ("roadmap", "project", "requirements", "context", "research")


class PhaseLocation(Struct, frozen=True):
    """A phase as folder or roadmap spell it: its folder, which may not exist, and its title in the roadmap."""

    phase: str
    folder: str
    title: str

    def path(self, kind: str) -> str:
        """Return a path such as `.planning/phases/1/1-CONTEXT.md`."""
        return f"{self.folder}/{self.folder.rsplit('/', 1)[-1]}-{kind}.md"


class PhaseContext(Struct, frozen=True):
    """The texts of the files, "" for a missing one. `context` omits open questions."""

    location: PhaseLocation
    roadmap: str
    project: str
    requirements: str
    context: str
    questions: tuple[Question, ...]
    research: str
    research_state: str

    @property
    def digest(self) -> str:
        """Return the hash of everything that research depends on. Research made from another hash is stale."""
        texts = (self.roadmap, self.project, self.requirements, self.context)
        return canonical_json.digest([hashlib.sha256(t.encode("utf-8", "surrogateescape")).hexdigest() for t in texts])

    def values(self) -> Mapping[str, str]:
        """Return the values for prompt templates. Every text from a file is fenced."""
        waiting = "\n".join(f"- {q.id}: {q.text}" for q in self.questions if not q.answer)
        return {
            "phase": self.location.phase,
            "title": wording.one_line(self.location.title) or f"Phase {self.location.phase}",
            **{name: wording.fenced(wording.truncate(getattr(self, name)), "markdown") for name in _QUOTED},
            "open_questions": wording.fenced(waiting, "text"),
        }


_ADD = Choice("add", "add a phase", "TITLE says what it is for", Action.of("roadmap", "--add", "TITLE"))


def locate(services: Services, phase: str) -> PhaseLocation:
    """Return where a phase is, by folder or roadmap; InputError `phase.not-found` if it is in neither."""
    titles = {listed.number: listed.title for listed in services.plans.roadmap()}
    roadmap_number = next((number for number in titles if services.plans.same_phase(number, phase)), None)
    try:
        folder = services.plans.phase_folder(phase)
    except InputError as problem:
        if problem.code != "phase.not-found" or not phase.strip():
            raise
        if roadmap_number is None:
            raise InputError(
                "phase.not-found",
                f"There is no phase {phase}: it is neither in {ROADMAP} nor a folder of .planning/phases.",
                hint=Action("roadmap"),
                details={"choices": actions.choice_rows((_ADD,))},
            ) from problem
        return PhaseLocation(roadmap_number, f".planning/phases/{roadmap_number}", titles[roadmap_number])
    if phase_ids.step_plan_of_reports(folder) is not None:
        hint = Action.of("help", "step-plans")
        raise InputError("phase.step-plan", f"{phase} is a step plan, not a phase.", hint=hint)
    number = next((n for n, known in services.plans.phases() if known == folder), phase)
    roadmap_number = next((n for n in titles if services.plans.same_phase(n, number)), None)
    return PhaseLocation(number, folder, titles[roadmap_number] if roadmap_number else "")


def gather(services: Services, where: PhaseLocation) -> PhaseContext:
    """Read the context from its files. OSError if a path contains a link, or a file cannot be read."""
    read = services.files.read
    roadmap = services.plans.roadmap_section(read(ROADMAP) or "", where.phase)
    context_file = read(where.path("CONTEXT")) or ""
    context = PhaseContext(
        location=where,
        roadmap=roadmap,
        project=read(_PROJECT) or "",
        requirements=read(plan_checks.REQUIREMENTS) or "",
        context=phase_documents.without_open(context_file),
        questions=phase_documents.questions_in(context_file),
        research="",
        research_state=MISSING,
    )
    return _with_research(services, context)


def _with_research(services: Services, context: PhaseContext) -> PhaseContext:
    text = services.files.read(context.location.path("RESEARCH"))
    if text is None:
        return context
    record, body = services.plans.research(text)
    if record is None:
        return replace(context, research=text, research_state=OWN)
    return replace(context, research=body, research_state=CURRENT if record == context.digest else STALE)


def add_phase(services: Services, title: str, goal: str, after: str | None = None) -> str:
    """Add a phase to the roadmap and return its number.

    At the end, the number follows the greatest whole number of roadmap and folders. After the phase `after`, it has
    one more part.
    """
    words = wording.one_line(wording.as_markdown(title))
    if not words:
        options = ("--add", "TITLE") if after is None else ("--add", "TITLE", "--after", after)
        raise InputError("roadmap.no-title", "A phase needs a title.", hint=Action("roadmap", options))
    predecessor = None if after is None else locate(services, after).phase
    if predecessor is not None and any(_NUMBER.fullmatch(part) is None for part in predecessor.split(".")):
        words = f"Phase {predecessor} is not numbered like a roadmap phase, so no phase can follow it."
        raise InputError("roadmap.no-number", words, hint=Action("roadmap"))
    with operation.recorded(services, "roadmap"):
        number = next_number(services)
        if predecessor is not None:
            number = _inserted_number(predecessor, [*numbers(services), *services.log.phases()])
        text, about = services.files.read(ROADMAP) or "# Roadmap\n", wording.one_line(wording.as_markdown(goal))
        if "\0" in text:  # UTF-16, of which UTF-8 behind it makes no text at all
            raise InputError("roadmap.unreadable", f"{ROADMAP} is not UTF-8.", hint=f"Save {ROADMAP} as UTF-8")
        text = services.plans.with_phase(text, number, words, about, predecessor or "")
        write_forced(services, ROADMAP, text)
    return number


def numbers(services: Services) -> list[str]:
    """Return the numbers of all phases, first those of the roadmap."""
    return [*(phase.number for phase in services.plans.roadmap()), *(number for number, _ in services.plans.phases())]


def next_number(services: Services) -> str:
    """Return the whole number after the greatest one."""
    wholes = (digits[0] for number in numbers(services) if (digits := re.match(r"\d+", number)))
    return str(whole_numbers.next_free(wholes))


def _inserted_number(after: str, numbers: Iterable[str]) -> str:
    """Return the number of a new phase after `after`: 06.1 after 6, 06.2 after 06.1, or 06.1.1 if 06.2 exists.

    After 6, it follows the phases already inserted there.
    """
    taken = [_bare(number) for number in numbers]
    base, last = _bare(after), _NUMBER.fullmatch(after.rpartition(".")[2])
    if len(base) > 1 and last is not None and not last[2]:
        beside = (*base[:-1], str(whole_numbers.next_free([last[1]])))
        if beside not in taken:
            return _spelled(beside)
    inside = [other[len(base)] for other in taken if other[: len(base)] == base and len(other) > len(base)]
    return _spelled(
        (*base, str(whole_numbers.next_free(digits[0] for other in inside if (digits := re.match(r"\d+", other)))))
    )


def _bare(number: str) -> tuple[str, ...]:
    return tuple(re.sub(r"^0+(?=\d)", "", part).casefold() for part in number.split("."))


def _spelled(parts: tuple[str, ...]) -> str:
    """Write the number with two digits before the point, as is usual."""
    digits = re.match(r"\d*", parts[0])
    return ".".join(("0" * (2 - len(digits[0] if digits else "")) + parts[0], *parts[1:]))
