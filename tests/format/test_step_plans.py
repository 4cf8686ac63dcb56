"""Step plans in YAML and JSON: valid ones, and the code and place of each mistake."""

from __future__ import annotations

import json
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from idumb.app.ports import ParsedPlan
from idumb.domain.plans.plan import STEPS, STRICT, FileClaim, Plan
from idumb.markdown.plans import plan_parser
from tests.support.cases import every
from tests.support.growth import assert_linear

STEP: dict[str, Any] = {"tool": "write_file", "intent": "make it", "arguments": {"path": "a.txt", "content": "x\n"}}
YAML = """\
scope: {root: src, protected: ["src/keys/**"]}
steps:
  - tool: write_file
    intent: make the page
    arguments: {path: src/page.html, content: "<p>"}
  - tool: run
    intent: build
    arguments: {argv: [make, site]}
    scope: ["src/out/**"]
    timeout: 2m
    continue_on_error: true
"""


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
    for one in result.findings:
        assert one.path == path
        assert one.field or one.code in {"plan.not-utf-8", "plan.nul", "plan.too-large"}
        assert one.message
    return [(one.code, one.line) for one in result.findings]


def as_json(*steps: dict[str, Any], **more: Any) -> str:
    return json.dumps({"steps": steps, **more}, indent=2)


def test_each_step_is_a_task_that_depends_on_the_previous_one() -> None:
    """R-PLAN-7."""
    plan = good(YAML, "deploy/web.yaml")
    assert (plan.phase, plan.mode, plan.dialect) == ("deploy+web.yaml", STRICT, "steps")
    first, second = plan.tasks
    assert (first.id, first.depends_on, first.title) == ("deploy+web.yaml-01", (), "make the page")
    assert (second.id, second.depends_on) == ("deploy+web.yaml-02", ("deploy+web.yaml-01",))
    assert [s.index for t in plan.tasks for s in t.steps] == [0, 1]
    assert second.steps[0].timeout == 120
    assert second.steps[0].continue_on_error
    assert second.span is not None
    assert second.span.line == 6


def test_the_files_of_a_step_come_from_its_arguments_and_scope() -> None:
    """R-PLAN-7: and its own result is what proves it."""
    plan = good(YAML)
    assert [t.files for t in plan.tasks] == [
        (FileClaim("change", "src/page.html"),),
        (FileClaim("change", "src/out/**"),),
    ]
    assert [c.proof for t in plan.tasks for c in t.acceptance] == [STEPS, STEPS]


def test_the_plan_s_scope_is_kept_and_no_step_may_write_the_plan_itself() -> None:
    """R-PLAN-7, R-LOCK-5."""
    plan = good(YAML)
    assert plan.scope.root == "src"
    assert plan.scope.protected == ("src/keys/**", "plan.yaml")


def test_json_and_yaml_give_the_same_plan() -> None:
    """R-PLAN-7."""
    steps = [
        STEP,
        {"tool": "run", "intent": "b", "arguments": {"command": "true", "expect_exit": 3}, "timeout": 90},
        {"tool": "delete_file", "intent": "c", "arguments": {"path": "b.txt"}, "continue_on_error": True},
    ]
    one = good(as_json(*steps), "p.json")
    other = good("steps:\n" + "\n".join(f"- {json.dumps(s)}" for s in steps), "p.yaml")
    assert [(s.tool, s.intent, s.arguments, s.timeout, s.continue_on_error) for t in one.tasks for s in t.steps] == [
        (s.tool, s.intent, s.arguments, s.timeout, s.continue_on_error) for t in other.tasks for s in t.steps
    ]


# fmt: off
INVALID_STEPS: list[tuple[dict[str, Any], str]] = [
    ({"tol": "run"}, "step.unknown-key"),
    ({"tool": None}, "step.missing-key"),
    ({"tool": "shell"}, "step.unknown-tool"),
    ({"tool": ["run"]}, "step.unknown-tool"),
    ({"intent": ""}, "step.bad-value"),
    ({"intent": " \n "}, "step.bad-value"),
    ({"intent": 3}, "step.bad-value"),
    ({"arguments": []}, "step.not-a-mapping"),
    ({"arguments": {"path": "a.txt"}}, "step.missing-argument"),
    ({"arguments": {"path": "a.txt", "content": "x", "content_base64": "eA=="}}, "step.missing-argument"),
    ({"arguments": {"path": "a.txt", "content": 3}}, "step.bad-value"),
    ({"arguments": {"path": "a.txt", "content": "x", "owner": "me"}}, "step.unknown-argument"),
    ({"scope": "a.txt"}, "step.bad-value"),
    ({"scope": []}, "step.bad-value"),
    ({"timeout": 0}, "step.bad-value"),
    ({"timeout": -3}, "step.bad-value"),
    ({"timeout": 1.5}, "step.bad-value"),
    ({"timeout": True}, "step.bad-value"),
    ({"continue_on_error": "yes"}, "step.bad-value"),
    ({"continue_on_error": 1}, "step.bad-value"),
]
# fmt: on


def test_an_invalid_step_is_named_with_its_line() -> None:
    """R-PLAN-7, R-LOCK-7: nothing is inferred, and no unknown key is accepted."""
    others = []
    for change, code in INVALID_STEPS:
        step = {k: v for k, v in {**STEP, **change}.items() if v is not None}
        findings = wrong('{"steps": [\n' + json.dumps(STEP) + ",\n" + json.dumps(step) + "\n]}", "p.json")
        others += [] if findings == [(code, 3)] else [(change, findings)]
    assert others == []


def test_several_mistakes_are_reported_together_each_at_its_line() -> None:
    """R-PLAN-7, R-PLAN-5."""
    text = """\
stesp: []
steps:
- tool: write_file
  intent: a
  arguments:
    path: a.txt
    contents: x
- tool: rnu
  arguments: {command: "true"}
version: 2
"""
    assert wrong(text) == [
        ("plan.unknown-key", 1),
        ("step.missing-argument", 5),
        ("step.unknown-argument", 7),
        ("step.missing-key", 8),
        ("step.unknown-tool", 8),
        ("plan.unknown-key", 10),
    ]
    near = {f.found: f.fix for f in read(text).findings}
    assert near["stesp"] == "did you mean `steps`?"
    assert near["rnu"] == "did you mean `run`?"


# fmt: off
INVALID_PLANS: list[tuple[str | bytes, str, str]] = [
    ("", "p.yaml", "plan.no-steps"),
    ("", "p.json", "plan.no-steps"),
    ("just words", "p.yaml", "plan.no-steps"),
    ("- tool: run", "p.yaml", "plan.no-steps"),
    ("[]", "p.json", "plan.no-steps"),
    ("{}", "p.json", "plan.missing-key"),
    ("scope: {root: src}", "p.yaml", "plan.missing-key"),
    ("steps: []", "p.yaml", "steps.empty"),
    ("steps:", "p.yaml", "plan.empty-value"),
    ("steps: {a: b}", "p.yaml", "steps.not-a-list"),
    ('{"steps": null}', "p.json", "plan.empty-value"),
    ('{"steps": [3]}', "p.json", "step.not-a-mapping"),
    ("steps: &a []\n", "p.yaml", "yaml.anchor"),
    ("scope: *a\n", "p.yaml", "yaml.alias"),
    ("steps: !!seq []\n", "p.yaml", "yaml.tag"),
    ("steps: []\nsteps: []\n", "p.yaml", "yaml.duplicate-key"),
    ('{"steps": [], "steps": []}', "p.json", "yaml.duplicate-key"),
    ('{"steps": [{"tool": "run", "tool": "run"}]}', "p.json", "yaml.duplicate-key"),
    ("steps: []\n---\nsteps: []\n", "p.yaml", "yaml.second-document"),
    ("steps: [}\n", "p.yaml", "yaml.unreadable"),
    ('{"steps": [}', "p.json", "json.unreadable"),
    ('{"steps": [],}', "p.json", "json.unreadable"),
    ('{"steps": []} {}', "p.json", "json.unreadable"),
    ('{"steps": [NaN]}', "p.json", "json.unreadable"),
    ('{"steps": ["', "p.json", "json.unreadable"),
    ('{"steps": ["a\nb"]}', "p.json", "json.unreadable"),
    ('{"steps": [01]}', "p.json", "json.unreadable"),
    ("{'steps': []}", "p.json", "json.unreadable"),
    ('{"steps": [] // none\n}', "p.json", "json.unreadable"),
    ("[" * 50_000, "p.json", "plan.too-deep"),
    ("[" * 50, "p.yaml", "plan.too-deep"),
    (b"steps: \xff", "p.yaml", "plan.not-utf-8"),
    ("steps: \0", "p.yaml", "plan.nul"),
    ('{"steps": [{"tool": "run", "intent": "a b", "arguments": {"command": "a\\u0000"}}]}', "p.json", "plan.nul"),
    ("scope: {root: 3, roof: x}\nsteps: []", "p.yaml", "plan.unknown-key"),
    ("scope: src\nsteps: []", "p.yaml", "plan.bad-value"),
]
# fmt: on


def test_an_invalid_step_plan_is_an_error_and_never_partly_loaded() -> None:
    """R-PLAN-7."""
    found = [(text, path, code, wrong(text, path)) for text, path, code in INVALID_PLANS]
    assert [row for row in found if row[2] not in dict(row[3])] == []


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


def test_a_yaml_text_block_keeps_its_lines_with_any_line_endings() -> None:
    """R-PLAN-7."""
    text = (
        "steps:\n- tool: write_file\n  intent: a\n  arguments:\n    path: a.txt\n    content: |\n      one\n      two\n"
    )
    for form in (text, text.replace("\n", "\r\n")):
        assert good(form).tasks[0].steps[0].arguments["content"] == "one\ntwo\n"


@every("path", ["a b.yaml", "x/../p.yaml", "p.toml", "-p.yaml", "a+b.yaml", "é" * 120 + ".yaml"])
def test_a_name_that_gives_no_id_is_an_error(path: str) -> None:
    """R-PLAN-7."""
    assert [code for code, _ in wrong(as_json(STEP), path)] == ["plan.bad-name"]


def test_a_patch_without_a_file_name_is_an_error() -> None:
    """R-PLAN-7, R-LOCK-7."""
    step = {"tool": "apply_patch", "intent": "a", "arguments": {"patch": "@@ -1 +1 @@\n-a\n+b\n"}}
    assert wrong(as_json(step), "p.json") == [("step.unreadable-patch", 3)]


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
