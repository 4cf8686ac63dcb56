"""Codex CLI."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from idumb.agents import answers, failure_words, known_agent
from idumb.agents.answers import Report, inside, text
from idumb.agents.known_agent import Call, Preset

_MODE = re.compile('sandbox_mode="(workspace-write|read-only)"')
_KEY, _ENDPOINT = "OPENAI_API_KEY", "OPENAI_BASE_URL"


def _arguments(call: Call) -> tuple[str, ...]:
    arguments = ["exec", "--json", "--skip-git-repo-check", *_sandbox(call)]
    if call.schema_file:
        arguments += ["--output-schema", call.schema_file]
    return (*arguments, *known_agent.model(call), *_endpoint(call), "-")


def _sandbox(call: Call) -> list[str]:
    """Configure the sandbox. Codex sandboxes its commands itself."""
    mode = "workspace-write" if call.writes else "read-only"
    settings = [f'sandbox_mode="{mode}"', 'approval_policy="never"', "sandbox_workspace_write.exclude_slash_tmp=true"]
    if call.git_folder is not None:
        # Codex keeps `.git` read-only inside its writable folders unless it is listed explicitly.
        settings.append(f"sandbox_workspace_write.writable_roots={json.dumps([call.git_folder])}")
    return [part for setting in settings for part in ("-c", setting)]


def _in_sandbox(arguments: Sequence[str]) -> list[str]:
    """Turn off Codex's own sandbox: it cannot be made inside another one, and then Codex runs no command at all."""
    return ['sandbox_mode="danger-full-access"' if _MODE.fullmatch(part) else part for part in arguments]


def _endpoint(call: Call) -> list[str]:
    """Return the settings of another server, which is a provider of its own; a key alone becomes CODEX_API_KEY."""
    address = call.environment.get(_ENDPOINT)
    if not address:
        return []
    fields = {"name": "endpoint", "base_url": address, "wire_api": "responses"}
    settings = [f"{name}={json.dumps(value)}" for name, value in fields.items()]
    if _KEY in call.environment:
        settings.append(f"env_key={json.dumps(_KEY)}")
    settings += ["request_max_retries=2", "stream_max_retries=2"]
    return ["-c", 'model_provider="endpoint"', "-c", f"model_providers.endpoint={{{','.join(settings)}}}"]


def _variables(call: Call) -> dict[str, str]:
    variables = {}
    if call.home is not None:
        # Codex creates no helper programs below the temporary folder, and runs no command without them.
        variables["CODEX_HOME"] = os.path.join(call.home, "codex")
    if _KEY in call.environment and _ENDPOINT not in call.environment:
        variables["CODEX_API_KEY"] = call.environment[_KEY]
    return variables


def read(output: bytes, errors: bytes) -> Report:
    """Parse the report. `turn.completed` is success, `turn.failed` and `error` are failures.

    Failed commands are neither.
    """
    reply, session, error = "", None, ""
    used: Any = None
    for event in answers.objects(output):
        kind = event.get("type")
        if kind == "thread.started":
            session = text(event.get("thread_id")) or None
        elif kind == "item.completed" and inside(event, "item", "type") == "agent_message":
            reply = text(inside(event, "item", "text"))
        elif kind == "turn.completed":
            used, error = event.get("usage"), ""
        elif kind == "turn.failed":
            error = text(inside(event, "error", "message")) or "the turn failed"
        elif kind == "error":
            error = text(event.get("message")) or "an error"
    ended = used is not None
    inner = inside(next(answers.objects(error.encode("utf-8", "replace")), None), "error", "message")
    error = answers.one_line(text(inner) or error or ("" if ended else answers.error_line(errors)))
    return Report(
        reply=reply,
        session=session,
        usage=answers.usage(used),
        ended=ended,
        error=error,
        failure=failure_words.of_words(error) if error else None,
    )


def _lines(event: Mapping[str, Any]) -> Iterator[str]:
    kind, item = event.get("type"), event.get("item")
    if kind == "item.completed" and isinstance(item, dict):
        if item.get("type") == "agent_message":
            yield f"says: {text(item.get('text'))}"
        elif item.get("type") == "command_execution":
            yield f"run {text(item.get('command'))}: exit {item.get('exit_code')}"
        elif item.get("type") == "file_change":
            yield from (f"{inside(c, 'kind')} {text(inside(c, 'path'))}" for c in item.get("changes") or ())
        elif item.get("type") != "reasoning":
            yield f"{item.get('type')} {text(item.get('message') or item.get('tool') or item.get('query'))}".strip()
    elif kind == "turn.completed":
        used = answers.usage(event.get("usage"))
        yield f"{answers.total(used.tokens_in, used.tokens_out)} tokens so far"
    elif kind in ("turn.failed", "error"):
        yield f"failed: {text(inside(event, 'error', 'message')) or text(event.get('message'))}"


PRESET = Preset(
    argv=("codex",),
    folders=("codex",),
    arguments=_arguments,
    read=read,
    lines=_lines,
    final=frozenset({"turn.completed", "turn.failed"}),
    status=("login", "status"),
    state=(".codex",),
    variables=_variables,
    places=("CODEX_HOME",),
    in_sandbox=_in_sandbox,
)
