"""Watches the state file of a running program and passes on each new claim.

A chatty program is read less and less often; the claim passed on is always the newest.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from idumb.agents import self_report
from idumb.app.ports.agents import Hear
from idumb.domain.agent import WAITS, Claim
from idumb.system.processes.file_watch import WatchedFile

PROMPTLY = 20
"""The number of claims that are passed on without delay."""


class Listening:
    """A `Watch` on the state file of one request. `hear` receives claims without secrets; None if nobody listens."""

    def __init__(
        self,
        path: str,
        redact: Callable[[str], str],
        hear: Hear | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = WatchedFile(path, self_report.MAX_BYTES)
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
        data = self._file.news()
        before = self._claim
        if data is not None:
            self._claim = self_report.claim(data)
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
