"""Gemini generateContent, for the rehearsal of Gemini CLI: the scripted model itself speaks two other protocols."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from msgspec.structs import replace

from idumb.domain import model_script as script
from idumb.fake_model import conversation
from idumb.fake_model.conversation import Conversation, Event, Reply

ERRORS: Mapping[str, tuple[int, str, str]] = {
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


def read(data: bytes, path: str) -> Conversation:
    """Read the request as the same one of another protocol."""
    body = json.loads(data)
    tools = [declared for entry in body.get("tools", ()) for declared in entry.get("functionDeclarations", ())]
    given = {
        "model": path.rpartition("/")[2].partition(":")[0],
        "system": body.get("systemInstruction", {}).get("parts"),
        "messages": [_message(content) for content in body["contents"]],
        "tools": [{"name": tool["name"], "parameters": _schema(tool)} for tool in tools],
    }
    return replace(conversation.read(json.dumps(given).encode()), stream=":stream" in path)


def _message(content: Mapping[str, Any]) -> dict[str, Any]:
    parts = [{"type": "tool_result"} if "functionResponse" in part else part for part in content["parts"]]
    return {"role": "assistant" if content.get("role") == "model" else "user", "content": parts}


def _schema(declared: Mapping[str, Any]) -> dict[str, Any]:
    parameters = declared.get("parametersJsonSchema") or declared.get("parameters") or {}
    own = parameters.get("properties", {})
    return {**parameters, "properties": {name: _lowered(schema) for name, schema in own.items()}}


def _lowered(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    return {**schema, "type": kind.lower()} if isinstance(kind, str) else schema


def whole(reply: Reply) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"id": c.id, "name": c.name, "args": json.loads(c.arguments)}} for c in reply.calls]
    stop = "SAFETY" if reply.refused else "STOP"
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": stop, "index": 0}
    total = reply.tokens_in + reply.tokens_out
    usage = {"promptTokenCount": reply.tokens_in, "candidatesTokenCount": reply.tokens_out, "totalTokenCount": total}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": reply.model, "responseId": str(reply.id)}


def events(reply: Reply) -> Iterator[Event]:
    """Return the same message as (name, data) of each event of a stream."""
    yield None, whole(reply)


def error(status: int, kind: str, message: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"code": status, "message": message, "status": kind}}


_SELF = sys.modules[__name__]
FORMATS: Mapping[str, ModuleType] = {":generateContent": _SELF, ":streamGenerateContent": _SELF}
"""What `serving` takes as `more`."""
