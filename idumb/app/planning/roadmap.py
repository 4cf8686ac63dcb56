"""Add a phase to the roadmap, at the end or after another phase."""

from __future__ import annotations

import re
from collections.abc import Iterable

from idumb.app.core.services import Services
from idumb.app.planning import phase_context
from idumb.app.session import operation
from idumb.domain import whole_numbers, wording
from idumb.domain.action import Action
from idumb.domain.errors import InputError

_NUMBER = re.compile(r"(\d+)([A-Za-z]?)")


def add(services: Services, title: str, goal: str, after: str | None = None) -> str:
    """Add a phase to the roadmap and return its number.

    At the end, the number follows the greatest whole number of roadmap and folders. After the phase `after`, it has
    one more part.
    """
    words = wording.one_line(wording.as_markdown(title))
    if not words:
        options = ("--add", "TITLE") if after is None else ("--add", "TITLE", "--after", after)
        raise InputError("roadmap.no-title", "A phase needs a title.", hint=Action("roadmap", options))
    with operation.owned(services, "roadmap") as owned:
        predecessor = None if after is None else phase_context.locate(services, after).phase
        if predecessor is not None and any(_NUMBER.fullmatch(part) is None for part in predecessor.split(".")):
            raise InputError(
                "roadmap.no-number",
                f"Phase {predecessor} is not numbered like a roadmap phase, so no phase can follow it.",
                hint="idumb roadmap lists the phases",
            )
        owned.record()
        numbers = [n for n, _, _ in services.plans.roadmap()] + [n for n, _ in services.plans.phases()]
        wholes = (digits[0] for number in numbers if (digits := re.match(r"\d+", number)))
        number = str(whole_numbers.next_free(wholes))
        if predecessor is not None:
            number = inserted(predecessor, [*numbers, *services.log.phases()])
        text = services.reports.read(phase_context.ROADMAP) or "# Roadmap\n"
        text = services.plans.with_phase(
            text, number, words, wording.one_line(wording.as_markdown(goal)), predecessor or ""
        )
        services.reports.write_source(phase_context.ROADMAP, text)
        services.trees.force((phase_context.ROADMAP,))
    return number


def inserted(after: str, numbers: Iterable[str]) -> str:
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
