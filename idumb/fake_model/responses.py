"""OpenAI Responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain import model_script as script
from idumb.fake_model import conversation
from idumb.fake_model.conversation import Conversation, Errors, Event, Reply, Tool, ToolCall, joined, mapping, objects

_ERRORS: Errors = {
    script.RATE_LIMITED: (429, "rate_limit_exceeded", "Rate limit reached. Please try again in 1s."),
    script.OVERLOADED: (503, "server_overloaded", "The engine is currently overloaded, please try again later."),
    script.SERVER_ERROR: (500, "server_error", "The server had an error while processing your request."),
    script.UNAUTHORIZED: (401, "invalid_api_key", "Incorrect API key provided."),
    script.UNKNOWN_MODEL: (
        404,
        "model_not_found",
        "The model `that-one` does not exist or you do not have access to it.",
    ),
    script.CONTEXT: (
        400,
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    ),
}


def read(body: Mapping[str, Any], _: str = "") -> Conversation:
    content = body.get("input")
    entries = [{"role": "user", "content": content}] if isinstance(content, str) else objects(content)
    system = (joined(e.get("content")) for e in entries if e.get("role") in {"system", "developer"})
    return conversation.of_turns(
        body.get("model", ""),
        _turns(entries),
        (str(body.get("instructions") or ""), *system),
        (Tool(str(t.get("name")), mapping(t.get("parameters"))) for t in objects(body.get("tools"))),
        mapping(body.get("tool_choice")).get("name"),
    )


def _turns(entries: list[dict[str, Any]]) -> list[str | None]:
    """Return one turn of the model as entries: a message, and calls."""
    turns: list[str | None] = []
    spoke = False
    for entry in entries:
        speaks = entry.get("role") == "assistant" or str(entry.get("type")).endswith("_call")
        if entry.get("role") == "user":
            turns.append(joined(entry.get("content")))
        elif speaks and not spoke:
            turns.append(None)
        spoke = speaks
    return turns


def error(fault: str) -> tuple[int, dict[str, Any]]:
    """Return status and body for a fault, in the provider's own words."""
    status, code, message = _ERRORS[fault]
    return status, {"error": {"message": message, "type": code, "param": None, "code": code}}


def whole(reply: Reply) -> dict[str, Any]:
    done = "incomplete" if reply.refused else "completed"
    reason = {"incomplete_details": {"reason": "content_filter"}} if reply.refused else {}
    return {**_head(reply, done), **reason, "output": _output(reply), "usage": _usage(reply)}


def events(reply: Reply) -> Iterator[Event]:
    """Return the same message as (name, data) of each event of a stream."""
    for number, (name, data) in enumerate(_events(reply)):
        yield name, {"type": name, "sequence_number": number, **data}


def _events(reply: Reply) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "response.created", {"response": {**_head(reply, "in_progress"), "output": []}}
    for index, item in enumerate(_output(reply)):
        place = {"output_index": index}
        about = {**place, "item_id": item["id"]}
        if item["type"] == "message":
            part = {**about, "content_index": 0}
            yield "response.output_item.added", {**place, "item": {**item, "content": [], "status": "in_progress"}}
            yield "response.content_part.added", {**part, "part": {**item["content"][0], "text": ""}}
            yield "response.output_text.delta", {**part, "delta": reply.text}
            yield "response.output_text.done", {**part, "text": reply.text}
            yield "response.content_part.done", {**part, "part": item["content"][0]}
        else:
            yield "response.output_item.added", {**place, "item": {**item, "arguments": "", "status": "in_progress"}}
            yield "response.function_call_arguments.delta", {**about, "delta": item["arguments"]}
            yield "response.function_call_arguments.done", {**about, "arguments": item["arguments"]}
        yield "response.output_item.done", {**place, "item": item}
    done = "response.incomplete" if reply.refused else "response.completed"
    yield done, {"response": whole(reply)}


def _head(reply: Reply, status: str) -> dict[str, Any]:
    return {"id": f"resp_{reply.id}", "object": "response", "created_at": 0, "status": status, "error": None,
            "model": reply.model}  # fmt: skip


def _output(reply: Reply) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = []
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        output.append(
            {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        )
    return [*output, *map(_call, reply.calls)]


def _call(call: ToolCall) -> dict[str, Any]:
    common = {"id": f"item_{call.id}", "call_id": call.id, "name": call.name, "status": "completed"}
    return {**common, "type": "function_call", "arguments": call.text}


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "input_tokens": reply.tokens_in,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": reply.tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.tokens_in + reply.tokens_out,
    }
