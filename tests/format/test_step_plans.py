"""Step plans in YAML and JSON: valid ones, and the code and place of each mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies
from msgspec.structs import replace

from idumb.app.ports import ParsedPlan
from idumb.domain.plans.plan import Plan
from idumb.markdown.plans import plan_parser
from tests.format import golden
from tests.support import example_files
from tests.support.cases import every
from tests.support.growth import assert_linear

FOLDER = golden.CASES / "step-plans"
SAME = ("three-steps.json", "three-steps.yaml")
WITHOUT_FIELD = {"plan.not-utf-8", "plan.nul", "plan.too-large"}
STEP: dict[str, Any] = {"tool": "write_file", "intent": "make it", "arguments": {"path": "a.txt", "content": "x\n"}}


def read(text: str | bytes, path: str = "plan.yaml") -> ParsedPlan:
    return plan_parser.parse_steps(text if isinstance(text, bytes) else text.encode(), path)


def good(text: str | bytes, path: str = "plan.yaml") -> Plan:
    result = read(text, path)
    assert result.plan is not None, result.findings
    assert result.findings == ()
    return result.plan


def wrong(text: str | bytes, path: str = "plan.yaml") -> list[tuple[str, int]]:
    """Return (code, line) of every error; there is no plan then."""
    result = read(text, path)
    assert result.plan is None
    return [(one.code, one.line) for one in result.findings]


def as_json(*steps: dict[str, Any], **more: Any) -> str:
    return json.dumps({"steps": steps, **more}, indent=2)


@every("place", sorted(FOLDER.glob("*.result")))
def test_a_step_plan_gives_the_result_of_the_reference(place: Path) -> None:
    """R-PLAN-7, R-PLAN-5, R-LOCK-7: beside each file is what must come of it."""
    parsed = read(place.with_suffix("").read_bytes(), place.stem)
    example_files.compare_json(place, golden.outcome(parsed))
    assert all(one.path == place.stem and one.message for one in parsed.findings)
    assert all(one.field or one.code in WITHOUT_FIELD for one in parsed.findings)


def test_json_and_yaml_give_the_same_plan_and_slips_get_the_nearest_word() -> None:
    """R-PLAN-7."""
    one, other = ([task.steps for task in good((FOLDER / name).read_text(), name).tasks] for name in SAME)
    assert [[replace(step, line=0) for step in steps] for steps in one] == [
        [replace(step, line=0) for step in steps] for steps in other
    ]
    near = {f.found: f.fix for f in read((FOLDER / "several-mistakes.yaml").read_bytes()).findings}
    assert (near["stesp"], near["rnu"]) == ("did you mean `steps`?", "did you mean `run`?")


@pytest.mark.parametrize("path", ["p.yaml", "p.json"])
@pytest.mark.parametrize(("mark", "end"), [("\ufeff", "\n"), ("", "\r\n"), ("\ufeff", "\r\n")])
def test_a_byte_order_mark_and_windows_line_endings_change_nothing(path: str, mark: str, end: str) -> None:
    """R-PLAN-7: the hash covers the bytes all the same."""
    text = as_json(STEP, STEP)
    marked = (mark + text.replace("\n", end)).encode()
    plan, plain = good(marked, path), good(text, path)
    assert [t.steps for t in plan.tasks] == [t.steps for t in plain.tasks]
    assert plan.sha256 != plain.sha256
    broken = (mark + as_json(STEP, {**STEP, "color": "red"}).replace("\n", end)).encode()
    assert wrong(broken, path) == [("step.unknown-key", 18)]


@every("path", ["a b.yaml", "x/../p.yaml", "p.toml", "-p.yaml", "a+b.yaml", "é" * 120 + ".yaml"])
def test_a_name_that_gives_no_id_is_an_error(path: str) -> None:
    """R-PLAN-7."""
    assert [code for code, _ in wrong(as_json(STEP), path)] == ["plan.bad-name"]


def test_too_many_steps_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-PLAN-7: more than a plan may have tasks."""
    monkeypatch.setattr(plan_parser, "MAX_TASKS", 10)
    assert len(good(as_json(*[STEP] * 10), "p.json").tasks) == 10
    assert wrong(as_json(*[STEP] * 11), "p.json")[-1][0] == "plan.too-many-tasks"


def test_a_large_file_in_one_step_costs_only_its_size() -> None:
    """R-PLAN-7."""

    def given(n: int) -> str:
        return as_json({**STEP, "arguments": {"path": "a.txt", "content": "line of text\n" * n}})

    assert_linear(lambda text: good(text, "p.json"), given)


@hypothesis.given(
    strategies.text(alphabet='{}[]":,stepl \n-tool01.eE\\u', max_size=80), strategies.sampled_from(["p.json", "p.yaml"])
)
@hypothesis.settings(max_examples=300)
def test_any_file_content_gives_a_plan_or_errors(text: str, path: str) -> None:
    """R-PLAN-7."""
    result = read(text, path)
    assert (result.plan is None) == bool(result.findings)


_VALUES = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers(-(10**9), 10**9) | strategies.text(max_size=5),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.text(max_size=4), inner),
    max_leaves=8,
)


@hypothesis.given(_VALUES)
def test_json_accepted_by_other_parsers_is_accepted_here(value: Any) -> None:
    """R-PLAN-7: no legal JSON is called unreadable."""
    assert "json.unreadable" not in [f.code for f in read(json.dumps(value, indent=1), "p.json").findings]
