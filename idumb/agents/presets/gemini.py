"""Gemini CLI."""

from __future__ import annotations

import json
import re
from typing import Any

from idumb import lazy_pattern
from idumb.agents import answers, failure_words
from idumb.agents.answers import Report, inside, text
from idumb.agents.presets.preset import Invocation, Preset
from idumb.domain import agent, canonical_json
from idumb.domain.agent import Usage

_NO_LOGIN = 41
_RETRY = lazy_pattern.compile(r"^Attempt \d+ failed.*$", re.MULTILINE)


def _arguments(call: Invocation) -> tuple[str, ...]:
    mode = "yolo" if call.writes and call.shell else "auto_edit" if call.writes else "default"
    arguments = ["--output-format", "stream-json", "--approval-mode", mode]
    if call.session is not None:
        arguments += ["--resume", call.session]
    return (*arguments, "--model", call.model) if call.model is not None else tuple(arguments)


def _files(call: Invocation) -> dict[str, str]:
    settings: dict[str, Any] = {
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "maxAttempts": 2},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    if "GEMINI_API_KEY" in call.environment:
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
    return {".gemini/settings.json": json.dumps(settings)}


def _variables(_: Invocation) -> dict[str, str]:
    # Without this, Gemini treats an unknown folder as untrusted and does not work in it.
    return {"GEMINI_CLI_TRUST_WORKSPACE": "true"}


def read(output: bytes, errors: bytes) -> Report:
    """Return the text of the last message, joined from its parts, and the `result`.

    Errors are objects on standard error.
    """
    pieces: list[str] = []
    session, model, fresh = None, None, True
    result: dict[str, Any] = {}
    error = ""
    for event in answers.objects(output):
        kind = event.get("type")
        if kind == "init":
            session, model = text(event.get("session_id")) or None, text(event.get("model")) or None
        elif kind == "message" and event.get("role") == "assistant":
            pieces = [text(event.get("content"))] if fresh else [*pieces, text(event.get("content"))]
            fresh = False
        elif kind in {"tool_use", "tool_result"}:
            fresh = True
        elif kind == "error":
            error = text(event.get("message")) or error
        elif kind == "result":
            result = event
    done = result.get("status") == "success"
    error = "" if done else _error(result, error, errors)
    return Report(
        reply="".join(pieces),
        session=session,
        usage=Usage(
            answers.count(inside(result, "stats", "input_tokens")),
            answers.count(inside(result, "stats", "output_tokens")),
        ),
        model=model,
        ended=bool(result),
        error=error,
        failure=failure_words.of_words(error) if error else None,
    )


def _error(result: dict[str, Any], error: str, errors: bytes) -> str:
    message = text(inside(result, "error", "message")) or error
    if not message:
        whole = errors.decode("utf-8", "replace")
        begin = whole.find('{\n  "session_id"')
        try:
            message = text(inside(canonical_json.decode(whole[begin:]), "error", "message")) if begin >= 0 else ""
        except ValueError:
            message = ""
    return answers.one_line(message) or _retried(errors) or answers.last_line(errors)


def _retried(errors: bytes) -> str:
    """Return the reason of the last retry, if the agent was stopped while it retried."""
    retries = _RETRY.findall(errors.decode("utf-8", "replace"))
    return answers.one_line(retries[-1]) if retries else ""


PRESET = Preset(
    name="gemini",
    login="set GEMINI_API_KEY and name it in the binding's environment, or log in and set `home: user`",
    arguments=_arguments,
    read=read,
    state=(".gemini",),
    variables=_variables,
    files=_files,
    exits={_NO_LOGIN: agent.NOT_LOGGED_IN},
)
