"""Plans that programs write: whole lines of JSON, escapes of every kind, megabytes in a step."""

from __future__ import annotations

import json

from idumb.domain.plans.plan import Plan
from idumb.markdown.plans import plan_parser
from tests.support.cases import every

HEAD = '---\ntype: plan\nphase: "1"\nplan: "01"\ntitle: t\ngoal: g\n---\n\n## Tasks\n\n'
TASK = "### T1-01: Write\n\n- **Files:** create `a`\n- **Acceptance:**\n  - [ ] It is there — check: `test -e a`\n\n"


def parsed(text: str) -> Plan:
    result = plan_parser.parse(text.encode(), "p")
    assert result.plan is not None, result.findings
    return result.plan


def test_names_that_are_not_utf_8_can_be_declared_in_a_yaml_task() -> None:
    """R-PLAN-7: JSON writers escape what UTF-8 cannot hold, and characters beyond the first plane as pairs."""
    task = {"id": "T1-01", "title": "smile \U0001f600", "files": {"create": ["\udcff.bin", "nl\nx"]}}
    lines = [f"{key}: {json.dumps(value)}" for key, value in task.items()]
    plan = parsed(HEAD + "\n".join(["```yaml task", *lines, 'acceptance: [{text: a, check: "true"}]', "```", ""]))
    assert plan.tasks[0].title == "smile \U0001f600"
    assert [claim.path for claim in plan.tasks[0].files or ()] == ["\udcff.bin", "nl\nx"]


@every("kind", ["yaml steps", "json steps"])
def test_a_step_may_be_longer_than_a_line_of_a_plan(kind: str) -> None:
    arguments = {"path": "a", "content": "x" * 200_000}
    line = json.dumps({"tool": "write_file", "intent": "write", "arguments": arguments})
    mark = "- " if kind == "yaml steps" else ""
    plan = parsed(f"{HEAD}{TASK}```{kind}\n{mark}{line}\n```\n")
    assert plan.tasks[0].steps[0].arguments == arguments


def test_json_steps_are_objects_that_each_begin_a_line() -> None:
    step = '{"tool": "delete_file", "intent": "i",\n "arguments": {"path": "a"}}'
    assert len(parsed(f"{HEAD}{TASK}```json steps\n\n  {step}\n\n\t{step} \n```\n").tasks[0].steps) == 2
    result = plan_parser.parse(f"{HEAD}{TASK}```json steps\n{step}\n{step} {step}\n```\n".encode(), "p")
    assert [(finding.code, finding.line) for finding in result.findings] == [("json.unreadable", 21)]


def test_a_long_line_elsewhere_is_named() -> None:
    result = plan_parser.parse(f"{HEAD}{TASK}{'x' * 70_000}\n".encode(), "p")
    assert [finding.code for finding in result.findings] == ["plan.line-too-long"]


def test_the_proof_that_a_file_changed_is_only_for_tasks() -> None:
    """R-RUN-3: a phase has no files that could have changed."""
    goal = "  - text: it is done\n    changed: true\n"
    text = f"---\ntype: plan\nphase: 1\nplan: 01\ntitle: t\ngoal: g\nsuccess_criteria:\n{goal}---\n\n## Tasks\n"
    findings = plan_parser.parse(text.encode(), "01-PLAN.md").findings
    assert "criterion.bad-proof" in {f.code for f in findings}
