"""The opinions of a verifier or skeptic about a phase, each with places in files as evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idumb.domain import outcome
from idumb.lazy_dataclass import dataclass

_MOST = 200
_MOST_CITATIONS = 20
_WORDS = 2000

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["verdict", "judgements"],
    "properties": {
        "verdict": {"enum": [outcome.PASS, outcome.PARTIAL, outcome.FAIL]},
        "judgements": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["criterion", "holds", "why", "citations"],
                "properties": {
                    "criterion": {"type": "string"},
                    "holds": {"type": "boolean"},
                    "why": {"type": "string"},
                    "citations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["file", "line"],
                            "properties": {"file": {"type": "string"}, "line": {"type": "integer"}},
                        },
                    },
                },
            },
        },
    },
}
"""The JSON Schema of the reply."""


@dataclass(frozen=True, slots=True)
class Citation:
    """`line` counts from 1. `resolves`: the judged tree has that file, with at least that many lines."""

    file: str
    line: int
    resolves: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """`criterion` names the subject; `holds` is the role's opinion about it."""

    criterion: str
    holds: bool
    why: str
    citations: tuple[Citation, ...] = ()

    @property
    def refutes(self) -> bool:
        """Whether it is negative and names an existing place."""
        return not self.holds and any(c.resolves for c in self.citations)


@dataclass(frozen=True, slots=True)
class Opinion:
    """The opinion of one role. `verdict` is PASS, PARTIAL, FAIL or None; `failure` says why there is none."""

    role: str
    binding: str
    verdict: str | None = None
    judgements: tuple[Judgement, ...] = ()
    failure: str = ""


def read(answer: Mapping[str, Any] | None) -> tuple[str, tuple[Judgement, ...]] | None:
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
