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


def test_a_description_that_is_no_text_does_not_suggest_itself() -> None:
    fence = "```yaml task\nid: T2-01\ntitle: A\nacceptance: [{text: a, human: true}]\ndescription: [a, b]\n```\n"
    (finding,) = errors(found_in(f"## Tasks\n\n{fence}"))
    assert (finding.code, finding.fix) == ("field.not-text", "write a text")


def test_a_misspelt_key_is_unknown_and_near_the_right_one() -> None:
    findings = found_in(FIRST, HEAD.replace("title: T", "titel: T"))
    assert ("plan.unknown-key", "did you mean `title`?") in {(f.code, f.fix) for f in findings}
