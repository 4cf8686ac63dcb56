"""The same conversation in each protocol: a prompt, an answer with a tool call, and the result of the tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PARAMETERS = {
    "type": "object",
    "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["file_path", "content"],
}
GIVEN = '{"file_path": "a.txt", "content": "x"}'


@dataclass(frozen=True, slots=True)
class Protocol:
    """`body` makes a request from a prompt and how often it was answered; the others read an answer to it."""

    name: str
    path: str
    body: Callable[[str, int], dict[str, Any]]
    text: Callable[[Any], str]
    call: Callable[[Any], tuple[str, Any]]
    assembled: Callable[[list[tuple[str | None, Any]]], tuple[str, str]]


def _anthropic(prompt: str, answered: int) -> dict[str, Any]:
    use = {"type": "tool_use", "id": "t", "name": "Write", "input": {}}
    turns = [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
    ] * answered
    return {
        "model": "m",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}, *turns],
        "tools": [{"name": "Write", "input_schema": PARAMETERS}],
    }


def _responses(prompt: str, answered: int) -> dict[str, Any]:
    turns = [
        {"type": "function_call", "name": "Write", "call_id": "t", "arguments": GIVEN},
        {"type": "function_call_output", "call_id": "t", "output": "ok"},
    ] * answered
    content = [{"type": "input_text", "text": prompt}]
    return {
        "model": "m",
        "instructions": "be good",
        "input": [{"type": "message", "role": "user", "content": content}, *turns],
        "tools": [{"type": "function", "name": "Write", "parameters": PARAMETERS}],
    }


def _from_anthropic(events: list[tuple[str | None, Any]]) -> tuple[str, str]:
    deltas = [data["delta"] for name, data in events if name == "content_block_delta"]
    assert events[-1][0] == "message_stop"
    return "".join(d.get("text", "") for d in deltas), "".join(d.get("partial_json", "") for d in deltas)


def _from_responses(events: list[tuple[str | None, Any]]) -> tuple[str, str]:
    assert events[-1][0] == "response.completed"
    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))
    text = "".join(data["delta"] for name, data in events if name == "response.output_text.delta")
    return text, "".join(data["delta"] for name, data in events if name == "response.function_call_arguments.delta")


ALL = (
    Protocol(
        "anthropic",
        "/v1/messages",
        _anthropic,
        lambda answer: answer["content"][0]["text"],
        lambda answer: (answer["content"][0]["name"], answer["content"][0]["input"]),
        _from_anthropic,
    ),
    Protocol(
        "responses",
        "/v1/responses",
        _responses,
        lambda answer: answer["output"][0]["content"][0]["text"],
        lambda answer: (answer["output"][0]["name"], json.loads(answer["output"][0]["arguments"])),
        _from_responses,
    ),
)
