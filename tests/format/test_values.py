"""R-PLAN-2, R-PLAN-5: a value in YAML is read whole, as in bullets, or it is an error."""

from __future__ import annotations

from idumb.domain.finding import errors
from idumb.domain.plans.plan import Interface, Limits
from idumb.markdown.plans import plan_parser
from tests.format.golden import as_plan
from tests.support.cases import every

TASK = "```yaml task\nid: T1-01\ntitle: A\nacceptance: [{{text: a, human: true}}]\n{0}\n```\n"


@every(
    "value, code",
    [
        ("limits: {paths: [a, {b: c}]}", "limits.malformed"),
        ("interfaces: {load: returns a dict}", "interface.malformed"),
        ("interfaces: {load: {outputs: {a: b}}}", "interface.bad-property"),
        ("files: {create: [a, {b: c}]}", "field.not-text"),
        ("rollback: {compensatable: [a, {b: c}]}", "field.unexpected-content"),
    ],
)
def test_a_part_that_a_field_cannot_hold_is_an_error(value: str, code: str) -> None:
    (first, *_) = errors(plan_parser.parse(as_plan(TASK.format(value)), "p").findings)
    assert (first.code, first.line) == (code, 15)


def test_the_limits_of_a_plan_are_read_like_those_of_a_task() -> None:
    text = as_plan(TASK.format("notes: x")).replace(b"goal: G", b"goal: G\nlimits: {paths: [a, {b: c}]}")
    assert [f.code for f in errors(plan_parser.parse(text, "p").findings)] == ["limits.malformed"]


def test_a_description_that_is_no_text_does_not_suggest_itself() -> None:
    (finding,) = errors(plan_parser.parse(as_plan(TASK.format("description: [a, b]")), "p").findings)
    assert (finding.code, finding.fix) == ("field.not-text", "write a text")


def test_the_last_line_of_a_yaml_task_keeps_its_line_end() -> None:
    steps = "steps:\n- tool: write_file\n  intent: x\n  arguments:\n    path: a\n    content: |\n      hello"
    plan = plan_parser.parse(as_plan(TASK.format(steps)), "p").plan
    assert plan
    assert plan.tasks[0].steps[0].arguments["content"] == "hello\n"


def test_yaml_and_bullets_give_the_same_values() -> None:
    yaml = "limits: {files: 3, paths: ['a b', c]}\ninterfaces: {load: {inputs: a path, side_effects: none}}"
    bullets = "### T1-01: A\n\n- Acceptance:\n  - [ ] a — human\n- Limits:\n  - files 3\n  - paths `a b` c\n"
    bullets += "- Interfaces:\n  - load\n    - inputs: a path\n    - side effects: none\n"
    read = [plan_parser.parse(as_plan(text), "p").plan for text in (TASK.format(yaml), bullets)]
    tasks = [plan.tasks[0] for plan in read if plan]
    assert [task.limits for task in tasks] == [Limits(3, None, ("a b", "c"))] * 2
    assert [task.interfaces for task in tasks] == [
        (Interface("load", {"inputs": "a path", "side effects": "none"}),)
    ] * 2
