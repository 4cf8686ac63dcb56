"""The scripted model: turns a request of either protocol into a response. Does no network I/O."""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from msgspec import Struct

from idumb.domain import model_script as script
from idumb.domain.model_script import Answer, Script
from idumb.fake_model import anthropic, responses
from idumb.fake_model.conversation import Conversation, Event, Reply, ToolCall, offered_calls, structured_call

_MODEL = {"id": "fake-model", "type": "model", "object": "model", "display_name": "fake-model", "created": 0,
          "created_at": "2025-01-01T00:00:00Z", "owned_by": "idumb"}  # fmt: skip

Events = Iterable[Event]


class Sent(Struct, frozen=True):
    """The response: a JSON object, or the events of a stream; `fault` corrupts how it is sent, the log gets `note`."""

    status: int
    body: Any = None
    events: Events | None = None
    fault: str | None = None
    seconds: float = 0.0
    note: Mapping[str, Any] | None = None


Format = ModuleType
"""A provider's protocol: a module with `read`, `whole`, `events` and `error`."""


class FakeModel:
    """Answers requests from a script. Thread-safe."""

    def __init__(self, scripted: Script, more: Mapping[str, Format] | None = None) -> None:
        self._script = scripted
        self._formats: Mapping[str, Format] = {**FORMATS, **(more or {})}
        self._used = Counter[int]()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    def get(self, path: str) -> Sent:
        """Return the list of models, in a form that clients of both protocols read."""
        is_list = path.rstrip("/").endswith("/models")
        return Sent(200, {"object": "list", "has_more": False, "data": [_MODEL]}) if is_list else _nowhere(path)

    def post(self, path: str, body: Mapping[str, Any]) -> Sent:
        """Answer one request; `path` is without its query."""
        path = path.rstrip("/")
        if path.endswith("/count_tokens"):
            return Sent(200, {"input_tokens": len(json.dumps(body)) // 4})
        protocol = next((module for end, module in self._formats.items() if path.endswith(end)), None)
        return _nowhere(path) if protocol is None else self._answer(protocol, body, path)

    def _answer(self, protocol: Format, body: Mapping[str, Any], path: str) -> Sent:
        conversation: Conversation = protocol.read(body, path)
        stream = body.get("stream") is True or ":stream" in path
        request = script.ModelRequest(conversation.prompt, conversation.answered, bool(conversation.tools))
        with self._lock:
            number = next(self._numbers)
            chosen = script.choose(self._script, request, self._used)
            if chosen.rule is not None:
                self._used[chosen.rule] += 1
        answer, reply = chosen.answer, _reply(chosen.answer, conversation, number)
        note = {
            "protocol": protocol.__name__.rpartition(".")[2],
            "model": conversation.model,
            "stream": stream,
            "tools": [tool.name for tool in conversation.tools],
            "prompt_characters": len(conversation.prompt),
            "said_characters": len(conversation.text),
            "answered": conversation.answered,
            "rule": None if chosen.rule is None else self._script.rules[chosen.rule].title,
            "answer": chosen.number,
            "fault": answer.fault,
            "calls": [call.name for call in reply.calls],
        }
        if answer.fault in anthropic.ERRORS:  # the provider reports it in a response of its own
            status, told = protocol.error(answer.fault)
            return Sent(status, told, note=note)
        fault = None if answer.fault == script.REFUSED else answer.fault
        if stream:
            return Sent(200, None, protocol.events(reply), fault, answer.seconds, note)
        return Sent(200, protocol.whole(reply), None, fault, answer.seconds, note)


def _reply(answer: Answer, conversation: Conversation, number: int) -> Reply:
    text = answer.say
    tool_calls = offered_calls(answer.calls, conversation)
    if answer.data is not None:
        structured = structured_call(answer.data, conversation)
        if structured is not None:
            tool_calls.append(structured)
        else:
            text = json.dumps(answer.data)
    if answer.fault == script.REFUSED:
        text = text or "I cannot help with that."
    calls = tuple(ToolCall(f"call_{number}_{i}", name, given) for i, (name, given) in enumerate(tool_calls))
    text = text if text or calls else "Done."
    length = len(text) + sum(len(call.text) for call in calls)
    return Reply(
        str(number),
        conversation.model,
        text,
        calls,
        len(conversation.text) // 4 + 1 if answer.tokens_in is None else answer.tokens_in,
        length // 4 + 1 if answer.tokens_out is None else answer.tokens_out,
        answer.fault == script.REFUSED,
    )


FORMATS: Mapping[str, Format] = {"/messages": anthropic, "/responses": responses}
"""The protocol of each address."""


def _nowhere(path: str) -> Sent:
    message = f"the scripted model does not serve {path}"
    return Sent(404, {"type": "error", "error": {"type": "not_found_error", "message": message, "code": 404}})
