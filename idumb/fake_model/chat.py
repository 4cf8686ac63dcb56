"""OpenAI Chat Completions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from idumb.domain import model_script as script
from idumb.fake_model.conversation import (
    FREEFORM,
    FUNCTION,
    MODEL,
    PROMPT,
    RESULT,
    Conversation,
    Event,
    Reply,
    Tool,
    ToolCall,
    conversation,
    joined,
    mapping,
    objects,
)

_ERRORS: Mapping[str, tuple[int, str, str | None, str]] = {
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
"""Status, type, code and message of each fault."""

_ROLES = {"assistant": MODEL, "user": PROMPT, "tool": RESULT, "function": RESULT}


def read(body: Mapping[str, Any], _: str) -> Conversation:
    messages = objects(body.get("messages"))
    return conversation(
        body.get("model", ""),
        [(_ROLES[m["role"]], joined(m.get("content"))) for m in messages if m.get("role") in _ROLES],
        system_texts(messages),
        offered_tools(body),
        mapping(mapping(body.get("response_format")).get("json_schema")).get("schema"),
        mapping(mapping(body.get("tool_choice")).get("function")).get("name"),
    )


def system_texts(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    return [joined(m.get("content")) for m in messages if m.get("role") in {"system", "developer"}]


def offered_tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    """Return the tools of a request in one of OpenAI's two protocols."""
    for entry in objects(body.get("tools")):
        kind = FREEFORM if entry.get("type") == "custom" else FUNCTION
        described = mapping(entry.get(str(entry.get("type")))) or entry
        if isinstance(name := described.get("name"), str):
            yield Tool(name, mapping(described.get("parameters")), kind)


def whole(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        message["tool_calls"] = [_call(call) for call in reply.calls]
    choice = {"index": 0, "message": message, "finish_reason": _stop(reply), "logprobs": None}
    return {**_head(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def events(reply: Reply) -> Iterator[Event]:
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
    status, kind, code, message = _ERRORS[fault]
    return status, {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": 0, "model": reply.model}


def _chunk(reply: Reply, delta: Mapping[str, Any], stop: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return None, {**_head(reply, "chat.completion.chunk"), "choices": [choice]}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}


def _stop(reply: Reply) -> str:
    return "content_filter" if reply.refused else "tool_calls" if reply.calls else "stop"


def _usage(reply: Reply) -> dict[str, int]:
    total = reply.tokens_in + reply.tokens_out
    return {"prompt_tokens": reply.tokens_in, "completion_tokens": reply.tokens_out, "total_tokens": total}
