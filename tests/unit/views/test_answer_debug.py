"""The environment of attempts that `debug` prints."""

from __future__ import annotations

from typing import Any

from idumb.views.answers import debug
from tests.support.cases import every

RAN = "  attempts 1 and 2 had a different adapter"
OPEN = "  unknown whether attempts 1 and 2 had the same model"


@every(
    "parts, unknown, lines", [(["adapter"], ["model"], [RAN, OPEN]), ([], ["model"], [OPEN]), (["adapter"], [], [RAN])]
)
def test_an_unknown_part_is_not_reported_as_different(parts: list[str], unknown: list[str], lines: list[str]) -> None:
    """R-ADAPT-6."""
    task = {
        "id": "T1-01",
        "title": "Make it",
        "status": "failed",
        "class": None,
        "failure": None,
        "cause": None,
        "reason": "",
        "attempts": [],
        "changes": [],
        "envelope": [{"attempts": [1, 2], "parts": parts, "unknown": unknown}],
    }
    data: dict[str, Any] = {
        "phase": "1",
        "run": "r1",
        "state": "failed",
        "reason": "",
        "task": task,
        "since": {"checkpoint": "start", "commit": None, "head": None, "files": [], "more": 0, "diff": ""},
        "checklist": [],
        "diagnosis": None,
        "amendment": None,
        "next": [],
    }
    assert [line for line in debug.debug(data).split("\n") if " attempts 1 and 2 " in line] == lines
