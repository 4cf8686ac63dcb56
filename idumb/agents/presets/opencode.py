"""OpenCode."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from idumb import lazy_pattern
from idumb.agents import answers, failure_words
from idumb.agents.answers import Report, inside, text
from idumb.agents.presets.preset import Invocation, Preset
from idumb.domain.agent import Usage

_CONFIG = "opencode.json"
_KEY, _ENDPOINT = "OPENAI_API_KEY", "OPENAI_BASE_URL"
_PROVIDER = "endpoint"
_NOTHING_SAID = "Unexpected server error"
_LOGGED = lazy_pattern.compile(
    r'^timestamp=\S+ level=ERROR .*?\berror(?:\.error)?="((?:[^"\\]|\\.)*)"'
    r"|^ERROR .*? error=([^\n{][^\n]*?)(?: stack=| process$|$)",
    re.MULTILINE,
)
"""The two formats of a logged error, in newer and older versions."""


def _arguments(call: Invocation) -> tuple[str, ...]:
    # If its server fails, the report has no reason ("Unexpected server error"); the log has it.
    arguments = ["run", "--format", "json", "--print-logs", "--log-level", "ERROR"]
    if call.session is not None:
        arguments += ["--session", call.session]
    if call.model is not None:
        arguments += ["--model", f"{_PROVIDER}/{call.model}" if _ENDPOINT in call.environment else call.model]
    return tuple(arguments)


def _files(call: Invocation) -> dict[str, str]:
    """Return the permissions. Unless configured otherwise, OpenCode allows everything."""
    edit, bash = ("allow" if allowed else "deny" for allowed in (call.writes, call.shell))
    rules = {"edit": edit, "bash": bash, "webfetch": "deny", "external_directory": "deny"}
    settings: dict[str, Any] = {"permission": rules, "autoupdate": False, "share": "disabled"}
    if _ENDPOINT in call.environment and call.model is not None:
        settings["provider"] = {_PROVIDER: _provider(call.model)}
        settings["small_model"] = f"{_PROVIDER}/{call.model}"
    return {_CONFIG: json.dumps(settings)}


def _provider(model: str) -> dict[str, Any]:
    options = {"baseURL": f"{{env:{_ENDPOINT}}}", "apiKey": f"{{env:{_KEY}}}"}
    return {
        "npm": "@ai-sdk/openai-compatible",
        "name": _PROVIDER,
        "options": options,
        "models": {model: {"name": model}},
    }


def _variables(call: Invocation) -> dict[str, str]:
    variables = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
    if _ENDPOINT in call.environment:
        variables["OPENCODE_DISABLE_MODELS_FETCH"] = "1"
    if call.home is not None:
        variables["OPENCODE_CONFIG"] = os.path.join(call.home, _CONFIG)
    else:
        variables["OPENCODE_CONFIG_CONTENT"] = _files(call)[_CONFIG]
    return variables


def read(output: bytes, errors: bytes) -> Report:
    """Return the last text, the usage of each step, and any `error`. The report does not name the model."""
    reply, session, error, reason = "", None, "", ""
    tokens_in: list[int | None] = []
    tokens_out: list[int | None] = []
    costs: list[float] = []
    for event in answers.objects(output):
        part = event.get("part")
        session = text(event.get("sessionID")) or session
        kind = event.get("type")
        if kind == "text":
            reply = text(inside(part, "text")) or reply
        elif kind == "step_finish":
            reason = text(inside(part, "reason"))
            read = ("input", "cache.read", "cache.write")
            tokens_in.append(answers.total(*(answers.count(inside(part, "tokens", *n.split("."))) for n in read)))
            tokens_out.append(answers.count(inside(part, "tokens", "output")))
            cost = answers.amount(inside(part, "cost"))
            costs += [cost] if cost else []
        elif kind == "error":
            error = (
                text(inside(event, "error", "data", "message")) or text(inside(event, "error", "name")) or "an error"
            )
    ended = reason not in {"", "tool-calls"}
    if error.startswith(_NOTHING_SAID) or not (error or ended):
        error = _logged(errors) or error or answers.last_line(errors)
    error = answers.one_line(error)
    return Report(
        reply=reply,
        session=session,
        usage=Usage(answers.total(*tokens_in), answers.total(*tokens_out), sum(costs) if costs else None),
        ended=ended,
        error=error,
        failure=failure_words.of_words(error) if error else None,
    )


def _logged(errors: bytes) -> str:
    """Return the last error about the model from the log; other lookups appear in the log, too."""
    logged = [new or old for new, old in _LOGGED.findall(errors.decode("utf-8", "replace"))]
    return next((words for words in reversed(logged) if failure_words.of_words(words)), "")


def _listed(output: bytes) -> tuple[str, ...]:
    return tuple(id for id in answers.plain_ids(output.decode("utf-8", "replace").splitlines()) if "/" in id)


PRESET = Preset(
    name="opencode",
    login="set your provider's key and name it in the binding's environment, or log in and set `home: user`",
    arguments=_arguments,
    read=read,
    state=(".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"),
    variables=_variables,
    files=_files,
    lists=("models",),
    listed=_listed,
)
