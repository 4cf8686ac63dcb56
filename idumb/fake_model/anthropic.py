"""Anthropic Messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from idumb.domain import model_script as script
from idumb.fake_model import conversation
from idumb.fake_model.conversation import Errors, Event, Reply

ERRORS: Errors = {
    script.RATE_LIMITED: (429, "rate_limit_error", "This request would exceed the rate limit of your account."),
    script.OVERLOADED: (529, "overloaded_error", "Overloaded"),
    script.SERVER_ERROR: (500, "api_error", "Internal server error"),
    script.UNAUTHORIZED: (401, "authentication_error", "invalid x-api-key"),
    script.UNKNOWN_MODEL: (404, "not_found_error", "model: that-one"),
    script.CONTEXT: (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
}
read, error = conversation.read, conversation.error


def whole(reply: Reply) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [{"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)} for c in reply.calls]
    return {
        "id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model, "content": content,
        "stop_reason": "refusal" if reply.refused else "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": reply.tokens_in, "output_tokens": reply.tokens_out,
                  "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
    }  # fmt: skip


def events(reply: Reply) -> Iterator[Event]:
    """Return the same message as (name, data) of each event of a stream."""
    message = whole(reply)
    content, usage = message["content"], message["usage"]
    started = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield "message_start", {"message": started}
    deltas = [{"type": "text_delta", "text": reply.text}] if reply.text else []
    deltas += [{"type": "input_json_delta", "partial_json": call.arguments} for call in reply.calls]
    for index, (block, delta) in enumerate(zip(content, deltas, strict=True)):
        empty: dict[str, Any] = {"text": ""} if block["type"] == "text" else {"input": {}}
        yield "content_block_start", {"index": index, "content_block": {**block, **empty}}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    yield "message_delta", {"delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}, "usage": usage}
    yield "message_stop", {}
