"""Processor seconds of each test: what it uses itself, and what it starts and waits for.

The warm server reports what its commands used. Only work that belongs to no test is missing: imports, collection, and
programs that outlive the command that started them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support import warm

OUTPUT = "TESTS_PROCESSOR_TIME"
"""The variable that names a file for the figures, as JSON: `{"tests": {test: seconds}, "reference": [seconds]}`."""

_EVERY = 50
"""After so many tests, a process measures how fast the processor is while the others work."""


class ProcessorTime:
    """Registered in each process of a test run; the process that prints collects what the others measured."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: dict[str, float] = {}
        self._reference: list[float] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = used()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = round(used() - before, 4)
            if len(self._seconds) % _EVERY == 1:
                self._reference.append(reference())

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        figures = getattr(node, "workeroutput", {}).get(OUTPUT, {"tests": {}, "reference": []})
        self._seconds.update(figures["tests"])
        self._reference += figures["reference"]

    def pytest_sessionfinish(self) -> None:
        output = getattr(self._config, "workeroutput", None)
        figures = {"tests": self._seconds, "reference": self._reference}
        if output is not None:
            output[OUTPUT] = figures
        elif place := os.environ.get(OUTPUT):
            Path(place).write_text(json.dumps(figures, indent=0), encoding="utf-8")


def reference() -> float:
    """Return the processor seconds of a piece of work that never changes."""
    begun, kept = time.process_time(), {}
    for number in range(60_000):
        kept[number % 1000] = str(number)
    return round(time.process_time() - begun, 5)


def used() -> float:
    """Processor seconds of this process, of the children it waited for, and of the commands of its warm server."""
    return sum(os.times()[:4]) + warm.seconds_used()
