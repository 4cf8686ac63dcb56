"""Command-line agents that idumb knows: how each is started, where it keeps its state, and those that speak ACP.

A row starts an agent that speaks ACP so that it asks before it writes, chooses the binding's model, and neither updates
itself nor reports to its vendor. Any other agent needs no row: `adapter: acp` with its `argv`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from idumb.agents import adapter
from idumb.agents.adapter import FORMAT, Equipment
from idumb.agents.answers import Report
from idumb.agents.program import (
    IDLE_TIMEOUT,
    JUDGING,
    InputFiles,
    ProgramAgent,
    home_variables,
    installed_version,
    make_home,
    with_request,
)
from idumb.app.ports import Hear
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest, Capabilities
from idumb.domain.errors import AdapterError
from idumb.domain.settings import Binding
from idumb.system.child_process import Finished


class Call(Struct, frozen=True):
    """One start of an agent. `writes`: it may change files. `shell`: it may run any command.

    `project`: it reads the repository's instructions for agents. `schema` is the JSON Schema of the reply as text,
    `schema_file` the path of a file that contains it; both are "" for a plain reply. `home` is the agent's private
    home, None if it works in the user's home. `git_folder` is where a builder may commit, None for others.
    `environment` are the variables that the agent sees.
    """

    writes: bool = True
    shell: bool = False
    project: bool = False
    model: str | None = None
    schema: str = ""
    schema_file: str = ""
    home: str | None = None
    git_folder: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


class KnownAgent(Struct, frozen=True):
    """`argv` starts the agent, followed by `arguments`; its program is looked up on PATH.

    `variables` are always set. `files` are written into a private home, by their path in it, and `folders` made there.
    `state` are the places of its state below the user's home, `places` variables that name such folders. `unpacked`
    maps variables to folders for files that it unpacks, which all its private homes share.
    """

    argv: tuple[str, ...]
    arguments: Callable[[Call], tuple[str, ...]] = lambda _: ()
    variables: Callable[[Call], Mapping[str, str]] = lambda _: {}
    files: Callable[[Call], Mapping[str, Any]] = lambda _: {}
    folders: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    unpacked: Mapping[str, str] = field(default_factory=dict)


class Preset(KnownAgent, frozen=True):
    """An agent with a report in a format of its own; its prompt is on standard input.

    `read` parses standard output, and what it says besides events; `lines` says in short lines what one event of the
    output tells. `final` are the types of the event that ends a report.
    With the arguments `status` its exit code says whether it is logged in. `in_sandbox` changes the arguments for a
    start in idumb's sandbox.
    """

    read: Callable[[bytes, bytes], Report] = lambda _output, _errors: Report()
    lines: Callable[[Mapping[str, Any]], Iterator[str]] = lambda _: iter(())
    final: frozenset[str] = frozenset()
    status: tuple[str, ...] = ()
    in_sandbox: Callable[[Sequence[str]], Sequence[str]] = lambda arguments: arguments


class KnownProgram(ProgramAgent):
    """Runs one known agent. `argv` of the binding names another program and extra arguments."""

    def __init__(self, binding: Binding, equipment: Equipment, known: KnownAgent) -> None:
        super().__init__(binding, equipment)
        self._known = known
        self.needs_login = bool(known.argv)
        with contextlib.suppress(AdapterError):
            self.version = f"{FORMAT} {installed_version(self.describe()[0])}".strip()
        idle = IDLE_TIMEOUT if known.argv else None
        self.capabilities = Capabilities(reports_progress=True, idle_timeout=idle, sandboxed=True)

    def describe(self, call: Call | None = None) -> Sequence[str]:
        """Return the arguments of a call, or of a builder's. Raises AdapterError if they are unusable."""
        self._require_options()
        own, *more = self._binding.argv or self._known.argv[:1]
        return (self._resolve(own), *self._known.argv[1:], *self._known.arguments(call or self._call()), *more)

    def _call(self, request: AgentRequest | None = None, **more: Any) -> Call:
        """Return the call for a request, or for a builder without a request yet; `more` are other fields of it."""
        options, model = self._binding.options, request.model if request is not None else None
        return Call(
            writes=request is None or request.role != VALIDATOR,
            shell=options.get("shell") is True,
            project=options.get("project") is True,
            model=model or self._binding.model,
            environment=self._environment,
            **more,
        )

    def _launched(
        self, request: AgentRequest, inputs: InputFiles, hear: Hear | None, schema: Mapping[str, str], **how: Any
    ) -> Finished:
        """Make the private home, if any, and run the agent. Raises OSError if one of them cannot be made.

        `schema` are the fields of a call about the form of the reply.
        """
        git_folder = adapter.git_folder(request.workspace) if request.role == BUILDER else None
        known, call = self._known, self._call(request, home=self._home(inputs), git_folder=git_folder, **schema)
        environment = {**with_request(self._environment, request), **inputs.variables}
        if call.home is not None:
            make_home(call.home, {name: json.dumps(text) for name, text in known.files(call).items()}, known.folders)
            shared = self._shared(request)
            environment |= {**home_variables(call.home), **shared}
            state = [call.home, *shared.values()]
        else:
            environment |= self._equipment.environment(known.places)
            home = environment.get("HOME", "")
            state = [environment[name] for name in known.places if environment.get(name)]
            state += [os.path.join(home, path) for path in known.state if home]
        environment |= known.variables(call)
        return self._start(self.describe(call), request, environment, inputs, hear, *state, separate_errors=True, **how)

    def _shared(self, request: AgentRequest) -> dict[str, str]:
        """Make the folders for files that it unpacks, which would otherwise be unpacked into each home."""
        folder = self._equipment.unpacked
        if folder is None:
            return {}
        # Without a sandbox, a builder could change the installed program itself.
        suffix = "-judging" if request.role in JUDGING and self._equipment.settings.sandboxed else ""
        shared = {name: os.path.join(folder, f"{place}{suffix}") for name, place in self._known.unpacked.items()}
        for path in shared.values():
            os.makedirs(path, 0o700, exist_ok=True)
        return shared


_NO_UPDATE = {"general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "maxAttempts": 2}}
_PRIVATE = {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}


class Row(KnownAgent, frozen=True):
    """An agent that speaks the protocol.

    `model_at_start`: the model is chosen here, not over the protocol. `error` begins the last message of an agent that
    ends its turn after a failure and reports it as text.
    """

    model_at_start: bool = True
    error: str = ""


def model(call: Call) -> tuple[str, ...]:
    """Return the arguments that choose the model."""
    return ("--model", call.model) if call.model is not None else ()


def _gemini_files(call: Call) -> dict[str, Any]:
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}} if "GEMINI_API_KEY" in call.environment else {}
    return {".gemini/settings.json": {**_NO_UPDATE, **_PRIVATE, **auth}}


def _qwen_files(call: Call) -> dict[str, Any]:
    kind = next((k for k in ("openai", "anthropic") if f"{k.upper()}_API_KEY" in call.environment), None)
    auth = {"security": {"auth": {"selectedType": kind}}} if kind is not None else {}
    retries = {"model": {"generationConfig": {"maxRetries": 1}}}
    return {".qwen/settings.json": {**_NO_UPDATE, **_PRIVATE, **auth, **retries}}


def _copilot_tools(call: Call) -> tuple[str, ...]:
    """Return what hides tools that it may not use: it ends its turn when one is denied."""
    hidden = (*(() if call.writes else ("create", "edit")), *(() if call.shell else ("bash",)))
    return tuple(f"--excluded-tools={tool}" for tool in hidden)


def _copilot_variables(call: Call) -> dict[str, str]:
    offline = {"COPILOT_OFFLINE": "true"} if "COPILOT_PROVIDER_BASE_URL" in call.environment else {}
    return {**offline, **({"COPILOT_MODEL": call.model} if call.model is not None else {})}


_OPENCODE_FILE = "opencode.json"
_OPENCODE_SERVERS: Mapping[str, str] = {"OPENAI": "@ai-sdk/openai-compatible", "ANTHROPIC": "@ai-sdk/anthropic"}


def _opencode_settings(call: Call) -> dict[str, Any]:
    """Return its settings. Unless told to ask, OpenCode allows everything."""
    rules = {
        "edit": "ask" if call.writes else "deny",
        "bash": "ask" if call.shell else "deny",
        "webfetch": "deny",
        "external_directory": "deny",
    }
    settings: dict[str, Any] = {"permission": rules, "autoupdate": False, "share": "disabled"}
    settings["experimental"] = {"continue_loop_on_deny": True}  # else a veto would end its turn
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
        arguments=model,
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
        arguments=_copilot_tools,
        variables=_copilot_variables,
        state=(".copilot", ".cache/copilot"),
        places=("COPILOT_HOME",),
        unpacked={"COPILOT_PKG_CACHE_HOME": "copilot"},
        error="Error: ",
    ),
    "qwen": Row(
        argv=("qwen", "--acp"),
        arguments=model,
        variables=lambda call: {"OPENAI_MODEL": call.model} if call.model is not None else {},
        files=_qwen_files,
        state=(".qwen",),
    ),
}
"""What `adapter: NAME` starts."""

OTHER = Row(argv=(), model_at_start=False)
"""An agent that a binding names by its `argv`."""
