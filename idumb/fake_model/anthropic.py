"""Anthropic Messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain import model_script as script
from idumb.fake_model import conversation
from idumb.fake_model.conversation import Conversation, Errors, Event, Reply, Tool, joined, mapping, objects

ERRORS: Errors = {
    script.RATE_LIMITED: (429, "rate_limit_error", "This request would exceed the rate limit of your account."),
    script.OVERLOADED: (529, "overloaded_error", "Overloaded"),
    script.SERVER_ERROR: (500, "api_error", "Internal server error"),
    script.UNAUTHORIZED: (401, "authentication_error", "invalid x-api-key"),
    script.UNKNOWN_MODEL: (404, "not_found_error", "model: that-one"),
    script.CONTEXT: (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
}


def read(body: Mapping[str, Any], _: str = "") -> Conversation:
    turns: list[str | None] = []
    for message in objects(body.get("messages")):
        content = message.get("content")
        if message.get("role") == "assistant":
            turns.append(None)
        elif not any(part.get("type") == "tool_result" for part in objects(content)):
            turns.append(joined(content))
    return conversation.of_turns(
        body.get("model", ""),
        turns,
        [joined(body.get("system"))],
        (Tool(str(t["name"]), mapping(t.get("input_schema"))) for t in objects(body.get("tools")) if "name" in t),
        mapping(body.get("tool_choice")).get("name"),
    )


def whole(reply: Reply) -> dict[str, Any]:
    return {**_head(reply), "content": _content(reply), "stop_reason": _stop(reply), "usage": _usage(reply)}


def events(reply: Reply) -> Iterator[Event]:
    """Return the same message as (name, data) of each event of a stream."""
    start = {**_head(reply), "content": [], "stop_reason": None, "usage": {**_usage(reply), "output_tokens": 1}}
    yield _event("message_start", message=start)
    for index, block in enumerate(_content(reply)):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            text = next(call.text for call in reply.calls if call.id == block["id"])
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": text}
        yield _event("content_block_start", index=index, content_block=empty)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stopped = {"stop_reason": _stop(reply), "stop_sequence": None}
    yield _event("message_delta", delta=stopped, usage=_usage(reply))
    yield _event("message_stop")


def error(fault: str) -> tuple[int, dict[str, Any]]:
    """Return status and body for a fault, in the provider's own words."""
    status, kind, message = ERRORS[fault]
    return status, {"type": "error", "error": {"type": kind, "message": message}}


def _event(name: str, **data: Any) -> Event:
    return name, {"type": name, **data}


def _head(reply: Reply) -> dict[str, Any]:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model,
            "stop_sequence": None}  # fmt: skip


def _content(reply: Reply) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": reply.text}] if reply.text else []
    return [*text, *({"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in reply.calls)]


def _stop(reply: Reply) -> str:
    return "refusal" if reply.refused else "tool_use" if reply.calls else "end_turn"


def _usage(reply: Reply) -> dict[str, int]:
    return {
        "input_tokens": reply.tokens_in,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": reply.tokens_out,
    }
