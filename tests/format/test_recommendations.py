"""What `idumb recommend` says about plans: each edit, made as it says, removes its recommendation."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from idumb.domain import contract
from idumb.domain.intake import recommendations
from idumb.domain.intake.recommendations import Edit, Facts, Recommendation
from idumb.domain.settings import Settings
from idumb.markdown.plans import plan_parser

HEAD = (
    '---\ntype: plan\nphase: "1"\nplan: "01"\ntitle: T\ngoal: G\nbuilder: human\nrequirements: {REQ-1: It works}\n---\n'
)
FIELDS = "- **Files:** modify `src/a.py`\n- **Requirements:** REQ-1\n"
CHECKED = "- **Acceptance:**\n  - [ ] It works — check: `pytest -q tests/test_a.py`\n"
COMMITS = [{"src/a.py", "tests/test_a.py", f"note-{n}.md"} for n in range(4)] + [{"src/a.py"}, {"tests/test_a.py"}]
PATHS = {"src/a.py", "tests/test_a.py", "pyproject.toml", ".planning/x.md"}


def task(number: int, fields: str = FIELDS, acceptance: str = CHECKED) -> str:
    return f"\n### T1-{number:02d}: Change it\n\nWhat to do.\n\n{fields}{acceptance}"


def recommended(
    text: str, commits: Sequence[Collection[str]] = (), path: str = "01-PLAN.md"
) -> tuple[Recommendation, ...]:
    parsed = plan_parser.parse(text.encode(), path)
    assert parsed.plan is not None, parsed.findings
    assembled, wrong = contract.assemble("1", "folder", [parsed.plan], Settings())
    assert assembled is not None, wrong
    return recommendations.recommend(Facts(assembled, commits, PATHS.__contains__))


def edited(text: str, edit: Edit) -> str:
    """Make an edit as a person would."""
    lines = text.splitlines()
    at = edit.line - 1
    if edit.action in (recommendations.APPEND, recommendations.ADD_VALUE):
        lines[at] += edit.text if edit.action == recommendations.APPEND else f", {edit.text}"
    elif edit.action == recommendations.REPLACE_FIELD:
        lines[at] = edit.text
    else:
        assert edit.action == recommendations.ADD_FIELD
        assert lines[at].endswith(f"{edit.task}: Change it") or lines[at] == f"id: {edit.task}"
        before = next(n for n in range(at, len(lines)) if "cceptance" in lines[n])
        lines.insert(before, edit.text)
    return "\n".join(lines) + "\n"


UNPROVEN = "- **Acceptance:**\n  - [ ] It is there\n  - [ ] It works\n"
OPINION = "- **Acceptance:**\n  - [ ] It is there — opinion\n"
FENCE = (
    "\n```yaml task\nid: T1-0{}\ntitle: Change it\nfiles: {{modify: [src/a.py]}}\nrequirements: [REQ-1]\nacceptance:\n"
)
CASES = {
    "no proof": (task(1, acceptance=UNPROVEN), "recommend.check", ()),
    "an opinion": (task(1, acceptance=OPINION), "recommend.check", ()),
    "a check without a test": (task(1, acceptance=CHECKED.replace("pytest -q", "test -e")), "recommend.test", ()),
    "no order": (task(1) + task(2), "recommend.order", ()),
    "another order": (task(1) + task(2) + task(3, "- **Depends on:** T1-01\n" + FIELDS), "recommend.order", ()),
    "a companion": (task(1), "recommend.files", COMMITS),
    "no order in YAML": (
        "".join(f"{FENCE.format(n)}  - {{text: It, check: pytest a}}\n```\n" for n in (1, 2)),
        "recommend.order",
        (),
    ),
    "no proof in YAML": (f"{FENCE.format(1)}  - text: It works\n    human: true\n```\n", "recommend.check", ()),
}


@pytest.mark.parametrize("case", CASES)
def test_each_edit_removes_its_recommendation(case: str) -> None:
    """R-PLAN-10, R-LOCK-6."""
    tasks, code, commits = CASES[case]
    text = HEAD + "\n## Tasks\n" + tasks
    rows = recommended(text, commits)
    assert code in {each.code for each in rows}
    for _ in rows:
        first = next((each for each in recommended(text, commits) if each.code == code), None)
        if first is None:
            break
        text = edited(text, first.edit)
    assert code not in {each.code for each in recommended(text, commits)}, text


def test_a_good_plan_gets_no_recommendation() -> None:
    """R-PLAN-10: nor does a task for a person, whatever its estimate."""
    person = "\n### T1-02: Look\n\n- **Kind:** human-verify\n- **Estimate:** 9h\n"
    assert recommended(HEAD + "\n## Tasks\n" + task(1) + person) == ()


def test_a_requirement_without_a_task_gets_the_command_that_adds_one() -> None:
    """R-LOCK-6, R-PLAN-10."""
    text = HEAD.replace("It works}", "It works, REQ-2: 'It''s fast'}") + "\n## Tasks\n" + task(1)
    (row,) = recommended(text)
    assert (row.code, row.edit.action) == ("recommend.test", "run")
    assert row.edit.text.startswith("idumb plan add-task 1 --requirement REQ-2 --task 'It'\"'\"'s fast'")


@pytest.mark.parametrize(
    ("fields", "acceptance", "reason"),
    [
        (FIELDS + "- **Estimate:** 2h30m\n", CHECKED, "an estimate of 2.5 hours, more than 2"),
        (
            "- **Requirements:** REQ-1\n- **Files:** create " + ", ".join(f"f{n}.py" for n in range(9)) + "\n",
            CHECKED,
            "9 files, more than 8",
        ),
        (FIELDS, CHECKED + "".join(f"  - [ ] Also {n} — check: `true`\n" for n in range(7)), "8 criteria, more than 7"),
    ],
)
def test_a_large_task_is_to_be_split(fields: str, acceptance: str, reason: str) -> None:
    """R-PLAN-10: with the command for the second part."""
    (row,) = recommended(HEAD + "\n## Tasks\n" + task(1, fields, acceptance))
    assert (row.code, row.why) == ("recommend.split", (reason,))
    assert row.edit.text.startswith("idumb plan add-task 1 --depends-on T1-01 --task ")


def test_history_counts_only_what_is_usual_small_and_still_there() -> None:
    """R-PLAN-10: a file of half of the commits, of a huge commit, or that is gone, is no recommendation."""
    text = HEAD + "\n## Tasks\n" + task(1)
    huge = [{"src/a.py", "tests/test_a.py", *(f"f{n}" for n in range(30))}] * 5
    half = [{"src/a.py", "tests/test_a.py"}] * 3 + [{"src/a.py"}] * 3
    own = [{"src/a.py", ".planning/x.md", "gone.py"}] * 3
    for commits in (huge, half, own, COMMITS[:2]):
        assert recommended(text, commits) == ()
    (row,) = recommended(text, COMMITS)
    assert row.why == ("in 4 of the last 5 commits that changed src/a.py",)
    assert recommended(text, COMMITS) == recommended(text, COMMITS)


GSD = """---
phase: 14-x
plan: 01
type: execute
requirements: [REQ-1]
---

<objective>It works.</objective>

<tasks>

<task type="auto">
  <name>Task 1: Make it</name>
  <files>src/a.py</files>
  <action>Do it.</action>
  <done>It is there</done>
</task>

</tasks>
"""
HEADED = """# Phase 15

## Goal

It works.

## Tasks

### Task 1: Make a

**Files:** src/a.py

### Task 2: Make b

**Depends On:** none
**Files:** src/a.py
"""


@pytest.mark.parametrize(("text", "notation"), [(GSD, "<verify><automated>"), (HEADED, "**Verify:** `")])
def test_a_check_for_another_tool_s_plan_has_that_tool_s_form(text: str, notation: str) -> None:
    """R-PLAN-10: added below the line that begins the task; no command writes into such a plan."""
    path = ".planning/phases/14-x/14-01-PLAN.md"
    rows = recommended(text, COMMITS, path=path)
    assert {"recommend.check", "recommend.files"} <= {each.code for each in rows}
    assert "run" not in {each.edit.action for each in rows}
    for _ in rows:
        edits = [each.edit for each in recommended(text, path=path) if each.code == "recommend.check"]
        if not edits:
            break
        assert notation in edits[0].text
        lines = text.splitlines()
        lines.insert(edits[0].line, edits[0].text)
        text = "\n".join(lines) + "\n"
    assert "recommend.check" not in {each.code for each in recommended(text, path=path)}, text


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("Run: `npm run typecheck` passes with no error", "npm run typecheck"),
        ("python -m pytest tests/test_a.py -q", "python -m pytest tests/test_a.py -q"),
        ("cd web && npx tsc --noEmit", "cd web && npx tsc --noEmit"),
        ("python a.py exits cleanly", "pytest -q"),
        ("The page `index.html` shows it", "pytest -q"),
        ("make sure that it works", "pytest -q"),
    ],
)
def test_a_command_that_a_criterion_names_is_the_check(words: str, command: str) -> None:
    """R-PLAN-10: in GSD's <verify> it is text, because its author did not mark it as a command."""
    text = GSD.replace("<done>It is there</done>", f"<verify>{words}</verify>")
    rows = recommended(text, path=".planning/phases/14-x/14-01-PLAN.md")
    edit = next(each.edit for each in rows if each.code == "recommend.check")
    assert edit.text == f"  <verify><automated>{command}</automated></verify>"


def test_globs_count_as_the_paths_that_they_match() -> None:
    """R-PLAN-10: and a phase of thousands of tasks is answered."""
    globbed = task(1, "- **Files:** create `src/**`\n- **Requirements:** REQ-1\n")
    rows = recommended(HEAD + "\n## Tasks\n" + globbed + task(2))
    assert [row.why for row in rows] == [("both change src/a.py",)]
    many = "".join(task(n, FIELDS.replace("a.py", f"{n}.py")) for n in range(1, 3000))
    assert recommended(HEAD + "\n## Tasks\n" + many, COMMITS) == ()
