"""Gemini generateContent, for the rehearsal of Gemini CLI: the scripted model itself speaks two other protocols."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain import model_script as script
from idumb.fake_model import conversation
from idumb.fake_model.conversation import Conversation, Event, Reply, Tool, joined, mapping, objects

_ERRORS: Mapping[str, tuple[int, str, str]] = {
    script.RATE_LIMITED: (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    script.OVERLOADED: (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    script.SERVER_ERROR: (500, "INTERNAL", "An internal error has occurred."),
    script.UNAUTHORIZED: (401, "UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    script.UNKNOWN_MODEL: (
        404,
        "NOT_FOUND",
        "models/that-one is not found for API version v1beta, or is not supported for generateContent.",
    ),
    script.CONTEXT: (
        400,
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
}


def read(body: Mapping[str, Any], path: str = "") -> Conversation:
    turns: list[str | None] = []
    for content in objects(body.get("contents")):
        parts = objects(content.get("parts"))
        if content.get("role") == "model":
            turns.append(None)
        elif not any("functionResponse" in part for part in parts):
            turns.append(joined(parts))
    declared = [d for entry in objects(body.get("tools")) for d in objects(entry.get("functionDeclarations"))]
    return conversation.of_turns(
        path.rpartition("/")[2].partition(":")[0],
        turns,
        [joined(mapping(body.get("systemInstruction")).get("parts"))],
        (Tool(str(d.get("name", "")), _schema(d)) for d in declared),
        None,
    )


def _schema(declared: Mapping[str, Any]) -> dict[str, Any]:
    parameters = mapping(declared.get("parametersJsonSchema")) or mapping(declared.get("parameters"))
    own = mapping(parameters.get("properties"))
    return {**parameters, "properties": {name: _lowered(mapping(schema)) for name, schema in own.items()}}


def _lowered(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    return {**schema, "type": kind.lower()} if isinstance(kind, str) else schema


def whole(reply: Reply) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}} for call in reply.calls]
    stop = "SAFETY" if reply.refused else "STOP"
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": stop, "index": 0}
    total = reply.tokens_in + reply.tokens_out
    usage = {"promptTokenCount": reply.tokens_in, "candidatesTokenCount": reply.tokens_out, "totalTokenCount": total}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": reply.model, "responseId": reply.id}


def events(reply: Reply) -> Iterator[Event]:
    """Return the same message as (name, data) of each event of a stream."""
    yield None, whole(reply)


def error(fault: str) -> tuple[int, dict[str, Any]]:
    """Return status and body for a fault, in the provider's own words."""
    status, kind, message = _ERRORS[fault]
    return status, {"error": {"code": status, "message": message, "status": kind}}


_SELF = sys.modules[__name__]
FORMATS: Mapping[str, Any] = {":generateContent": _SELF, ":streamGenerateContent": _SELF}
"""What `serving` takes as `more`."""
