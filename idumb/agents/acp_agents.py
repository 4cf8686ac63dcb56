"""The agents that speak the Agent Client Protocol and that idumb knows, one row each.

A row says how to start the agent in that mode so that it asks before it writes, chooses the binding's model, and
neither updates itself nor reports to its vendor. Any other agent needs no row: `adapter: acp` with its `argv`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from idumb.agents.known_agent import Call, KnownAgent
from idumb.lazy_dataclass import dataclass

_NO_UPDATE = {"general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "maxAttempts": 2}}
_PRIVATE = {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}


@dataclass(frozen=True, slots=True)
class Row(KnownAgent):
    """An agent that speaks the protocol.

    `unpacked` maps variables to folders for files that it unpacks, which all its private homes share. `makes_folders`
    is false if it cannot write a file into a missing folder. `model_at_start`: the model is chosen here, not over the
    protocol. `error` begins the last message of an agent that ends its turn after a failure and reports it
    as text.
    """

    unpacked: Mapping[str, str] = field(default_factory=dict)
    makes_folders: bool = True
    model_at_start: bool = True
    error: str = ""


def _model(call: Call) -> tuple[str, ...]:
    return ("--model", call.model) if call.model is not None else ()


def _gemini_files(call: Call) -> dict[str, Any]:
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}} if "GEMINI_API_KEY" in call.environment else {}
    return {".gemini/settings.json": {**_NO_UPDATE, **_PRIVATE, **auth}}


def _qwen_files(call: Call) -> dict[str, Any]:
    kind = next((k for k in ("openai", "anthropic") if f"{k.upper()}_API_KEY" in call.environment), None)
    auth = {"security": {"auth": {"selectedType": kind}}} if kind is not None else {}
    retries = {"model": {"generationConfig": {"maxRetries": 1}}}
    return {".qwen/settings.json": {**_NO_UPDATE, **_PRIVATE, **auth, **retries}}


def _copilot_variables(call: Call) -> dict[str, str]:
    offline = {"COPILOT_OFFLINE": "true"} if "COPILOT_PROVIDER_BASE_URL" in call.environment else {}
    return {**offline, **({"COPILOT_MODEL": call.model} if call.model is not None else {})}


_OPENCODE_FILE = "opencode.json"
_OPENCODE_SERVERS: Mapping[str, str] = {"OPENAI": "@ai-sdk/openai-compatible", "ANTHROPIC": "@ai-sdk/anthropic"}


def _opencode_settings(call: Call) -> dict[str, Any]:
    """Return its settings. Unless told to ask, OpenCode allows everything."""
    rules = {"edit": "ask", "bash": "ask" if call.shell else "deny", "webfetch": "deny", "external_directory": "deny"}
    settings: dict[str, Any] = {"permission": rules, "autoupdate": False, "share": "disabled"}
    if call.model is None:
        return settings
    vendor = next((v for v in _OPENCODE_SERVERS if f"{v}_BASE_URL" in call.environment), None)
    name = call.model if vendor is None else f"endpoint/{call.model}"
    if vendor is not None:
        options = {"baseURL": f"{{env:{vendor}_BASE_URL}}", "apiKey": f"{{env:{vendor}_API_KEY}}"}
        models = {call.model: {"name": call.model}}
        provider = {"npm": _OPENCODE_SERVERS[vendor], "name": "endpoint", "options": options, "models": models}
        settings |= {"provider": {"endpoint": provider}, "small_model": name}
    return {**settings, "model": name}


def _opencode_variables(call: Call) -> dict[str, str]:
    variables = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
    if any(f"{vendor}_BASE_URL" in call.environment for vendor in _OPENCODE_SERVERS):
        variables["OPENCODE_DISABLE_MODELS_FETCH"] = "1"
    if call.home is not None:
        return {**variables, "OPENCODE_CONFIG": os.path.join(call.home, _OPENCODE_FILE)}
    return {**variables, "OPENCODE_CONFIG_CONTENT": json.dumps(_opencode_settings(call))}


ROWS: Mapping[str, Row] = {
    "gemini": Row(
        argv=("gemini", "--acp"),
        arguments=_model,
        # Without this, Gemini treats an unknown folder as untrusted and does not work in it.
        variables=lambda _: {"GEMINI_CLI_TRUST_WORKSPACE": "true"},
        files=_gemini_files,
        state=(".gemini",),
    ),
    "opencode": Row(
        argv=("opencode", "acp"),
        variables=_opencode_variables,
        files=lambda call: {_OPENCODE_FILE: _opencode_settings(call)},
        state=(".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"),
    ),
    "copilot": Row(
        argv=("copilot", "--acp", "--disable-builtin-mcps", "--no-auto-update", "--log-level", "none"),
        variables=_copilot_variables,
        state=(".copilot", ".cache/copilot"),
        places=("COPILOT_HOME",),
        unpacked={"COPILOT_PKG_CACHE_HOME": "copilot"},
        makes_folders=False,
        error="Error: ",
    ),
    "qwen": Row(
        argv=("qwen", "--acp"),
        arguments=_model,
        variables=lambda call: {"OPENAI_MODEL": call.model} if call.model is not None else {},
        files=_qwen_files,
        state=(".qwen",),
    ),
}
"""What `adapter: NAME` starts."""

OTHER = Row(argv=(), model_at_start=False)
"""An agent that a binding names by its `argv`."""
