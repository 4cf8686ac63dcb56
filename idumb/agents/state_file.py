"""The report that a program writes to the file named by `IDUMB_STATE_FILE`, read at the end and watched meanwhile.

    {"state": "context-exhausted", "handover": "...", "message": "...", "model": "...",
     "usage": {"tokens_in": 1200, "tokens_out": 300, "cost_usd": 0.02}}

Every value in it is a claim. Every key is optional. Invalid values are ignored. `state` may change while the program
works.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from idumb.agents import answers
from idumb.app.ports.agents import Hear
from idumb.domain import canonical_json
from idumb.domain.agent import FAILURES, STATES, WAITS, Claim, Usage
from idumb.lazy_dataclass import dataclass
from idumb.system import named_files

MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class SelfReport:
    """`failure` is one of `idumb.domain.agent.FAILURES`, or None if the program reports no failure."""

    failure: str | None = None
    message: str = ""
    handover: str = ""
    model: str | None = None
    usage: Usage = Usage()


def read(path: str, redact: Callable[[str], str]) -> SelfReport:
    """Return the report without secrets; an empty one if the file is missing or invalid."""
    report = _object(_content(path))
    used = report.get("usage")
    usage = used if isinstance(used, dict) else {}
    return SelfReport(
        failure=_one_of(FAILURES, report),
        message=redact(answers.text(report.get("message"))),
        handover=redact(answers.text(report.get("handover"))),
        model=redact(answers.text(report.get("model"))) or None,
        usage=Usage(
            answers.count(usage.get("tokens_in")),
            answers.count(usage.get("tokens_out")),
            answers.amount(usage.get("cost_usd")),
        ),
    )


def _content(path: str) -> bytes:
    """Return what is in the file; nothing if it is missing, too large, a link or no regular file."""
    try:
        data = named_files.read(path, MAX_BYTES + 1, links=False)
    except OSError:
        return b""
    return data if len(data) <= MAX_BYTES else b""


def claim(data: bytes) -> Claim | None:
    """Return the file's content, secrets included; None if it is missing, empty or only partly written."""
    report = _object(data)
    state = _one_of(STATES, report)
    return None if state is None else Claim(state, answers.text(report.get("message")))


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = canonical_json.decode(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


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
        self,
        path: str,
        redact: Callable[[str], str],
        hear: Hear | None,
        clock: Callable[[], float] = time.monotonic,
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
        before, self._claim = self._claim, claim(_content(self._path))
        self._pass_on()
        return self._claim not in (None, before)

    def _pass_on(self) -> None:
        now, claim = self._clock(), self._claim
        if self._hear is None or claim in (None, self._passed) or now < self._due:
            return
        self._passed = claim
        self._count += 1
        self._due = now + pause(self._count)
        self._hear(dataclasses.replace(claim, message=self._redact(claim.message)))


def pause(count: int) -> float:
    """Return the seconds to wait after so many claims, so that a day yields about forty."""
    return 0.0 if count < PROMPTLY else 2.0 ** (count - PROMPTLY)
