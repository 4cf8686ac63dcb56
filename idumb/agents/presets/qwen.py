"""Qwen Code. Its report has Claude Code's format, but a server error appears as the text of a success."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

from idumb import lazy_pattern
from idumb.agents import answers, failure_words
from idumb.agents.answers import Report
from idumb.agents.presets import claude
from idumb.agents.presets.preset import Invocation, Preset
from idumb.domain import agent

_WITHOUT_RULES = lazy_pattern.compile(r"0\.(\d|1[0-2])\.")
_API_ERROR = lazy_pattern.compile(r"\[API Error: (.*)\]?", re.DOTALL)


def _arguments(call: Invocation) -> tuple[str, ...]:
    arguments = ["--output-format", "stream-json", *_permissions(call)]
    if "OPENAI_API_KEY" in call.environment:
        arguments += ["--auth-type", "openai"]
    if call.session is not None:
        arguments += ["--resume", call.session]
    return (*arguments, "--model", call.model) if call.model is not None else tuple(arguments)


def _permissions(call: Invocation) -> tuple[str, ...]:
    """Allow edits. `auto-edit` writes anywhere; older versions have no path rules but stay inside the workspace."""
    if not call.writes:
        return ("--approval-mode", "default")
    if call.shell:
        return ("--approval-mode", "yolo")
    if _WITHOUT_RULES.match(call.version):
        return ("--approval-mode", "auto-edit")
    return ("--approval-mode", "default", "--allowed-tools", "Edit(/**),WriteFile(/**)")


def read(output: bytes, errors: bytes) -> Report:
    answer = claude.read(output, errors)
    match = _API_ERROR.search(answer.reply)
    if match is None or (answer.error and answer.failure):
        return answer
    words = answers.one_line(match[1].rstrip("]"))
    return dataclasses.replace(answer, error=words, failure=failure_words.of_words(words) or agent.NETWORK)


def _files(_: Invocation) -> dict[str, str]:
    settings = {
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "model": {"generationConfig": {"maxRetries": 1}},
    }
    return {".qwen/settings.json": json.dumps(settings)}


def _variables(call: Invocation) -> dict[str, Any]:
    return {"OPENAI_MODEL": call.model} if call.model is not None else {}


PRESET = Preset(
    name="qwen",
    login="set OPENAI_API_KEY and name it in the binding's environment, or log in and set `home: user`",
    arguments=_arguments,
    read=read,
    state=(".qwen",),
    variables=_variables,
    files=_files,
)
