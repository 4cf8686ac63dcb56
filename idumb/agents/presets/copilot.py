"""GitHub Copilot CLI."""

from __future__ import annotations

from typing import Any

from idumb.agents import answers, failure_words
from idumb.agents.answers import Report, inside, text
from idumb.agents.presets.preset import Invocation, Preset
from idumb.domain.agent import Usage

_ENDPOINT = "COPILOT_PROVIDER_BASE_URL"


def _arguments(call: Invocation) -> tuple[str, ...]:
    arguments = ["--output-format", "json", "--disable-builtin-mcps", "--no-auto-update", "--no-color"]
    arguments += ["--log-level", "none"]
    if call.writes:
        arguments += ["--allow-tool", "write"]
    if call.shell:
        arguments += ["--allow-tool", "shell"]
    if call.session is not None:
        arguments += [f"--resume={call.session}"]
    if call.model is not None and _ENDPOINT not in call.environment:
        arguments += ["--model", call.model]
    return tuple(arguments)


def _variables(call: Invocation) -> dict[str, str]:
    own_server = _ENDPOINT in call.environment
    return {"COPILOT_MODEL": call.model, "COPILOT_OFFLINE": "true"} if own_server and call.model else {}


def read(output: bytes, errors: bytes) -> Report:
    """Return the assistant's last message and the `result`, which holds the exit code."""
    reply, error, failed, model = "", "", "", None
    result: dict[str, Any] = {}
    tokens_in: list[int | None] = []
    tokens_out: list[int | None] = []
    denied: list[str] = []
    for event in answers.objects(output):
        kind, data = event.get("type"), event.get("data")
        if kind == "assistant.message":
            reply = text(inside(data, "content")) or reply
            tokens_out.append(answers.count(inside(data, "outputTokens")))
            model = text(inside(data, "model")) or model
        elif kind == "assistant.usage":
            tokens_in.append(answers.count(inside(data, "inputTokens")))
            model = text(inside(data, "model")) or model
        elif kind == "model.call_failure":
            failed = _failed(data)
        elif kind == "session.error":
            error = text(inside(data, "message")) or error
        elif kind == "tool.execution_complete" and inside(data, "error", "code") in {"denied", "rejected"}:
            denied.append(answers.one_line(text(inside(data, "error", "message")), 200))
        elif kind == "result":
            result = event
    wrong = result.get("exitCode") != 0
    error = answers.one_line(error or failed or answers.last_line(errors)) if wrong else ""
    return Report(
        reply=reply,
        session=text(result.get("sessionId")) or None,
        usage=Usage(answers.total(*tokens_in), answers.total(*tokens_out)),
        model=model,
        ended=bool(result),
        error=error,
        failure=failure_words.of_words(error) if error else None,
        denied=tuple(denied),
    )


def _failed(data: Any) -> str:
    """Return why a model call failed; the agent may still be retrying."""
    status = answers.count(inside(data, "statusCode"))
    words = text(inside(data, "errorMessage"))
    return f"the server answered {status}: {words}" if status is not None else words


PRESET = Preset(
    name="copilot",
    login="set GH_TOKEN and name it in the binding's environment, or log in and set `home: user`",
    arguments=_arguments,
    read=read,
    state=(".copilot", ".cache/copilot"),
    variables=_variables,
    places=("COPILOT_HOME",),
    shares={"COPILOT_PKG_CACHE_HOME": "copilot"},
    makes_folders=False,
)
