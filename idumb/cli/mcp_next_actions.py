"""Which tool of `idumb mcp` does what a command does. What no tool does is for the person to run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Way = dict[str, Any]

_TASK = r"(?P<task>[A-Za-z0-9.]+-[A-Za-z0-9]+)"
_PHASE = r"(?P<phase>[^ ;]+)"
_TOOLS = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (rf"idumb show {_TASK}", "show_task"),
        (rf"idumb diff {_TASK}", "show_changes"),
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
    """The tool and the arguments that are known; None where a person runs the command, or does what no command does."""
    for pattern, name in _TOOLS:
        found = pattern.fullmatch(command or "")
        if found is not None:
            given = {} if name in _WITHOUT_ARGUMENTS else {k: v for k, v in found.groupdict().items() if v}
            return {"name": name, "arguments": given}
    return None


def way(name: str, **arguments: str) -> Way:
    """A way on that is a tool and no command."""
    return {"command": None, "tool": {"name": name, "arguments": arguments}}


def by_command(command: str) -> Way:
    """A choice of a refusal of the tools' own: what a command does, by its tool or by a person."""
    found = tool_of(command)
    text = "a person runs the command" if found is None else f"call {found['name']}"
    return {"id": command, "text": text, "consequence": f"what {command} does", "command": command}


def by_tool(name: str, text: str, consequence: str, **arguments: str) -> Way:
    """The same of what only a tool does."""
    return {"id": name, "text": text, "consequence": consequence, **way(name, **arguments)}


def submits(command: str) -> bool:
    """Whether the command hands in work that is done already."""
    return command.startswith("idumb submit ")


def marked(answer: Way) -> Way:
    """The answer with its `ways`, after those that it has: each command that it names, and the tool that does the same.

    Choices in `error.details` name their tool too.
    """
    error, data = answer["error"] or {}, answer["data"]
    choices = [{"tool": tool_of(one.get("command")), **one} for one in error.get("details", {}).get("choices", ())]
    named = (one.get("command") for one in (*choices, *data.get("choices", ())))
    commands = dict.fromkeys([*_next(data), *_hint(error), *filter(None, named), *_answers(data)])
    own = [{"command": None, "tool": one["tool"]} for one in choices if one["tool"] and one["command"] is None]
    ways = [*answer.get("ways", ()), *own, *({"command": one, "tool": tool_of(one)} for one in commands)]
    if not error:
        return {**answer, "ways": ways}
    return {**answer, "ways": ways, "error": {**error, "details": {**error["details"], "choices": choices}}}


def _next(data: Way) -> Iterator[str]:
    """The commands of `data.next`, which are several or, of all phases, one."""
    found = data.get("next") or ()
    yield from filter(None, [found["command"]] if isinstance(found, dict) else found)


def _answers(data: Way) -> Iterator[str]:
    """The command of each choice of each question that waits."""
    for question in data.get("decisions", ()):
        yield from (one["command"] or f"idumb decide {question['id']} {one['id']}" for one in question["choices"])


def _hint(error: Way) -> Iterator[str]:
    """The hint of an error, where it is a command that a tool does; else it may be a sentence."""
    hint = error.get("hint")
    if tool_of(hint) is not None:
        yield str(hint)
