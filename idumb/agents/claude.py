"""Claude Code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.agents import answers, failure_words, known_agent
from idumb.agents.answers import Report, inside, text
from idumb.agents.known_agent import Call, Preset


def _arguments(call: Call) -> tuple[str, ...]:
    arguments = ["--print", "--output-format", "stream-json", "--verbose"]
    arguments += ["--permission-mode", "acceptEdits" if call.writes else "default"]
    # Unless denied, some commands run without asking: `cat`, and with edits accepted `touch`, `rm` and `mkdir`.
    arguments += ["--allowedTools" if call.shell else "--disallowedTools", "Bash"]
    if not call.project:
        arguments += ["--setting-sources", "user", "--strict-mcp-config"]
    if call.schema:
        arguments += ["--json-schema", call.schema]
    return (*arguments, *known_agent.model(call))


def read(output: bytes, errors: bytes) -> Report:
    """Return the last `result`. Only `is_error` counts, because `subtype` is `success` even after a total failure."""
    result: dict[str, Any] = {}
    said, model, session, code, trouble = "", "", "", None, ""
    for event in answers.objects(output):
        session = text(event.get("session_id")) or session
        match event.get("type"), event.get("subtype"):
            case "result", _:
                result = event
            case "system", "init":
                model = text(event.get("model"))
            case "system", "api_retry":
                code, trouble = event.get("error"), _retried(event)
            case "rate_limit_event", _ if inside(event, "rate_limit_info", "status") == "rejected":
                code, trouble = "rate_limit", "its provider rejects requests, because its usage limit is reached"
            case "assistant", _:
                parts = inside(event, "message", "content")
                spoken = parts if isinstance(parts, list) else []
                words = "\n".join(text(inside(p, "text")) for p in spoken if inside(p, "type") == "text")
                # Only a message with an error is about the agent itself; any other is about the work.
                code = event.get("error")
                said, trouble = (said, words) if code else (words or said, "")
    words = text(result.get("result")) or text(inside(result, "error", "message"))
    structured, used = result.get("structured_output"), result.get("modelUsage")
    wrong = result.get("is_error") is True or not result or text(result.get("subtype")).startswith("error")
    error = _error(result, words or trouble, errors) if wrong else ""
    reported = {"code": result.get("subtype"), "type": code, "status": result.get("api_error_status"), "message": error}
    return Report(
        reply=words or said if structured is None else json.dumps(structured),
        session=session or None,
        usage=answers.usage(result.get("usage"), result.get("total_cost_usd")),
        model=next(iter(used), None) if isinstance(used, dict) and used else model or None,
        ended=bool(result),
        error=error,
        failure=failure_words.of_error(reported) if wrong else None,
        denied=tuple(
            _call(inside(entry, "tool_name"), inside(entry, "tool_input"))
            for entry in result.get("permission_denials") or ()
        ),
    )


def _retried(event: Mapping[str, Any]) -> str:
    return f"the server answered {event.get('error_status')}: {text(event.get('error'))}"


def _lines(event: Mapping[str, Any]) -> Iterator[str]:
    kind, subtype = event.get("type"), text(event.get("subtype"))
    if kind == "system" and subtype == "init":
        yield f"model {text(event.get('model'))}"
    elif kind == "system" and subtype == "api_retry":
        yield _retried(event)
    elif kind in ("assistant", "user"):
        for part in inside(event, "message", "content") or ():
            yield from _part(part)
        used = answers.usage(inside(event, "message", "usage"))
        if used.tokens_out is not None:
            yield f"{answers.total(used.tokens_in, used.tokens_out)} tokens so far"
    elif kind == "result":
        yield f"ended: {subtype}"


def _part(part: Any) -> Iterator[str]:
    """Yield what one part of a message does: text, a call, or a call that failed."""
    if inside(part, "type") == "text":
        yield f"says: {text(inside(part, 'text'))}"
    elif inside(part, "type") == "tool_use":
        yield _call(inside(part, "name"), inside(part, "input"))
    elif inside(part, "is_error") is True:
        yield f"failed: {inside(part, 'content')}"


def _error(result: dict[str, Any], words: str, errors: bytes) -> str:
    listed, subtype = result.get("errors"), text(result.get("subtype"))
    said = words or ("; ".join(map(str, listed)) if isinstance(listed, list) else "")
    return answers.one_line(said or subtype.removeprefix("success") or answers.error_line(errors))


def _call(name: Any, arguments: Any) -> str:
    about = next((text(inside(arguments, k)) for k in ("file_path", "command", "path") if inside(arguments, k)), "")
    return answers.one_line(f"{text(name)} {about}".strip(), 200)


PRESET = Preset(
    argv=("claude",),
    arguments=_arguments,
    read=read,
    lines=_lines,
    final=frozenset({"result"}),
    status=("auth", "status"),
    state=(".claude", ".claude.json", ".cache/claude"),
    # Claude Code would retry silently for minutes; idumb counts attempts, so idumb decides about retries.
    variables=lambda _: {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "DISABLE_AUTOUPDATER": "1",
    },
    places=("CLAUDE_CONFIG_DIR",),
)
