"""Maps commands to the tools of `idumb mcp` that do the same. Commands without a tool are for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from idumb import lazy_pattern

Way = dict[str, Any]

_TASK = r"(?P<task>[A-Za-z0-9.]+-[A-Za-z0-9]+)"
_PHASE = r"(?P<phase>[^ ;]+)"
_TOOLS = tuple(
    (lazy_pattern.compile(pattern), name)
    for pattern, name in (
        (rf"idumb show {_TASK}", "show_task"),
        (rf"idumb show {_TASK} --diff", "show_changes"),
        (rf"(git show [^;]+; )*idumb start {_TASK} --retry", "retry_task"),
        (rf"idumb start {_TASK}", "next_task"),
        (rf"idumb submit {_TASK}", "submit_task"),
        (rf"idumb give-up {_TASK} --why REASON", "give_up_task"),
        (rf"idumb verify-work {_PHASE}", "verify_phase"),
        (r"idumb (status|decisions|next)", "status"),
        (rf"idumb next {_PHASE}", "begin_session"),
    )
)
_WITHOUT_ARGUMENTS = frozenset({"next_task", "verify_phase", "status"})


def tool_of(command: str | None) -> Way | None:
    """Return the tool for a command, with its known arguments, or None if only a person can run it."""
    for pattern, name in _TOOLS:
        match = pattern.fullmatch(command or "")
        if match is not None:
            arguments = {} if name in _WITHOUT_ARGUMENTS else {k: v for k, v in match.groupdict().items() if v}
            return {"name": name, "arguments": arguments}
    return None


def way(name: str, **arguments: str) -> Way:
    """Return a next step that is a tool without a command."""
    return {"command": None, "tool": {"name": name, "arguments": arguments}}


def by_command(command: str) -> Way:
    """Return a choice of a refusal: run a command, through its tool or by a person."""
    tool = tool_of(command)
    text = "a person runs the command" if tool is None else f"call {tool['name']}"
    return {"id": command, "text": text, "consequence": f"what {command} does", "command": command}


def by_tool(name: str, text: str, consequence: str, **arguments: str) -> Way:
    """Return a choice of a refusal that only a tool can do."""
    return {"id": name, "text": text, "consequence": consequence, **way(name, **arguments)}


def submits(command: str) -> bool:
    """Return whether the command submits work."""
    return command.startswith("idumb submit ")


def marked(answer: Way) -> Way:
    """Return the answer with `ways`: every command that it names, each with the tool that does the same.

    Choices in `error.details` get their tool too.
    """
    error, data = answer["error"] or {}, answer["data"]
    choices = [
        {"tool": tool_of(error_choice.get("command")), **error_choice}
        for error_choice in error.get("details", {}).get("choices", ())
    ]
    chosen = (choice.get("command") for choice in (*choices, *data.get("choices", ())))
    commands = dict.fromkeys([*_next(data), *_hint(error), *filter(None, chosen), *_answers(data)])
    tools = [{"command": None, "tool": row["tool"]} for row in choices if row["tool"] and row["command"] is None]
    ways = [*answer.get("ways", ()), *tools, *({"command": name, "tool": tool_of(name)} for name in commands)]
    if not error:
        return {**answer, "ways": ways}
    return {**answer, "ways": ways, "error": {**error, "details": {**error["details"], "choices": choices}}}


def _next(data: Way) -> Iterator[str]:
    """Yield the commands of `data.next`: a list, or one object in the answer of `status`."""
    following = data.get("next") or ()
    yield from filter(None, [following["command"]] if isinstance(following, dict) else following)


def _answers(data: Way) -> Iterator[str]:
    """Yield the command of each choice of each open question."""
    for question in data.get("decisions", ()):
        yield from (
            choice["command"] or f"idumb decide {question['id']} {choice['id']}" for choice in question["choices"]
        )


def _hint(error: Way) -> Iterator[str]:
    """Yield the hint of an error if it is a command with a tool; other hints may be sentences."""
    hint = error.get("hint")
    if tool_of(hint) is not None:
        yield str(hint)
