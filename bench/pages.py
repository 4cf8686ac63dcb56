"""The page of a run with many tasks: the cost of making it, its size, and how fast a browser loads and filters it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bench import material, measure
from bench.measure import Effort, Figure
from bench.starting import CLICK, idumb
from tests.support import browser

_TASKS = 500
_PRESS = """
window.key = key => {
  const start = performance.now();
  dispatchEvent(new KeyboardEvent("keydown", {key}));
  document.body.offsetHeight;
  return performance.now() - start;
}
"""


def page(effort: Effort) -> Iterator[Figure]:
    place = material.project(f"{effort.folder}/page", 1000, _TASKS, material.editing, "task")
    place.idumb("execute-phase", "1", "--approve", place.approval(), "--no-verify")
    written = Path(effort.folder, "page.html")
    make = measure.program((*idumb(), "report", "1", "--html", str(written)), place.root, place.env)
    times = measure.turns({"page": make, "click": measure.program(CLICK, place.root, place.env)}, effort.rounds)
    label = f"the page of {_TASKS} tasks"
    yield Figure(41, label, "click hello", measure.ratio(times, "page", "click"), None, effort.rounds)
    yield Figure(41, f"{label}: its size", "", os.path.getsize(written) / 1e6, 6, 0, "MB")
    if browser.PROGRAM is None:
        yield Figure(41, f"{label} in a browser", "", None, 1500, 0, "ms", "Chromium is not installed")
        return
    with browser.started(Path(effort.folder, "profile")) as chromium:
        chromium.open(written)
        loaded = chromium.value("performance.getEntriesByType('navigation')[0].loadEventEnd")
        yield Figure(41, f"{label}: loaded in a browser", "", loaded, 1500, 1, "ms")
        chromium.value(_PRESS)
        slowest = max(chromium.value(f"key('{key}')") for key in ("f", "u", "a", "d", "r", "Escape"))
        yield Figure(41, f"{label}: the slowest filter key", "", slowest, 100, 6, "ms")
