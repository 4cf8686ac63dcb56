"""Parses a model's last message: a validator's verdict, fenced blocks, and findings."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain import agent, outcome, reply
from idumb.domain.agent import VALIDATOR, AgentRequest

VERDICTS = (outcome.PASS, outcome.PARTIAL, outcome.FAIL)
VERDICT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": list(VERDICTS)},
        "evidence": {
            "type": "array",
            "items": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {
                            "criterion": {"type": "string"},
                            "file": {"type": "string"},
                            "line": {"type": "integer"},
                        },
                        "required": ["criterion", "file", "line"],
                        "additionalProperties": False,
                    },
                    {
                        "type": "object",
                        "properties": {
                            "criterion": {"type": "string"},
                            "command": {"type": "string"},
                            "output": {"type": "string"},
                        },
                        "required": ["criterion", "command", "output"],
                        "additionalProperties": False,
                    },
                ]
            },
        },
        "findings": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "file": {"type": "string"},
                    "line": {"type": "integer"},
                    "message": {"type": "string"},
                },
                "required": ["file", "line", "message"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["verdict", "evidence", "findings"],
    "additionalProperties": False,
}
"""Return the JSON Schema of a verdict. An answer without `evidence` is valid but proves nothing."""

_MARKS = ("```", "~~~")
_LONGEST = 64 * 1024


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


def missing(found: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the required keys of a schema that an object lacks; callers check the values."""
    return tuple(key for key in schema.get("required", ()) if key not in found)


def judged(text: str) -> tuple[str, str, str | None]:
    """Return (outcome, message, failure) of a validator that only answers in text. An unclear verdict is none."""
    said = reply.answer(text, "verdict")
    if isinstance(said, str):
        return outcome.ERRORED, said, agent.MALFORMED
    verdict = said["verdict"]
    if not isinstance(verdict, str) or verdict not in VERDICTS:
        return outcome.ERRORED, f"its verdict is not one of {', '.join(VERDICTS)}", agent.MALFORMED
    found = said.get("findings") or []
    reasons = "; ".join(finding(f) for f in (found if isinstance(found, list) else [found]))
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


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return the head and tail of a long text."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
