"""OpenCode."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from idumb.agents import answers, model_server
from idumb.agents.answers import Said, inside, text
from idumb.agents.presets.preset import Preset, Wanted
from idumb.domain.agent import Usage

_CONFIG = "opencode.json"
_KEY, _ENDPOINT = "OPENAI_API_KEY", "OPENAI_BASE_URL"
_PROVIDER = "endpoint"
_NOTHING_SAID = "Unexpected server error"
_LOGGED = re.compile(
    r'^timestamp=\S+ level=ERROR .*?\berror(?:\.error)?="((?:[^"\\]|\\.)*)"'
    r"|^ERROR .*? error=([^\n{][^\n]*?)(?: stack=| process$|$)",
    re.MULTILINE,
)
"""The two formats of a logged error, in newer and older versions."""


def _arguments(wanted: Wanted) -> tuple[str, ...]:
    # If its server fails, the report has no reason ("Unexpected server error"); the log has it.
    given = ["run", "--format", "json", "--print-logs", "--log-level", "ERROR"]
    if wanted.session is not None:
        given += ["--session", wanted.session]
    if wanted.model is not None:
        given += ["--model", f"{_PROVIDER}/{wanted.model}" if _ENDPOINT in wanted.environment else wanted.model]
    return tuple(given)


def _files(wanted: Wanted) -> dict[str, str]:
    """Return the permissions. Unless configured otherwise, OpenCode allows everything."""
    edit, bash = ("allow" if allowed else "deny" for allowed in (wanted.writes, wanted.shell))
    rules = {"edit": edit, "bash": bash, "webfetch": "deny", "external_directory": "deny"}
    settings: dict[str, Any] = {"permission": rules, "autoupdate": False, "share": "disabled"}
    if _ENDPOINT in wanted.environment and wanted.model is not None:
        settings["provider"] = {_PROVIDER: _provider(wanted.model)}
        settings["small_model"] = f"{_PROVIDER}/{wanted.model}"
    return {_CONFIG: json.dumps(settings)}


def _provider(model: str) -> dict[str, Any]:
    options = {"baseURL": f"{{env:{_ENDPOINT}}}", "apiKey": f"{{env:{_KEY}}}"}
    return {
        "npm": "@ai-sdk/openai-compatible",
        "name": _PROVIDER,
        "options": options,
        "models": {model: {"name": model}},
    }


def _variables(wanted: Wanted) -> dict[str, str]:
    found = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
    if _ENDPOINT in wanted.environment:
        found["OPENCODE_DISABLE_MODELS_FETCH"] = "1"
    if wanted.home is not None:
        found["OPENCODE_CONFIG"] = os.path.join(wanted.home, _CONFIG)
    else:
        found["OPENCODE_CONFIG_CONTENT"] = _files(wanted)[_CONFIG]
    return found


def read(output: bytes, errors: bytes) -> Said:
    """Return the last text, the usage of each step, and any `error`. The report does not name the model."""
    reply, session, error, reason = "", None, "", ""
    tokens_in: list[int | None] = []
    tokens_out: list[int | None] = []
    costs: list[float] = []
    for found in answers.objects(output):
        part = found.get("part")
        session = text(found.get("sessionID")) or session
        kind = found.get("type")
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
                text(inside(found, "error", "data", "message")) or text(inside(found, "error", "name")) or "an error"
            )
    ended = reason not in {"", "tool-calls"}
    if error.startswith(_NOTHING_SAID) or not (error or ended):
        error = _logged(errors) or error or answers.last_line(errors)
    error = answers.one_line(error)
    return Said(
        reply=reply,
        session=session,
        usage=Usage(answers.total(*tokens_in), answers.total(*tokens_out), sum(costs) if costs else None),
        ended=ended,
        error=error,
        failure=answers.kind_of(error) if error else None,
    )


def _logged(errors: bytes) -> str:
    """Return the last error about the model from the log; other lookups appear in the log, too."""
    found = [new or old for new, old in _LOGGED.findall(errors.decode("utf-8", "replace"))]
    return next((words for words in reversed(found) if answers.kind_of(words)), "")


def _listed(output: bytes) -> tuple[str, ...]:
    return tuple(id for id in model_server.plain_ids(output.decode("utf-8", "replace").splitlines()) if "/" in id)


PRESET = Preset(
    name="opencode",
    login="set your provider's key and name it in the binding's environment, or log in and set `home: user`",
    arguments=_arguments,
    read=read,
    variables=_variables,
    files=_files,
    server=model_server.ModelList(_ENDPOINT, _KEY),
    lists=("models",),
    listed=_listed,
)
