"""OpenAI Responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from idumb.domain import model_script as script
from idumb.fake_model import conversation
from idumb.fake_model.conversation import Errors, Event, Reply

ERRORS: Errors = {
    script.RATE_LIMITED: (429, "rate_limit_exceeded", "Rate limit reached. Please try again in 1s."),
    script.OVERLOADED: (503, "server_overloaded", "The engine is currently overloaded, please try again later."),
    script.SERVER_ERROR: (500, "server_error", "The server had an error while processing your request."),
    script.UNAUTHORIZED: (401, "invalid_api_key", "Incorrect API key provided."),
    script.UNKNOWN_MODEL: (404, "model_not_found", "The model `m` does not exist or you do not have access to it."),
    script.CONTEXT: (400, "context_length_exceeded", "This model's maximum context length is 128000 tokens."),
}
read, error = conversation.read, conversation.error


def whole(reply: Reply) -> dict[str, Any]:
    part = {"type": "output_text", "text": reply.text, "annotations": []}
    said = {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    calls = [{"id": f"item_{call.id}", "type": "function_call", "call_id": call.id, "name": call.name,
              "arguments": call.arguments, "status": "completed"} for call in reply.calls]  # fmt: skip
    return {
        "id": f"resp_{reply.id}", "object": "response", "created_at": 0, "model": reply.model, "error": None,
        "status": "incomplete" if reply.refused else "completed",
        "incomplete_details": {"reason": "content_filter"} if reply.refused else None,
        "output": [said, *calls] if reply.text else calls,
        "usage": {"input_tokens": reply.tokens_in, "input_tokens_details": {"cached_tokens": 0},
                  "output_tokens": reply.tokens_out, "output_tokens_details": {"reasoning_tokens": 0},
                  "total_tokens": reply.tokens_in + reply.tokens_out},
    }  # fmt: skip


def events(reply: Reply) -> Iterator[Event]:
    """Return the same message as (name, data) of each event of a stream."""
    for number, (name, data) in enumerate(_events(reply)):
        yield f"response.{name}", {"sequence_number": number, **data}


def _events(reply: Reply) -> Iterator[tuple[str, dict[str, Any]]]:
    response = whole(reply)
    yield "created", {"response": {**response, "status": "in_progress", "output": [], "usage": None}}
    for index, item in enumerate(response["output"]):
        begun = {**item, "status": "in_progress"}
        about = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            [part] = item["content"]
            about["content_index"] = 0
            yield "output_item.added", {"output_index": index, "item": {**begun, "content": []}}
            yield "content_part.added", {**about, "part": {**part, "text": ""}}
            yield "output_text.delta", {**about, "delta": reply.text}
            yield "output_text.done", {**about, "text": reply.text}
            yield "content_part.done", {**about, "part": part}
        else:
            yield "output_item.added", {"output_index": index, "item": {**begun, "arguments": ""}}
            yield "function_call_arguments.delta", {**about, "delta": item["arguments"]}
            yield "function_call_arguments.done", {**about, "arguments": item["arguments"]}
        yield "output_item.done", {"output_index": index, "item": item}
    yield response["status"], {"response": response}
