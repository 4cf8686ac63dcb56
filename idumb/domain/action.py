"""A next step: one command, mostly of idumb. People paste its shell form; agents get the tool that does the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idumb.lazy_dataclass import dataclass

REASON = "REASON"
"""Stands for a text that a person fills in."""
_TOOLS = {
    ("show",): ("show_task", "task"),
    ("show", "--diff"): ("show_changes", "task"),
    ("start",): ("next_task", None),
    ("start", "--retry"): ("retry_task", "task"),
    ("submit",): ("submit_task", "task"),
    ("give-up", "--why"): ("give_up_task", "task"),
    ("verify-work",): ("verify_phase", None),
    ("next",): ("begin_session", "phase"),
}
"""The tool of a command with these options, and the name of its argument. All other commands are for a person."""
_READING = frozenset({("status",), ("decisions",), ("next",)})
"""Commands without arguments whose answer is part of the tool `status`."""


@dataclass(frozen=True, slots=True)
class Action:
    """`consequence` says why, or what follows; empty if the command says it."""

    verb: str
    arguments: tuple[str, ...] = ()
    consequence: str = ""
    program: str = "idumb"

    @classmethod
    def of(cls, verb: str, *arguments: str, consequence: str = "", program: str = "idumb") -> Action:
        return cls(verb, arguments, consequence, program)

    def __str__(self) -> str:
        """Return the shell form."""
        import shlex

        return shlex.join((self.program, self.verb, *self.arguments))

    @property
    def tool(self) -> dict[str, Any] | None:
        """Return the tool call for an agent, or None if only a person can do it."""
        if (self.verb, *self.arguments) in _READING:
            return {"name": "status", "arguments": {}}
        options = (word for word in self.arguments if word.startswith("--"))
        name, argument = _TOOLS.get((self.verb, *options), (None, None))
        if name is None:
            return None
        return {"name": name, "arguments": {} if argument is None else {argument: self.arguments[0]}}

    def row(self) -> dict[str, Any]:
        return {"command": str(self), "tool": self.tool}


def plain(value: Any) -> Any:
    """Return JSON-serialisable data, with each action in its shell form."""
    if isinstance(value, Action):
        return str(value)
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, Sequence) and not isinstance(value, str) else value
