"""What a person can do next: a command, or a choice that answers a question.

People paste the shell form of a command, mostly of idumb; agents get the tool that does the same. A decision is a
question to a person with evidence, choices, and the consequence of each choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import asdict

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


class Action(Struct, frozen=True):
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


WORK, JUDGEMENT, UNDECLARED, CONFLICT, STOPPED, EFFECT = "work", "judge", "undeclared", "conflict", "stopped", "effect"
SECRET, LIMIT, HISTORY, PHASE, CONSENT, PLAN = "secret", "limit", "history", "phase", "consent", "plan"
KINDS = {WORK, JUDGEMENT, UNDECLARED, CONFLICT, STOPPED, EFFECT, SECRET, LIMIT, HISTORY, PHASE, CONSENT, PLAN}
"""What recorded questions are about. `app/core/questions.py` has the table of those of runs."""

JUDGE, REFUSE, RESET, SKIP, FAIL = "judge", "refuse", "reset", "skip", "fail"
START, FINISH, WAIT = "start", "finish", "wait"
"""What follows a choice for the task: its attempt continues, with a yes or a no; it is tried again; it ends; an attempt
begins, or is delivered; nothing happens yet."""


class Choice(Struct, frozen=True):
    """`move` is what follows for the task; "" if the use case that asks decides.

    `command` is what a user without a terminal types to choose it; None if there is none. One of another program, or
    several, are a text. `remember` is the command that sets what makes the choice permanent; "" if nothing does.
    """

    id: str
    text: str
    consequence: str
    command: Action | str | None = None
    move: str = ""
    remember: str = ""

    def row(self) -> dict[str, Any]:
        row = {"id": self.id, "text": self.text, "consequence": self.consequence, "command": self.command}
        return row | {name: given for name in ("move", "remember") if (given := getattr(self, name))}


class Decision(Struct, frozen=True):
    """`kind` is one of KINDS, or approval, undo, halt, ... of a confirmation, which nothing records.

    `until` is the time, in UTC, after which the answer is no; None if the question waits without end. `subject` is what
    the question is about, within its kind: of a judgement, the evidence that the answer is.
    """

    id: str
    kind: str
    what: str
    why: str
    evidence: tuple[str, ...]
    choices: tuple[Choice, ...]
    task: str | None = None
    until: str | None = None
    subject: str = ""

    @classmethod
    def recorded(cls, row: Mapping[str, Any]) -> Decision:
        """Return the decision that an event recorded; it may have more fields."""
        return convert(row, cls)

    def row(self) -> dict[str, Any]:
        """Return the decision for `recorded`."""
        row = {**asdict(self), "choices": [plain(choice.row()) for choice in self.choices]}
        return {name: value for name, value in row.items() if name != "until" or value}

    @classmethod
    def confirmation(
        cls, id: str, kind: str, what: str, why: str, evidence: Iterable[str], yes: Choice, no: str, otherwise: str,
        *, task: str | None = None,
    ) -> Decision:  # fmt: skip
        """Return a question with one choice, and `no`. `otherwise` is what happens without that choice."""
        return cls(id, kind, what, why, tuple(evidence), (yes, Choice("no", no, otherwise)), task)

    def agreed(self, answer: Answer | None) -> bool:
        """Return whether the answer to a confirmation is its choice."""
        return answer is not None and answer.choice == self.choices[0].id

    def choice(self, choice_id: str) -> Choice | None:
        return next((c for c in self.choices if c.id == choice_id), None)


def seconds_until(end: str, now: str) -> float:
    """Return the seconds from one UTC time to another; 0 if it is over."""
    from datetime import datetime  # most commands ask nothing

    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(now)).total_seconds())


def end_of(now: str, seconds: float) -> str:
    """Return the UTC time some seconds later."""
    from datetime import datetime, timedelta

    return f"{(datetime.fromisoformat(now) + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()}Z"


class Answer(Struct, frozen=True):
    decision: str
    choice: str
    by: str
    guidance: str = ""
