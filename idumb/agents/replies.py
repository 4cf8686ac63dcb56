"""What a model's last message means: the JSON in it, and a validator's verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain import agent, outcome

VERDICT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": [outcome.PASS, outcome.PARTIAL, outcome.FAIL]},
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
    "required": ["verdict", "findings"],
    "additionalProperties": False,
}
"""The JSON Schema of a verdict."""

_FENCE = re.compile(r"^(`{3,}|~{3,})([^\n]*)\n(.*?)^\1", re.MULTILINE | re.DOTALL)
_LONGEST = 64 * 1024


def object_in(text: str) -> dict[str, Any] | None:
    """The one JSON object of a reply: the whole of it, in a fence, or on its last line; None where there is none."""
    lines = text.rstrip().splitlines()
    tried = [text, *(body for _, body in fences(text)), *lines[-1:]]
    for part in tried:
        found = _loaded(part)
        if found is not None:
            return found
    return None


def fences(text: str) -> Iterator[tuple[str, str]]:
    """(word behind the fence, body) of every fenced block, in order."""
    for match in _FENCE.finditer(text):
        yield match[2].strip().lower(), match[3]


def _loaded(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def missing(found: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys that a schema demands of an object and that are not there; whoever uses the values checks the rest."""
    return tuple(key for key in schema.get("required", ()) if key not in found)


def judged(text: str) -> tuple[str, str, str | None]:
    """(outcome, message, failure) of a validator that can only speak. No clear verdict is none."""
    said = object_in(text)
    verdict = said.get("verdict") if said else None
    if said is None or verdict not in {outcome.PASS, outcome.PARTIAL, outcome.FAIL}:
        return outcome.ERRORED, "the answer holds no verdict", agent.MALFORMED
    found = said.get("findings") or []
    reasons = "; ".join(finding(f) for f in (found if isinstance(found, list) else [found]))
    if verdict == outcome.PASS:
        return outcome.COMPLETED, reasons, None
    return outcome.FAILED, f"{verdict}: {reasons}" if reasons else str(verdict), None


def finding(value: Any) -> str:
    """One finding as text: itself, or the place and message of an object."""
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else json.dumps(value)
    place = ":".join(str(value[k]) for k in ("file", "line") if value.get(k))
    words = str(value.get("message") or value.get("text") or json.dumps(value, sort_keys=True))
    return f"{place}: {words}" if place else words


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Head and tail of a long text."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
