"""The evidence of a validator for its PASS: places in files, or commands with their output, for each criterion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from idumb.domain.plans.plan import Task
from idumb.domain.proof.judgement import Citation
from idumb.lazy_dataclass import dataclass

_MOST = 200
_WORDS = 2000


@dataclass(frozen=True, slots=True)
class ValidatorEvidence:
    """Evidence for one criterion: `place` or, if it is None, a `command` with its `output`; idumb does not run it."""

    criterion: str
    place: Citation | None = None
    command: str = ""
    output: str = ""

    @property
    def words(self) -> str:
        where = f"{self.place.file}:{self.place.line}" if self.place is not None else f"`{self.command}`"
        return f"{self.criterion} by {where}"

    def as_dict(self) -> dict[str, Any]:
        """Return the form that a validator writes and the log stores."""
        if self.place is not None:
            return {"criterion": self.criterion, "file": self.place.file, "line": self.place.line}
        return {"criterion": self.criterion, "command": self.command, "output": self.output}


def read(answer: Mapping[str, Any]) -> tuple[ValidatorEvidence, ...] | str:
    """Return the evidence of an answer, empty if there is none; or, as words, why it is malformed.

    A command without output shows nothing, so it is no evidence.
    """
    rows = answer.get("evidence") or []
    if not isinstance(rows, list):
        return "its evidence is no list"
    if len(rows) > _MOST:
        return f"it gives {len(rows)} pieces of evidence; the limit is {_MOST}"
    shown = [*map(_shown, rows)]
    if None in shown:
        number = shown.index(None) + 1
        return f"its evidence {number} is neither criterion, file and line nor criterion, command and output"
    return tuple(each for each in shown if each is not None and (each.place is not None or each.output.strip()))


def _shown(row: object) -> ValidatorEvidence | None:
    if not isinstance(row, Mapping):
        return None
    criterion, file, line = row.get("criterion"), row.get("file"), row.get("line")
    command, output = row.get("command"), row.get("output")
    if not isinstance(criterion, str) or not criterion.strip():
        return None
    if isinstance(file, str) and file and isinstance(line, int) and not isinstance(line, bool):
        return ValidatorEvidence(criterion[:_WORDS], Citation(file[:_WORDS], line))
    if file is None and isinstance(command, str) and command.strip() and isinstance(output, str):
        return ValidatorEvidence(criterion[:_WORDS], command=command[:_WORDS], output=output[:_WORDS])
    return None


def proven_criteria(task: Task, cited: Iterable[str]) -> frozenset[str]:
    """Return the criteria of a task that evidence cites by id (also followed by words) or by text."""
    cited_criteria = [*map(_folded, cited)]
    return frozenset(
        c.id
        for c in task.acceptance
        for words in cited_criteria
        if words == _folded(c.text) or (words.startswith(c.id.casefold()) and not words[len(c.id) :][:1].isalnum())
    )


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
