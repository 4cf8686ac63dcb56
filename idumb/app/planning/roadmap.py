"""Put a phase at the end of the roadmap, or between two that are there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from idumb.app.core.services import Services
from idumb.app.planning import phase_context
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import whole_numbers, wording
from idumb.domain.errors import InputError

_NUMBER = re.compile(r"(\d+)([A-Za-z]?)")


def add(services: Services, title: str, goal: str, after: str | None = None) -> str:
    """The number of the new phase. Nothing else of the roadmap changes.

    At the end it is the one behind the greatest whole number of roadmap and folders; behind phase `after` a number
    with one part more.
    """
    preconditions.require_initialised(services)
    words = wording.one_line(wording.as_markdown(title))
    if not words:
        option = "--add TITLE" if after is None else f"--insert TITLE --after {after}"
        raise InputError("roadmap.no-title", "A phase needs a title.", hint=f"idumb roadmap {option}")
    with operation.owned(services, "roadmap") as owned:
        before = None if after is None else _numbered(services, after)
        owned.record()
        known = [n for n, _, _ in services.plans.roadmap()] + [n for n, _ in services.plans.phases()]
        number = _last(known) if before is None else inserted(before, [*known, *services.runs.phases()])
        text = services.reports.read(phase_context.ROADMAP) or "# Roadmap\n"
        text = services.texts.with_phase(text, number, words, wording.one_line(wording.as_markdown(goal)), before or "")
        services.reports.write_source(phase_context.ROADMAP, text)
        services.trees.force((phase_context.ROADMAP,))
    return number


def _last(known: Iterable[str]) -> str:
    return str(whole_numbers.next_free(found[0] for number in known if (found := re.match(r"\d+", number))))


def _numbered(services: Services, after: str) -> str:
    """The number of a phase that is there, as folder or roadmap spell it."""
    number = phase_context.locate(services, after).phase
    if any(_NUMBER.fullmatch(part) is None for part in number.split(".")):
        raise InputError(
            "roadmap.no-number",
            f"Phase {number} has no number of the roadmap, so nothing can be put behind it.",
            hint="idumb roadmap lists the phases",
        )
    return number


def inserted(after: str, known: Iterable[str]) -> str:
    """The number of a phase behind `after`: 06.1 behind 6, 06.2 behind 06.1, and 06.1.1 where there is a 06.2.

    Behind 6 it comes behind what was put there before.
    """
    taken = [_bare(number) for number in known]
    base, last = _bare(after), _NUMBER.fullmatch(after.rpartition(".")[2])
    if len(base) > 1 and last is not None and not last[2]:
        beside = (*base[:-1], str(whole_numbers.next_free([last[1]])))
        if beside not in taken:
            return _spelled(beside)
    inside = [one[len(base)] for one in taken if one[: len(base)] == base and len(one) > len(base)]
    return _spelled(
        (*base, str(whole_numbers.next_free(found[0] for one in inside if (found := re.match(r"\d+", one)))))
    )


def _bare(number: str) -> tuple[str, ...]:
    return tuple(re.sub(r"^0+(?=\d)", "", part).casefold() for part in number.split("."))


def _spelled(parts: tuple[str, ...]) -> str:
    """With two digits before the point, as such phases are usually written."""
    digits = re.match(r"\d*", parts[0])
    return ".".join(("0" * (2 - len(digits[0] if digits else "")) + parts[0], *parts[1:]))
