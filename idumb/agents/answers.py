"""Parses what agents answer: reports in JSON lines, verdicts, findings and amounts, and the state file of a program.

A program may write its state to the file named by `IDUMB_STATE_FILE`, which is read at the end and watched meanwhile:

    {"state": "context-exhausted", "handover": "...", "message": "...", "model": "...",
     "usage": {"tokens_in": 1200, "tokens_out": 300, "cost_usd": 0.02}}

Every value in it is a claim. Every key is optional. Invalid values are ignored. `state` may change while the program
works.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from idumb.app.ports import Hear
from idumb.domain import agent, canonical_json, failures, outcome, replies, wording
from idumb.domain.agent import FAILURES, STATES, VALIDATOR, WAITS, AgentRequest, Claim, Usage
from idumb.domain.runs import spending
from idumb.system import named_files

_TEXT, _LINE = replies.TEXT, replies.INTEGER
_PLACE = replies.object_of(criterion=_TEXT, file=_TEXT, line=_LINE)
_OUTPUT = replies.object_of(criterion=_TEXT, command=_TEXT, output=_TEXT)
_FINDING = replies.object_of(file=_TEXT, line=_LINE, message=_TEXT)
VERDICT: Mapping[str, Any] = replies.object_of(
    verdict=replies.VERDICT,
    evidence=replies.list_of({"anyOf": [_PLACE, _OUTPUT]}),
    findings=replies.list_of(_FINDING),
)
"""The JSON Schema of a verdict. An answer without `evidence` is valid but proves nothing."""

_LONGEST_LINE = 500
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ERROR = re.compile(r"(\w*error|fatal)\b", re.IGNORECASE)
STATE_BYTES = 256 * 1024


def schema_of(request: AgentRequest) -> Mapping[str, Any] | None:
    """Return the JSON Schema of a reply; None for plain text."""
    return VERDICT if request.schema is None and request.role == VALIDATOR else request.schema


class Ending(NamedTuple):
    """How an agent's work ended: an outcome (`idumb.domain.outcome`), a message for the user, and a kind of failure."""

    outcome: str
    message: str = ""
    failure: str | None = None


def failed(message: str, failure: str | None) -> Ending:
    """Return how work ended that something else than the work failed, if `failure` is known.

    Without a cause that another attempt would meet again, it is an attempt like any other, and so is one whose budget
    was spent: the next one goes on with its work.
    """
    errored = failures.kind(failure).stops and failure != agent.OVER_BUDGET
    return Ending(outcome.ERRORED if errored else outcome.FAILED, message, failure)


def ending(role: str, text: str) -> Ending:
    """Judge an agent that only answers in text. An empty answer is none."""
    if role == VALIDATOR:
        return judged(text)
    return Ending(outcome.COMPLETED) if text.strip() else Ending(outcome.FAILED, "the answer is empty", agent.MALFORMED)


def judged(text: str) -> Ending:
    """Judge a validator that only answers in text. An unclear verdict is none."""
    answer = replies.answer(text, "verdict")
    if isinstance(answer, str):
        return Ending(outcome.ERRORED, answer, agent.MALFORMED)
    verdict = answer["verdict"]
    if not isinstance(verdict, str) or verdict not in replies.VERDICTS:
        words = f"its verdict is not one of {', '.join(replies.VERDICTS)}"
        return Ending(outcome.ERRORED, words, agent.MALFORMED)
    findings = answer.get("findings") or []
    reasons = "; ".join(finding(f) for f in (findings if isinstance(findings, list) else [findings]))
    if verdict == outcome.PASS:
        return Ending(outcome.COMPLETED, reasons)
    return Ending(outcome.FAILED, f"{verdict}: {reasons}" if reasons else verdict)


def finding(value: Any) -> str:
    """Return a finding as text: a string itself, or the place and message of an object."""
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else json.dumps(value)
    place = ":".join(str(value[k]) for k in ("file", "line") if value.get(k))
    words = str(value.get("message") or value.get("text") or json.dumps(value, sort_keys=True))
    return f"{place}: {words}" if place else words


def count(value: Any) -> int | None:
    """Return a whole number of tokens or the like, from 0 to 10**12."""
    return value if type(value) is int and spending.is_amount(value) else None


def amount(value: Any) -> float | None:
    """Return an amount of money or the like, from 0 to 10**12."""
    return float(value) if spending.is_amount(value) else None


def total(*values: int | None) -> int | None:
    """Return the sum of the known values; None if none is known."""
    amounts = [value for value in values if value is not None]
    return sum(amounts) if amounts else None


_OF_CACHE = ("cachedReadTokens", "cachedWriteTokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def usage(used: Any, cost: Any = None) -> Usage:
    """Return the usage that an agent reports, with a cost in US dollars; impossible amounts are unknown.

    Tokens read from and written to a cache are reported separately from other input.
    """
    fields = used if isinstance(used, Mapping) else {}

    def number(*names: str) -> int | None:
        return count(next((fields[name] for name in names if name in fields), None))

    tokens_in = total(number("inputTokens", "input_tokens"), *map(number, _OF_CACHE))
    return Usage(tokens_in, number("outputTokens", "output_tokens"), amount(cost))


class Report(Struct, frozen=True):
    """An agent's report of its work. Nothing in it is proof.

    `ended` is true if the final report is present. `error` is the reported error, `failure` its kind
    (`idumb.domain.agent.FAILURES`). `denied` lists tool calls that the agent's own permissions denied. `handover` is
    for the next attempt.
    """

    reply: str = ""
    session: str | None = None
    usage: Usage = Usage()
    model: str | None = None
    ended: bool = False
    error: str = ""
    failure: str | None = None
    denied: tuple[str, ...] = ()
    handover: str = ""


def objects(data: bytes) -> Iterator[dict[str, Any]]:
    """Return the JSON objects that fill a line of their own, in order; other output is skipped."""
    for line in data.splitlines():
        if line.lstrip().startswith(b"{"):
            try:
                value = canonical_json.decode(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def inside(value: Any, *keys: str) -> Any:
    """Return the value behind several keys, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def one_line(words: str, longest: int = _LONGEST_LINE) -> str:
    short = wording.one_line(words)
    return short if len(short) <= longest else short[: longest - 3] + "..."


def error_line(errors: bytes) -> str:
    """Return the last line that begins as an error, else the last that is not empty."""
    lines = [one_line(line) for line in _COLOUR.sub("", errors.decode("utf-8", "replace")).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if _ERROR.match(line)), lines[-1] if lines else "")


def read_state_file(path: str, redact: Callable[[str], str]) -> Report:
    """Return what a program reports, without secrets; an empty report if the file is missing or invalid."""
    report = _read(path)
    return Report(
        failure=_one_of(FAILURES, report),
        error=redact(text(report.get("message"))),
        handover=redact(text(report.get("handover"))),
        model=redact(text(report.get("model"))) or None,
        usage=Usage(
            count(inside(report, "usage", "tokens_in")),
            count(inside(report, "usage", "tokens_out")),
            amount(inside(report, "usage", "cost_usd")),
        ),
    )


def _read(path: str) -> dict[str, Any]:
    return named_files.read_object(path, STATE_BYTES, links=False)


def claim(path: str) -> Claim | None:
    """Return what a state file claims, secrets included; None if it is missing, empty or only partly written."""
    report = _read(path)
    state = _one_of(STATES, report)
    return None if state is None else Claim(state, text(report.get("message")))


def _one_of(states: Collection[str], report: Mapping[str, Any]) -> str | None:
    state = report.get("state")
    return state if isinstance(state, str) and state in states else None


PROMPTLY = 20
"""The number of claims passed on without delay."""


class StateFileWatch:
    """A `Watch` on the state file of one request. `hear` receives claims without secrets; None if nobody listens.

    The more claims a program makes, the less often one is passed on; it is always the newest.
    """

    def __init__(
        self, path: str, redact: Callable[[str], str], hear: Hear | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._redact = redact
        self._hear = hear
        self._clock = clock
        self._claim: Claim | None = None
        self._passed: Claim | None = None
        self._count = 0
        self._due = clock()

    @property
    def waits(self) -> bool:
        return self._claim is not None and self._claim.state == WAITS

    def look(self) -> bool:
        before, self._claim = self._claim, claim(self._path)
        self._pass_on()
        return self._claim not in (None, before)

    def _pass_on(self) -> None:
        now, claim = self._clock(), self._claim
        if self._hear is None or claim in (None, self._passed) or now < self._due:
            return
        self._passed = claim
        self._count += 1
        self._due = now + pause(self._count)
        self._hear(replace(claim, message=self._redact(claim.message)))


def pause(count: int) -> float:
    """Return the seconds to wait after so many claims, so that a day yields about forty."""
    return 0.0 if count < PROMPTLY else 2.0 ** (count - PROMPTLY)
