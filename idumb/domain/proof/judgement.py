"""What agents say of the work, read from their replies: opinions about a phase, and the evidence of a validator.

Verifier and skeptic give an opinion of each criterion, with places in files. A validator shows why a task passes, by
places in files, or by commands with their output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from idumb.domain import outcome, replies
from idumb.domain.plans.plan import Task
from idumb.domain.wording import folded

_MOST = 200
_MOST_CITATIONS = 20
_WORDS = 2000

_CITATION = replies.object_of(file=replies.TEXT, line=replies.INTEGER)
_JUDGEMENT = replies.object_of(
    criterion=replies.TEXT, holds={"type": "boolean"}, why=replies.TEXT, citations=replies.list_of(_CITATION)
)
SCHEMA = replies.object_of(verdict=replies.VERDICT, judgements=replies.list_of(_JUDGEMENT))
"""The JSON Schema of the reply."""


class Citation(Struct, frozen=True):
    """`line` counts from 1. `resolves`: the judged tree has that file, with at least that many lines."""

    file: str
    line: int
    resolves: bool = False


class Judgement(Struct, frozen=True):
    """`criterion` names the subject; `holds` is the role's opinion about it."""

    criterion: str
    holds: bool
    why: str
    citations: tuple[Citation, ...] = ()

    @property
    def refutes(self) -> bool:
        """Whether it is negative and names an existing place."""
        return not self.holds and any(c.resolves for c in self.citations)


class Opinion(Struct, frozen=True):
    """The opinion of one role. `verdict` is PASS, PARTIAL, FAIL or None; `failure` says why there is none."""

    role: str
    binding: str
    verdict: str | None = None
    judgements: tuple[Judgement, ...] = ()
    failure: str = ""


def read_opinion(answer: Mapping[str, Any] | None) -> tuple[str, tuple[Judgement, ...]] | None:
    """Return (verdict, judgements) of a reply, or None if it is malformed. Excess judgements are dropped."""
    if answer is None or answer.get("verdict") not in (outcome.PASS, outcome.PARTIAL, outcome.FAIL):
        return None
    rows = answer.get("judgements")
    if not isinstance(rows, list):
        return None
    parsed = [_judgement(row) for row in rows[:_MOST]]
    judgements = tuple(judgement for judgement in parsed if judgement is not None)
    return None if len(judgements) != len(parsed) else (str(answer["verdict"]), judgements)


def _judgement(row: object) -> Judgement | None:
    if not isinstance(row, dict) or not isinstance(row.get("holds"), bool) or not isinstance(row.get("criterion"), str):
        return None
    why = row.get("why")
    cited = row.get("citations")
    places = [_citation(citation) for citation in cited[:_MOST_CITATIONS]] if isinstance(cited, list) else []
    return Judgement(
        row["criterion"][:_WORDS],
        row["holds"],
        why[:_WORDS] if isinstance(why, str) else "",
        tuple(citation for citation in places if citation is not None),
    )


def _citation(value: object) -> Citation | None:
    """Return a place; a line that is not a number becomes line 0, which no file has."""
    if not isinstance(value, dict) or not isinstance(value.get("file"), str):
        return None
    line = value.get("line")
    return Citation(value["file"][:_WORDS], line if isinstance(line, int) and not isinstance(line, bool) else 0)


def refutations(opinions: Sequence[Opinion]) -> tuple[Judgement, ...]:
    return tuple(judgement for opinion in opinions for judgement in opinion.judgements if judgement.refutes)


class ValidatorEvidence(Struct, frozen=True):
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


def read_evidence(answer: Mapping[str, Any]) -> tuple[ValidatorEvidence, ...] | str:
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
    cited_criteria = [*map(folded, cited)]
    return frozenset(
        c.id
        for c in task.acceptance
        for words in cited_criteria
        if words == folded(c.text) or (words.startswith(c.id.casefold()) and not words[len(c.id) :][:1].isalnum())
    )
