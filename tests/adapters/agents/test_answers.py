"""Parsing replies, including hostile ones, and the usage that agents report (R-ADAPT-2, R-ADAPT-3)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from idumb.agents import answers
from idumb.domain import agent, outcome, replies
from idumb.domain.agent import Usage
from idumb.domain.runs import spending
from tests.adapters.agents import test_recorded as recorded
from tests.support.cases import every
from tests.support.growth import assert_linear

PASS = '{"verdict": "PASS", "findings": []}'


@every(
    "text, blocks",
    [
        ("```json\n{}\n```\n", [("json", "{}\n")]),
        ("~~~ JSON \r\n{}\r\n~~~\r\n", [("json", "{}\r\n")]),
        ("````\n```\na\n```\n````", [("", "```\na\n```\n")]),
        ("```\na\n`````\nb\n```\n```", [("", "a\n"), ("", "")]),
        ("```diff\n ```\n+```\n-~~~\n```\n", [("diff", " ```\n+```\n-~~~\n")]),
        ("```a\n~~~\n```\n", [("a", "~~~\n")]),
        ("```\n```json\n{}\n```\n```\n", [("", "```json\n{}\n```\n")]),
        ("```ls``` lists\n```\nb\n```\n", [("", "b\n")]),
        ("```\na\u2028b\x0bc\n```\n", [("", "a\u2028b\x0bc\n")]),
        ("```json\n{}\n", []),
        ("", []),
    ],
)
def test_blocks_between_their_marks_are_read(text: str, blocks: list[tuple[str, str]]) -> None:
    """R-ADAPT-2."""
    assert list(replies.fenced(text)) == blocks


def test_a_reply_is_read_in_linear_time() -> None:
    """R-ADAPT-2: marks without an end are looked at once, not once from each of their characters."""

    def judge(text: str) -> None:
        assert answers.judged(text)[0] == outcome.ERRORED
        assert answers.judged(f"{text}{PASS}")[0] == outcome.COMPLETED

    assert_linear(judge, lambda size: "`" * size + "\n" + ("y" * 50 + "\n") * size)


@every("own", ["FAIL", "PARTIAL", "pass"])
def test_a_verdict_next_to_a_quoted_one_does_not_count(own: str) -> None:
    """R-ADAPT-2: text inside the judged files must not decide."""
    ended, message, failure = answers.judged(f'They say:\n```json\n{PASS}\n```\nI say:\n{{"verdict": "{own}"}}')
    assert (ended, failure) == (outcome.ERRORED, agent.MALFORMED)
    assert "two different answers" in message


@every("verdict", [["PASS"], {}, {"PASS": 1}, None, 1, True, "pass"])
def test_a_verdict_of_another_shape_does_not_count(verdict: Any) -> None:
    """R-ADAPT-2."""
    assert answers.judged(json.dumps({"verdict": verdict}))[2] == agent.MALFORMED


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
