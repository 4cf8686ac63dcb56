"""R-PLAN-5: a suggested fix works as printed: free ids, tabs, the format of a file."""

from __future__ import annotations

import re

import pytest

from idumb.domain.finding import ERROR, Finding, errors
from idumb.markdown.plans import plan_parser
from tests.format.test_unrecognized import PLANS
from tests.support.cases import every

HEAD = """---
type: plan
phase: "2"
plan: "01"
title: T
goal: G
scope:
  root: src
  protected: [a]
non_goals:
  - id: N1
    text: no
limits: {files: 3}
---

"""
FIRST = "### T2-01: First\n\n- **Acceptance:**\n  - [ ] There — human\n\n"


def found_in(body: str, head: str = HEAD, others: tuple[bytes, ...] = ()) -> list[Finding]:
    return list(plan_parser.parse((head + body).encode(), "p", others).findings)


def error_text(findings: list[Finding]) -> str:
    return " ".join(f"{f.message} {f.fix}" for f in findings if f.severity == ERROR)


@every(
    "body",
    [
        f"## Tasks\n\n{FIRST}- [ ] do it\n",
        f"## Tasks\n\n{FIRST}### Add it\n\n- **Depends on:** none\n- **Files:** create `a`\n- **Verify:** `a`\n",
        f"## Tasks\n\n{FIRST}{FIRST}",
        f"## Tasks\n\n{FIRST}```yaml task\ntitle: A\nacceptance: [A, human]\n```\n",
        f"## Tasks\n\n{FIRST}<task>\n",
    ],
)
def test_a_suggested_id_is_free_in_all_plans_of_the_phase(body: str) -> None:
    alone = next(f for f in found_in(body) if f.severity == ERROR)
    assert "T2-02" in alone.fix
    beside = next(f for f in found_in(body, others=(b"### T2-07: Another\n\xff",)) if f.severity == ERROR)
    assert "T2-08" in beside.fix
    assert "T2-01" not in f"{alone.fix} {alone.accepted} {beside.fix} {beside.accepted}"


@pytest.mark.parametrize("name", ["headings", "checklist", "fences"])
@pytest.mark.parametrize("indent", ["\t", "\t\t"])
def test_a_tab_that_breaks_a_plan_is_named(name: str, indent: str) -> None:
    """Every line of the plan in turn."""
    tried = 0
    for changed in indented(HEAD.replace('"2"', '"1"') + PLANS[name].replace("REQ-1", "none"), indent):
        findings = found_in(changed, head="")
        if errors(findings) and not unowned(findings):
            tried += 1
            assert re.search(r"\btab\b", error_text(findings)), changed
    assert tried > 8


def indented(text: str, indent: str) -> list[str]:
    lines = text.rstrip("\n").split("\n")
    stripped = [(number, line.lstrip(" ")) for number, line in enumerate(lines)]
    changes = [(n, indent + line) for n, line in stripped if line and indent + line != lines[n]]
    return ["\n".join([*lines[:n], line, *lines[n + 1 :], ""]) for n, line in changes]


def unowned(findings: list[Finding]) -> bool:
    """What indentation made part of the value above, and so of another meaning: only its absence shows."""
    return {f.code for f in errors(findings)} <= {"task.no-acceptance", "criterion.unproven"}


def test_a_field_next_to_its_checklist_task_belongs_below_it() -> None:
    findings = found_in("## Tasks\n\n- [ ] T2-01 First\n- **Files:** create `a`\n- **Acceptance:** none\n")
    codes = [f.code for f in errors(findings)]
    assert codes == ["task.no-acceptance", "field.misplaced", "field.misplaced"]
    assert findings[1].fix == "indent it below its task"


OLD = "### Task T2-001: A\n\n- **Description:** B\n- **Estimate:** 2h\n- **Acceptance Criteria:**\n  - [ ] C\n"


@every(
    "head, task",
    [
        ("type: plan\nphase: 2\nplan: 1\ntitle: T\nmode: strict", "- **Rollback:** irreversible: it sends mail\n"),
        ("type: plan\nphase: 2\nplan: 1\ntitel: T\ngoal: G", ""),
        ("type: plan\nphase: 2\nplan: 1\ntitle: T\ngoal: G\nwave: 1\nautonomous: true", ""),
        ("phase: 2\nplan: 1\nsuccess_criteria: [A]", ""),
        ("phase: 2\nplan: 1\nsuccess-criteria: [A]", ""),
        ("phase: 2\nplan: 1\ntitel: T\ngoal: G", ""),
        ('"type": plan\n"phase": 2\n"plan": 1\n"title": T\n"mode": strict', ""),
        ("{type: plan, phase: 2, plan: 1, title: T, mode: strict}", ""),
        ("type: Plan\nphase: 2\nplan: 1\ntitle: T", ""),
        ("phase: 2\nplan: 1\nwave: 1\nautonomous: true\nMODE: Strict", ""),
        ("phase: 2\nphase_name: A\nmode: strct", ""),
        (" type: plan\n phase: 2\n plan: 1\n title: T", ""),
        ("phase: 2\nplan: 1", "- Rollback: reversible\n"),
        ("phase: 2\nplan: 1\nwave: 1\nautonomous: true", "- **Rollback:** irreversible: it sends mail\n"),
        ("phase: 2\nphase_name: A", "- **Change:** breaking\n"),
        ("phase: 2\nplan: 1", "\n```yaml steps\n- {tool: run, intent: i, arguments: {command: a}}\n```\n"),
    ],
)
def test_a_plan_of_idumb_with_a_mistake_is_never_read_as_another_tool_s(head: str, task: str) -> None:
    """R-PLAN-2: a strict plan would run as guided."""
    read = plan_parser.parse(f"---\n{head}\n---\n\n## Tasks\n\n{OLD}{task}".encode(), "01-PLAN.md")
    assert (read.plan, read.dialect) == (None, "plan")
    assert {"plan.missing-key", "plan.unknown-key"} & {f.code for f in errors(read.findings)}


@every("marks", [" ---", "\t---", "\n---"])
def test_front_matter_that_is_not_at_the_start_makes_no_plan_of_another_tool(marks: str) -> None:
    text = f"{marks}\ntype: plan\nphase: 2\nplan: 1\ntitle: T\nmode: strict\n---\n\n## Tasks\n\n{OLD}"
    read = plan_parser.parse(text.encode(), "01-PLAN.md")
    assert (read.plan, read.dialect) == (None, "plan")


def test_a_description_that_is_no_text_does_not_suggest_itself() -> None:
    fence = "```yaml task\nid: T2-01\ntitle: A\nacceptance: [{text: a, human: true}]\ndescription: [a, b]\n```\n"
    (finding,) = errors(found_in(f"## Tasks\n\n{fence}"))
    assert (finding.code, finding.fix) == ("field.not-text", "write a text")


def test_a_misspelt_key_is_unknown_and_near_the_right_one() -> None:
    findings = found_in(FIRST, HEAD.replace("title: T", "titel: T"))
    assert ("plan.unknown-key", "did you mean `title`?") in {(f.code, f.fix) for f in findings}
