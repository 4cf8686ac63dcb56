"""Parses what agents answer: reports in JSON lines, verdicts, findings and amounts."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain import agent, canonical_json, outcome, replies, wording
from idumb.domain.agent import VALIDATOR, AgentRequest, Usage
from idumb.domain.runs import spending
from idumb.lazy_dataclass import dataclass

VERDICTS = (outcome.PASS, outcome.PARTIAL, outcome.FAIL)
_STRING, _INTEGER = {"type": "string"}, {"type": "integer"}


def object_of(*optional: str, **properties: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties and no others; all but the `optional` are required."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_PLACE = object_of(criterion=_STRING, file=_STRING, line=_INTEGER)
_OUTPUT = object_of(criterion=_STRING, command=_STRING, output=_STRING)
_FINDING = object_of(file=_STRING, line=_INTEGER, message=_STRING)
VERDICT: Mapping[str, Any] = object_of(
    verdict={**_STRING, "enum": list(VERDICTS)},
    evidence={"type": "array", "items": {"anyOf": [_PLACE, _OUTPUT]}},
    findings={"type": "array", "items": _FINDING},
)
"""The JSON Schema of a verdict. An answer without `evidence` is valid but proves nothing."""

_MARKS = ("```", "~~~")
_LONGEST_LINE = 500


def fences(text: str) -> Iterator[tuple[str, str]]:
    """Return (word after the fence, body) of every closed fenced block, in order and in linear time.

    Fences start in the first column: an indented fence may be a line of a patch.
    """
    mark, word, body = "", "", io.StringIO()
    for line in io.StringIO(text):
        if not mark:
            mark, word = _opened(line)
            body = io.StringIO()
        elif line.startswith(mark) and not line.rstrip().strip(mark[0]):
            yield word, body.getvalue()
            mark = ""
        else:
            body.write(line)


def _opened(line: str) -> tuple[str, str]:
    """Return (fence, word after it) of a line that opens a block; ("", "") otherwise."""
    if not line.startswith(_MARKS):
        return "", ""
    word = line.lstrip(line[0])
    if line[0] == "`" and "`" in word:  # inline code
        return "", ""
    return line[: len(line) - len(word)], word.strip().lower()


def schema_of(request: AgentRequest) -> Mapping[str, Any] | None:
    """Return the JSON Schema of a reply; None for plain text."""
    return VERDICT if request.schema is None and request.role == VALIDATOR else request.schema


def judged(text: str) -> tuple[str, str, str | None]:
    """Return (outcome, message, failure) of a validator that only answers in text. An unclear verdict is none."""
    answer = replies.answer(text, "verdict")
    if isinstance(answer, str):
        return outcome.ERRORED, answer, agent.MALFORMED
    verdict = answer["verdict"]
    if not isinstance(verdict, str) or verdict not in VERDICTS:
        return outcome.ERRORED, f"its verdict is not one of {', '.join(VERDICTS)}", agent.MALFORMED
    findings = answer.get("findings") or []
    reasons = "; ".join(finding(f) for f in (findings if isinstance(findings, list) else [findings]))
    if verdict == outcome.PASS:
        return outcome.COMPLETED, reasons, None
    return outcome.FAILED, f"{verdict}: {reasons}" if reasons else verdict, None


def finding(value: Any) -> str:
    """Return a finding as text: a string itself, or the place and message of an object."""
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else json.dumps(value)
    place = ":".join(str(value[k]) for k in ("file", "line") if value.get(k))
    words = str(value.get("message") or value.get("text") or json.dumps(value, sort_keys=True))
    return f"{place}: {words}" if place else words


def count(value: Any) -> int | None:
    """Return a whole number of tokens or the like, from 0 to 10**12."""
    return value if type(value) is int and spending.is_amount(value) else None


def amount(value: Any) -> float | None:
    """Return an amount of money or the like, from 0 to 10**12."""
    return float(value) if spending.is_amount(value) else None


def total(*values: int | None) -> int | None:
    """Return the sum of the known values; None if none is known."""
    amounts = [value for value in values if value is not None]
    return sum(amounts) if amounts else None


@dataclass(frozen=True, slots=True)
class Report:
    """An agent's report of its work. Nothing in it is proof.

    `ended` is true if the final report is present. `error` is the reported error, `failure` its kind
    (`idumb.domain.agent.FAILURES`). `denied` lists tool calls that the agent's own permissions denied.
    """

    reply: str = ""
    session: str | None = None
    usage: Usage = Usage()
    model: str | None = None
    ended: bool = False
    error: str = ""
    failure: str | None = None
    denied: tuple[str, ...] = ()


def objects(data: bytes) -> Iterator[dict[str, Any]]:
    """Return the JSON objects that fill a line of their own, in order; other output is skipped."""
    for line in data.splitlines():
        if line.lstrip().startswith(b"{"):
            try:
                value = canonical_json.decode(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def inside(value: Any, *keys: str) -> Any:
    """Return the value behind several keys, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def one_line(words: str, longest: int = _LONGEST_LINE) -> str:
    short = wording.one_line(words)
    return short if len(short) <= longest else short[: longest - 3] + "..."


def last_line(errors: bytes) -> str:
    """Return the last non-empty line of standard error."""
    lines = _COLOUR.sub("", errors.decode("utf-8", "replace")).splitlines()
    return next((one_line(line) for line in reversed(lines) if line.strip()), "")


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
