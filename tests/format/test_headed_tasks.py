"""R-PLAN-2: tasks of the first iDumb and of GSD without tags, written as headings and checklists."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from idumb.domain.plans.plan import CHECK, HUMAN, UNPROVEN, VERIFY, FileClaim, Plan
from idumb.markdown.plans import plan_parser
from tests.support.cases import every
from tests.support.growth import assert_linear

PATH = ".planning/phases/1/01-PLAN.md"
FIRST_IDUMB = """---
type: plan
phase: 1
phase_name: Links
status: approved
validation_score: "92"
---

# Phase 1: Links - Execution Plan

## Tasks

### Task T1-001: Make a link

- **Description:** Shorten the address of an article.
- **Acceptance Criteria:**
  - [ ] A link has eight characters — check: `pytest -q -k short`
  - [x] It reads well — human
  - [ ] It is stored
- **Estimate:** 2h
- **Depends On:** none
- **Assigned To:** builder
- **Files Involved:**
  - `src/links.py`
  - `tests/test_links.py` (new)

### Task T1-002: Show it

- **Description:** Print the link.
- **Acceptance Criteria:**
  - [ ] The page shows it
- **Verify:** `pytest -q tests/test_page.py`
- **Depends On:** T1-001

### Task T1-003: Count it

- **Acceptance Criteria:**
  - [ ] The counter grows
- **Depends On:** T1-001, T1-002
- **Priority:** critical

## Success Criteria

- [ ] Every article has a link
"""


def read(text: str, path: str = PATH) -> tuple[Plan, list[tuple[str, int]], str]:
    parsed = plan_parser.parse(text.encode(), path)
    plan = parsed.plan or parsed.draft
    assert plan is not None, parsed.findings
    assert parsed.text == text
    return plan, [(f.code, f.line) for f in parsed.findings], parsed.dialect


def test_the_first_template_is_read_with_its_own_ids_and_dependencies() -> None:
    plan, findings, dialect = read(FIRST_IDUMB)
    assert (dialect, findings) == ("idumb-1", [])
    first, second, third = plan.tasks
    assert [(t.id, t.title, t.depends_on) for t in plan.tasks] == [
        ("T1-001", "Make a link", ()),
        ("T1-002", "Show it", ("T1-001",)),
        ("T1-003", "Count it", ("T1-001", "T1-002")),
    ]
    assert first.files == (FileClaim("change", "src/links.py"), FileClaim("change", "tests/test_links.py"))
    assert [(c.text, c.proof, c.command) for c in first.acceptance] == [
        ("A link has eight characters", CHECK, "pytest -q -k short"),
        ("It reads well", HUMAN, None),
        ("It is stored", UNPROVEN, None),
    ]
    assert first.estimate == 7200
    assert (second.verify, second.acceptance[0].proof) == (("pytest -q tests/test_page.py",), VERIFY)
    assert (third.priority, third.on_failure) == ("critical", "ask")
    assert [(c.text, c.proof) for c in plan.success_criteria] == [("Every article has a link", HUMAN)]
    assert (plan.title, plan.phase) == ("Phase 1: Links - Execution Plan", "1")


@every(
    "section, ids",
    [
        ("### Task 1: A\n\n### Task 2: B\n", ["A", "B"]),
        ("#### Task 1.1: A\n\n### Wave 2\n\n#### Task 2.1 — B\n", ["A", "B"]),
        ("### Task E1.1: A\n\n#### Task 1a: inner\n\n### Task E1.2: B\n", ["A", "B"]),
        ("### 1. A\n\ntext\n\n### 2. B\n", ["A", "B"]),
        ("### Task 1: A\n\n```md\n### Task 2: no\n```\n\n### Task 3: B\n", ["A", "B"]),
        ("### Task 1: A\n\n<!--\n### Task 2: no\n-->\n\n### Task 3: B\n", ["A", "B"]),
    ],
)
def test_headings_are_tasks(section: str, ids: list[str]) -> None:
    head = "---\nphase: 1\nplan: 01\ntype: execute\nwave: 1\nautonomous: true\n---\n"
    plan, findings, _ = read(f"{head}\n## Tasks\n\n{section}")
    assert findings == []
    assert [t.title for t in plan.tasks] == ids
    assert len({t.id for t in plan.tasks}) == len(ids)


LONG: dict[str, Callable[[int], str]] = {
    "number signs": lambda n: "## " + "#" * n + "x",
    "tabs in a heading": lambda n: "## a" + "\t" * n + "b",
    "digits of a task": lambda n: "### Task " + "1" * n + "(",
    "letters and digits of a task": lambda n: "### Task " + "a" * n + "1" * n + "(",
    "digits of an id": lambda n: "### T" + "1" * n + "(",
    "digits of a dependency": lambda n: "### T02: A\n\n- **Depends on:** " + "1" * n + "-",
    "digits of a title": lambda n: "### Task 1: Task " + "1" * n + "(",
    "tabs in a title": lambda n: "### Task 1: a" + "\t" * n + "x",
    "tabs in an estimate": lambda n: "### Task 1: A\n\n- **Estimate:** a" + "\t" * n + "x",
}


@pytest.mark.parametrize("kind", LONG)
def test_long_runs_of_one_character_are_read_in_linear_time(kind: str) -> None:
    def given(n: int) -> bytes:
        lines = f"\n{LONG[kind](n)}\n" * 4  # a line that is long enough to be measured is too long to be read
        return FIRST_IDUMB.replace("\n## ", f"{lines}\n## ").encode()

    assert_linear(lambda text: plan_parser.parse(text, PATH), given)


def test_labels_end_the_value_of_the_label_before_them() -> None:
    plan, findings, _ = read(
        "# Plan\n\n## Task 1: A\n\n**Files (edit):**\n- `a.py` — one, and two\n- b.py (delete)\n\n"
        "**Note:** see c.py\n\n**Verification:**\n\n```bash\npytest -q\n```\n\n**Done when:** it works\n\nText.\n"
    )
    (task,) = plan.tasks
    assert findings == []
    assert task.files == (FileClaim("change", "a.py"), FileClaim("delete", "b.py"))
    assert (task.verify, [c.text for c in task.acceptance]) == (("pytest -q",), ["it works Text."])
    assert "**Note:** see c.py" in task.description


def test_a_list_of_boxes_below_a_dependency_is_other_text() -> None:
    first = "### Task 1: A\n\n### Task 2: B\n\n"
    for stated, needed in (("none", ()), ("\n- Task 1", ("T1-0101",))):
        plan, findings, _ = read(f"{first}**Depends on:** {stated}\n- [ ] do it\n")
        assert (plan.tasks[1].depends_on, findings) == (needed, [])


def test_a_task_tag_around_markdown_is_read_with_its_labels() -> None:
    plan, findings, dialect = read(
        '# Plan 01-02\n\n**Phase:** 1\n\n<task id="A2-T1" priority="P1">\n\n### A2-T1: Fix it\n\n'
        "**File:** `src/a.ts`\n\n**Action:** Change the line.\n\n```yaml\na: <b>\n```\n\n"
        "**Acceptance Criteria:**\n- [ ] It is fixed\n\n</task>\n"
    )
    (task,) = plan.tasks
    assert (dialect, findings) == ("idumb-1", [])
    assert (task.title, task.priority, task.extra) == ("Fix it", "high", {"x-source-id": "A2-T1"})
    assert task.files == (FileClaim("change", "src/a.ts"),)
    assert [c.text for c in task.acceptance] == ["It is fixed"]


@every(
    "section, finding",
    [
        ("### Task 1: A\n\n**Depends on:** Task 9\n", ("task.unknown-dependency", 5)),
        ("### Task 1: A\n\n**Depends on:** the first phase\n", ("dialect.unread-dependency", 5)),
        ("### Task 1: A\n\n```\n### Task 2: B\n", ("fence.never-closed", 5)),
        ("### Task 1: A\n\n- [x] a step\n", ("task.ticked", 3)),
        ("- [ ] without a heading\n\n### Task 1: A\n", ("dialect.stray-text", 3)),
        ("- id: T1-01\n\n### Task 1: A\n", ("dialect.stray-text", 3)),
    ],
)
def test_what_is_not_understood_is_reported(section: str, finding: tuple[str, int]) -> None:
    _, findings, _ = read(f"# A\n## Tasks\n{section}")
    assert findings == [finding]


@every(
    "text",
    [
        "# Notes\n\n## Setup\n\n- [ ] T001 A\n",
        "---\ntype: plan\nphase: 1\n---\n\n## Tasks\n\n### T1-01: A\n\n- **Files:** create `a`\n",
        "---\ntitle: A\ngoal: B\n---\n\n### Task 1: A\n",
        "### T1-01: A\n\n- **Files:** create `a`\n",
    ],
)
def test_other_files_keep_their_own_findings(text: str) -> None:
    assert plan_parser.parse(text.encode(), PATH).dialect not in ("gsd", "idumb-1")


def test_a_dash_inside_a_command_a_path_or_a_title_is_kept() -> None:
    plan, _, _ = read(
        "# Plan\n\n## Task 1: Fix Task 2: b\n\n- **Files:** `a - b.md`\n"
        "- **Verify:** `npm test -w back -- src/a.test.ts`\n- **Done:** a\n"
    )
    (task,) = plan.tasks
    assert (task.title, task.verify) == ("Fix Task 2: b", ("npm test -w back -- src/a.test.ts",))
    assert task.files == (FileClaim("change", "a - b.md"),)


def test_words_before_a_path_in_backticks_do_not_hide_it() -> None:
    plan, findings, _ = read(
        "# Plan\n\n## Task 1: A\n\n**Files:**\n- Create/Modify: `src/a.ts`\n- Optional: `b.md` / `c.md`\n"
        "- (new) `d/e.mjs` (or `.ts`)\n- Inspect: `packages/`\n- Remove: `old.py`\n- Update the `Engine(...)` callers\n"
    )
    assert plan.tasks[0].files == (
        *(FileClaim("change", path) for path in ("src/a.ts", "b.md", "c.md", "d/e.mjs")),
        FileClaim("read", "packages/"),
        FileClaim("delete", "old.py"),
    )
    assert findings == [("dialect.unread-path", 11)]


def test_a_title_can_say_the_kind_of_its_task_and_a_dependency_why_it_is_one() -> None:
    head = (
        "---\nphase: C\nplan: 3\ntype: execute\nwave: 2\n"
        'depends_on:\n  - "PLAN-1 (the API)"\n  - ../C/PLAN-2-b.md\n---\n'
    )
    plan, findings, _ = read(
        f"{head}### Task 1 (auto): A\n\n### Task 2 (checkpoint:decision — may wait): B\n\n### Task 3 (optional): C\n",
        ".planning/phases/C/PLAN-3-c.md",
    )
    assert (plan.depends_on, findings) == (("01", "02"), [])
    assert [(task.title, task.kind) for task in plan.tasks] == [
        ("A", "build"), ("B", "decision"), ("(optional): C", "build"),
    ]  # fmt: skip


def test_a_section_of_tasks_can_be_deeper_and_its_labels_say_kind_and_what_people_verify() -> None:
    plan, findings, _ = read(
        "# Plan\n\n### Tasks\n\n#### Task 1: A\n\n**Type:** checkpoint:human-verify\n\n"
        "**Verify:** Look at the page\n\n#### Notes\n\nText.\n"
    )
    (task,) = plan.tasks
    assert (task.title, task.kind, findings) == ("A", "human-verify", [])
    assert [c.text for c in task.acceptance] == ["Look at the page"]
