"""Processor seconds of each test: what it uses itself, and what it starts and waits for.

The warm server reports what its commands used. Only work that belongs to no test is missing: imports, collection, and
programs that outlive the command that started them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support import warm

OUTPUT = "TESTS_PROCESSOR_TIME"
"""The variable that names a file for the figures, as JSON: `{test: seconds}`."""


class ProcessorTime:
    """Registered in each process of a test run; the process that prints collects what the others measured."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = used()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = round(used() - before, 4)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._seconds.update(getattr(node, "workeroutput", {}).get(OUTPUT, {}))

    def pytest_sessionfinish(self) -> None:
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[OUTPUT] = self._seconds
        elif place := os.environ.get(OUTPUT):
            Path(place).write_text(json.dumps(self._seconds, indent=0), encoding="utf-8")


def used() -> float:
    """Processor seconds of this process, of the children it waited for, and of the commands of its warm server."""
    return sum(os.times()[:4]) + warm.seconds_used()
