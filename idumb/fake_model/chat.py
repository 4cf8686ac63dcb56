"""OpenAI Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain import model_script as script
from idumb.fake_model.conversation import (
    FREEFORM,
    FUNCTION,
    MODEL,
    PROMPT,
    RESULT,
    Conversation,
    Reply,
    Tool,
    ToolCall,
    Turn,
    joined,
    latest,
    mapping,
    objects,
    spoken,
)

ERRORS: Mapping[str, tuple[int, str, str | None, str]] = {
    script.RATE_LIMITED: (429, "requests", "rate_limit_exceeded", "Rate limit reached. Please try again in 1s."),
    script.OVERLOADED: (503, "server_error", None, "The engine is currently overloaded, please try again later."),
    script.SERVER_ERROR: (500, "server_error", None, "The server had an error while processing your request."),
    script.UNAUTHORIZED: (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    script.UNKNOWN_MODEL: (
        404,
        "invalid_request_error",
        "model_not_found",
        "The model `that-one` does not exist or you do not have access to it.",
    ),
    script.CONTEXT: (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    ),
}
"""Status, type, code and message of each fault, shared with the Responses protocol."""

_ROLES = {"assistant": MODEL, "user": PROMPT, "tool": RESULT, "function": RESULT}


def conversation(body: Mapping[str, Any]) -> Conversation:
    messages = objects(body.get("messages"))
    turns: list[Turn] = [
        (_ROLES[message["role"]], joined(message.get("content")))
        for message in messages
        if message.get("role") in _ROLES
    ]
    prompt, answered = latest(turns)
    system = [joined(m.get("content")) for m in messages if m.get("role") in {"system", "developer"}]
    schema = mapping(mapping(body.get("response_format")).get("json_schema")).get("schema")
    forced = mapping(mapping(body.get("tool_choice")).get("function")).get("name")
    return Conversation(
        str(body.get("model", "")),
        prompt,
        answered,
        tuple(tool for entry in objects(body.get("tools")) if (tool := tool_of(entry)) is not None),
        body.get("stream") is True,
        spoken(turns, *system),
        schema if isinstance(schema, dict) else None,
        forced if isinstance(forced, str) else None,
    )


def tool_of(entry: Mapping[str, Any]) -> Tool | None:
    """Return a tool description in one of OpenAI's two protocols."""
    kind = FREEFORM if entry.get("type") == "custom" else FUNCTION
    described = mapping(entry.get(str(entry.get("type")))) or entry
    name = described.get("name")
    return Tool(name, mapping(described.get("parameters")), kind) if isinstance(name, str) else None


def whole(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        message["tool_calls"] = [_call(call) for call in reply.calls]
    choice = {"index": 0, "message": message, "finish_reason": _stop(reply), "logprobs": None}
    return {**_head(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def events(reply: Reply) -> Iterator[tuple[str | None, Any]]:
    """Return the same message as (name, data) of each event of a stream."""
    yield _chunk(reply, {"role": "assistant", "content": ""})
    if reply.text:
        yield _chunk(reply, {"content": reply.text})
    for index, call in enumerate(reply.calls):
        yield _chunk(reply, {"tool_calls": [{"index": index, **_call(call)}]})
    yield _chunk(reply, {}, _stop(reply))
    yield None, {**_head(reply, "chat.completion.chunk"), "choices": [], "usage": _usage(reply)}
    yield None, "[DONE]"


def error(fault: str) -> tuple[int, dict[str, Any]]:
    """Return status and body for a fault, in the provider's own words."""
    status, kind, code, message = ERRORS[fault]
    return status, {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": 0, "model": reply.model}


def _chunk(reply: Reply, delta: Mapping[str, Any], stop: str | None = None) -> tuple[None, dict[str, Any]]:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return None, {**_head(reply, "chat.completion.chunk"), "choices": [choice]}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}


def _stop(reply: Reply) -> str:
    return "content_filter" if reply.refused else "tool_calls" if reply.calls else "stop"


def _usage(reply: Reply) -> dict[str, int]:
    total = reply.tokens_in + reply.tokens_out
    return {"prompt_tokens": reply.tokens_in, "completion_tokens": reply.tokens_out, "total_tokens": total}
