"""Requests and responses in one form for both protocols."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from idumb.lazy_dataclass import dataclass

_FOLDER = re.compile(
    r"(?:working (?:in the )?director(?:y|ies)|workspace (?:folder|directory|root)s?|current directory|cwd)"
    r"[^\n/]{0,60}?[:>=\s][`'\"\s\-]*(/[^\s`'\"<>,;]*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the client offers. `schema` is the JSON Schema of its arguments."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)

    @property
    def properties(self) -> Mapping[str, Any]:
        return mapping(self.schema.get("properties"))


@dataclass(frozen=True, slots=True)
class Conversation:
    """`prompt` is the user's newest text, `answered` the number of model messages after it.

    `text` is everything that people and the client wrote to the model, `forced` the tool that the model must call.
    """

    model: str
    prompt: str
    answered: int
    tools: tuple[Tool, ...] = ()
    text: str = ""
    forced: str | None = None

    @property
    def folder(self) -> str:
        """Return the working folder that the client names, or ""."""
        match = _FOLDER.search(self.text)
        return match[1].rstrip("./") or "/" if match else ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: Mapping[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Reply:
    """One message of the model, in terms of the client's tools."""

    id: str
    model: str
    text: str
    calls: tuple[ToolCall, ...]
    tokens_in: int
    tokens_out: int
    refused: bool = False


Event = tuple[str | None, Any]  # name and data
Errors = Mapping[str, tuple[int, str, str]]
"""For each fault, the status, the code and the words of a provider."""


def of_turns(
    model: Any, turns: Sequence[str | None], system: Iterable[str], tools: Iterable[Tool], forced: Any
) -> Conversation:
    """Return a request in the common form. A turn is the text of a prompt, or None for a message of the model.

    `system` are the texts that precede the conversation. The newest prompt is that of one or more messages in a row.
    """
    prompt: list[str] = []
    answered = 0
    for text in turns:
        if text is None:
            answered += 1
            continue
        if answered:
            prompt, answered = [], 0
        prompt.append(text)
    said = "\n".join((*system, *filter(None, turns)))
    chosen = forced if isinstance(forced, str) else None
    return Conversation(str(model), "\n".join(prompt), answered, tuple(tools), said, chosen)


def joined(parts: Any) -> str:
    """Return the text of a message or of its parts."""
    texts = [parts] if isinstance(parts, str) else [part.get("text") for part in objects(parts)]
    return "\n".join(text for text in texts if isinstance(text, str))


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the entries of a list that are objects."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
