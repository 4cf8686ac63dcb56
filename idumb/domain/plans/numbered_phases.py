"""Phases whose plans idumb writes and numbers itself: quick plans and runs of workflows.

The phase of the third quick plan is `Q3`, its folder `.planning/quick/003-fix-the-typo`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from idumb.lazy_dataclass import dataclass

_IN_FOLDER = re.compile(r"0*([1-9][0-9]{0,5})(?:-|$)")


@dataclass(frozen=True, slots=True)
class NumberedPhases:
    """`letter` begins their names, `parent` holds their folders, `words` name one of them in a message."""

    letter: str
    parent: str
    words: str

    def phase(self, number: int) -> str:
        return f"{self.letter}{number}"

    def number_of(self, phase: str) -> int | None:
        """Return 3 for `Q3`, `q3` and `Q003`; None for every other phase."""
        match = re.fullmatch(rf"[{self.letter}{self.letter.lower()}]0*([1-9][0-9]{{0,5}})", phase)
        return int(match[1]) if match else None

    def folder(self, number: int, name: str) -> str:
        """Return the folder of a plan, relative to the repository's root."""
        return f"{self.parent}/{number:03d}{'-' if name else ''}{name}"

    def number_in(self, folder: str) -> int | None:
        """Return the number in a folder name such as `003-fix-the-typo`, or None."""
        match = _IN_FOLDER.match(folder)
        return int(match[1]) if match else None

    def phase_of(self, path: str) -> str | None:
        """Return the phase of the plan at a path; None for other files."""
        if not path.startswith(f"{self.parent}/"):
            return None
        number = self.number_in(path.removeprefix(f"{self.parent}/").partition("/")[0])
        return None if number is None else self.phase(number)

    def next_number(self, phases: Iterable[str]) -> int:
        """Return the number after the highest one of these phases, of which others have no number."""
        return max((number for phase in phases if (number := self.number_of(phase)) is not None), default=0) + 1


QUICK = NumberedPhases("Q", ".planning/quick", "quick plan")
WORKFLOW_RUNS = NumberedPhases("W", ".planning/workflows", "workflow run")
ALL = (QUICK, WORKFLOW_RUNS)


def is_numbered(phase: str) -> bool:
    return any(kind.number_of(phase) is not None for kind in ALL)
