"""Usage reported by agents: impossible amounts are unknown in every adapter (R-ADAPT-3)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from idumb.agents import answers
from idumb.domain.agent import Usage
from idumb.domain.runs import spending
from tests.adapters.agents import test_recorded as recorded
from tests.support.cases import every

HUGE = 10**4200
NONSENSE = [-1, HUGE, 10**13, math.nan, math.inf, True, "12", None, [1]]


@every("value", NONSENSE)
def test_an_impossible_amount_is_unknown(value: Any) -> None:
    assert answers.count(value) is None
    assert answers.amount(value) is None
    assert spending.plausible(Usage(value, value, value)) == Usage()


def test_a_fraction_of_a_token_is_not_a_count() -> None:
    assert (answers.count(1.5), answers.count(3), answers.amount(2)) == (None, 3, 2.0)
    assert answers.total(None, 2, 3) == 5
    assert answers.total(None) is None


def _swollen(content: Any, key: str = "") -> Any:
    """The same, with every number of tokens and money as large as JSON may have it."""
    if isinstance(content, dict):
        return {name: _swollen(value, f"{key} {name}".lower()) for name, value in content.items()}
    if isinstance(content, list):
        return [_swollen(value, key) for value in content]
    is_amount = type(content) in {int, float} and any(word in key for word in ("token", "cost", "usage", "stats"))
    return HUGE if is_amount else content


@every("place", recorded.recordings("success"))
def test_no_agent_report_yields_an_impossible_amount(place: Path, tmp_path: Path) -> None:
    lines = []
    for line in place.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.dumps(_swollen(json.loads(line))))
        except ValueError:
            lines.append(line)
    copy = tmp_path / place.parts[-3] / place.parts[-2] / place.name
    copy.parent.mkdir(parents=True)
    copy.write_text("\n".join(lines), encoding="utf-8")
    copy.with_suffix(".err").write_bytes(b"")
    report = recorded.read(copy)
    assert report.usage == Usage()
    assert report.reply == "The greeting is written."


def test_no_program_report_yields_an_impossible_amount(tmp_path: Path) -> None:
    place = tmp_path / "state.json"
    used = {"tokens_in": HUGE, "tokens_out": -3, "cost_usd": 1e300}
    place.write_text(json.dumps({"usage": used, "message": "kept"}), encoding="utf-8")
    report = answers.read_state_file(str(place), str)
    assert (report.usage, report.error) == (Usage(), "kept")
