"""The answers of a scripted model: rules that match the prompt, each with its answers in order.

Only the content of a conversation decides: the same request gets the same answer, unless a rule with `times` is used
up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

WRITE = "write"
EDIT = "edit"
READ = "read"
RUN = "run"
TOOL = "tool"
ACTIONS: Mapping[str, tuple[str, ...]] = {
    WRITE: ("path", "content"),
    EDIT: ("path", "old", "new"),
    READ: ("path",),
    RUN: ("command",),
    TOOL: ("name", "arguments"),
}
"""The actions that a model can request, with the values that each needs."""

RATE_LIMITED = "rate-limited"
OVERLOADED = "overloaded"
SERVER_ERROR = "server-error"
UNAUTHORIZED = "unauthorized"
UNKNOWN_MODEL = "unknown-model"
CONTEXT = "context"
CLOSED = "closed"
TRUNCATED = "truncated"
GARBAGE = "garbage"
DRIP = "drip"
SILENT = "silent"
REFUSED = "refused"
FAULTS = (
    RATE_LIMITED, OVERLOADED, SERVER_ERROR, UNAUTHORIZED, UNKNOWN_MODEL, CONTEXT, CLOSED, TRUNCATED, GARBAGE, DRIP,
    SILENT, REFUSED,
)  # fmt: skip
"""Faults instead of an answer, or with it."""

LONGEST_SECONDS = 600.0
"""The longest duration of a slow or silent answer."""


class Call(Struct, frozen=True):
    """One call of a client's tool; `values` are those that ACTIONS names."""

    action: str
    values: Mapping[str, Any]


class Answer(Struct, frozen=True):
    """One message of the model. `data` is a structured reply; `seconds` applies to `drip` and `silent`.

    `tokens_in` and `tokens_out` are the reported usage, None for an estimate.
    """

    say: str = ""
    calls: tuple[Call, ...] = ()
    data: Any = None
    fault: str | None = None
    seconds: float = 0.0
    tokens_in: int | None = None
    tokens_out: int | None = None


class Rule(Struct, frozen=True):
    """`when` lists texts that the prompt must contain; an empty list matches every prompt.

    `times` is how many requests the rule answers, None for all. `tools` is whether the request must offer tools, None
    for either.
    """

    title: str
    answers: tuple[Answer, ...]
    when: tuple[str, ...] = ()
    times: int | None = None
    tools: bool | None = None


class ModelRequest(Struct, frozen=True):
    """A request as rules see it. `answered` is the number of answers already given to this prompt."""

    prompt: str
    answered: int = 0
    tools: bool = False


class Script(Struct, frozen=True):
    rules: tuple[Rule, ...] = ()


class ChosenAnswer(Struct, frozen=True):
    """`rule` is the index of the rule, None if none matches; `number` is the index of its answer."""

    rule: int | None
    number: int
    answer: Answer


UNSCRIPTED = Answer("Nothing is scripted for this prompt.")
OVER = Answer("There is nothing more to do.")


def choose(script: Script, request: ModelRequest, used: Mapping[int, int]) -> ChosenAnswer:
    """Return the answer to a request. The first matching rule that is not used up decides."""
    for index, rule in enumerate(script.rules):
        fits = rule.tools in {None, request.tools} and all(text in request.prompt for text in rule.when)
        if fits and (rule.times is None or used.get(index, 0) < rule.times):
            answer = rule.answers[request.answered] if request.answered < len(rule.answers) else OVER
            return ChosenAnswer(index, request.answered, answer)
    return ChosenAnswer(None, request.answered, UNSCRIPTED)
