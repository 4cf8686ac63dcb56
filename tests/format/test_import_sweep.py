"""R-PLAN-9: each line of a source that looks like a task, a mark, an id, a status or a dependency is used or listed."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Mapping

import pytest

from idumb.domain.errors import InputError
from idumb.domain.plans.source_tasks import SourcePlan
from idumb.markdown.importers import registry
from idumb.markdown.importers.source_file import Sources
from tests.format import golden
from tests.hostile.mutating import mutated
from tests.support.cases import every
from tests.support.seed import commit_seed

SPEC, CHECK = "specs/001-a/tasks.md", "TODO.md"


def read(path: str, text: str) -> SourcePlan:
    return registry.read(path, {"": text}, None)


def waits(plan: SourcePlan) -> dict[str, tuple[str, ...]]:
    return {task.id: task.depends_on for task in plan.tasks}


def done(plan: SourcePlan) -> list[str]:
    return [task.id for task in plan.tasks if task.done]


def listed(plan: SourcePlan) -> list[int]:
    return [line for _, line, _ in plan.unread]


def phases(heading: str, second: str) -> str:
    first = "- [ ] T001 a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n"
    return f"# Tasks: A\n\n## {heading} 1\n\n{first}\n## {heading} 2\n\n{second}"


def counts(path: str, files: Mapping[str, str], kind: str | None = None) -> tuple[str, Counter[str]]:
    """Return the format, and how many signs match the table, are used and are listed."""
    source = Sources(path, files)
    plan = registry.opened(source, kind)
    rows = {(name, line) for name, line, _ in plan.unread}
    found: Counter[str] = Counter()
    for file in filter(lambda each: each.lists_unread, source.opened.values()):
        for line, signs in file.matched():
            used = file.used.get(line, set()).intersection(signs)
            left = len(signs) - len(used)
            found += Counter(matched=len(signs), used=len(used), listed=left if (file.path, line) in rows else 0)
    return plan.kind, found


@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.nightly)])
def test_whatever_happens_to_a_source_what_matches_is_used_or_listed(times: int) -> None:
    chance = random.Random(commit_seed() if times == 1 else 11)
    for path, text in golden.source_texts() * times:
        changed = mutated((text,), chance).decode(errors="replace")
        with contextlib.suppress(InputError):
            _, found = counts(path, {"": changed})
            assert found["matched"] == found["used"] + found["listed"], changed


@every(
    "words, needed",
    [
        ("(depends on T001-T003)", "T001 T002 T003"),
        ("(depends on T001-003)", "T001 T002 T003"),
        ("(Depends on: T001, `T002` and **T003**)", "T001 T002 T003"),
        ("requires T001..T003", "T001 T002 T003"),
        ("after T001 through T003", "T001 T002 T003"),
        ("(depends on T001/T002)", "T001 T002"),
        ("(depends on tasks T001 & T002)", "T001 T002"),
    ],
)
def test_lists_and_ranges_of_ids_are_dependencies_beside_the_phase_before(words: str, needed: str) -> None:
    plan = read(SPEC, phases("Phase", f"- [ ] T004 [P] d {words}\n"))
    assert set(waits(plan)["T004"]) == {*needed.split(), "T002", "T003"}
    assert plan.unread == ()


@every("words", [
        "(does not depend on T001)", "(depends on T099)", "(depends on T001-T099)", "blocks T003",
        "like T001", "(depends on the team)", "(DONE)", "[in progress]", "~~gone~~", "US1 → **US2**",
        "Story 2 requires Story 1",
    ])  # fmt: skip
def test_what_a_task_says_and_idumb_does_not_read_is_listed_with_its_line(words: str) -> None:
    plan = read(SPEC, phases("Phase", f"- [ ] T004 [P] d {words}\n"))
    assert (set(waits(plan)["T004"]), listed(plan)) == ({"T002", "T003"}, [11])


@every("heading", ["Phase", "阶段", "Fase", "🚀 Phase", "**Phase**", "Milestone"])
def test_the_sections_of_a_document_are_its_phases_whatever_they_are_called(heading: str) -> None:
    assert waits(read(SPEC, phases(heading, "- [ ] T004 [P] d\n")))["T004"] == ("T002", "T003")
    deeper = phases(heading, "- [ ] T004 [P] d\n").replace("## ", "### ").replace("# Tasks", "# T\n\n## Tasks")
    assert waits(read(SPEC, deeper))["T004"] == ("T002", "T003")


@every("marker", ["1.", "2)", "-", "*", "+", "  -"])
def test_every_item_with_a_box_is_a_task(marker: str) -> None:
    plan = read(SPEC, f"# A\n\n{marker} [x] T001 a\n{marker} [ ] T002 b\n\n## Check\n\n- [ ] All pass\n")
    assert (list(waits(plan)), done(plan), listed(plan)) == (["T001", "T002"], ["T001"], [8])
    assert done(read(CHECK, f"# L\n\n{marker} [x] a\n{marker} [ ] b\n")) == ["a"]


@every("line", [
        "- [ ]T002 b", "- [] T002 b", "-[ ] T002 b", "- [x ] T002 b", "* [ x] T002 b", "[ ] T002 b", "- T002 b",
        "> - [ ] T002 b", "### [x] T002 b", "| [ ] | T002 |", "| T002 | b |", "T002: b", "a. [ ] T002 b",
        "- \\[ ] T002 b", "### Task 2: b",
        "    - [ ] T002 b", "<p>\n- [ ] T002 b", "- [-] T002 b", "- ☐ T002 b", "- [ ] do it", "- [ ]",
        "☑ T002 b", "• [ ] T002 b",
    ])  # fmt: skip
def test_a_slip_of_the_pen_is_listed(line: str) -> None:
    plan = read(SPEC, f"# A\n\n- [ ] T001 a\n\ntext\n\n{line}\n\n- [ ] T003 c\n")
    number = 8 if "\n" in line else 7
    assert number in listed(plan)
    assert {"T001", "T003"} <= waits(plan).keys()


HEAD = "---\nid: TASK-1\ntitle: A\nstatus: To Do\nassignee: []\n"


@every("key", ["depends_on:\n  - TASK-2", "blocked_by:\n- TASK-2", "requires: [TASK-2]"])
def test_a_key_of_front_matter_that_a_tool_does_not_have_is_listed_in_each_form(key: str) -> None:
    assert listed(read("backlog/tasks/a.md", f"{HEAD}{key}\n---\n")) == [6]


def test_a_part_that_only_its_parent_names_is_a_part_or_listed() -> None:
    files = {
        "a.md": f"{HEAD}dependencies: [TASK-3]\nsubtasks:\n  - task-2\n  - 9\n---\n",
        "b.md": HEAD.replace("TASK-1", "TASK-2") + "---\n",
        "c.md": HEAD.replace("TASK-1", "TASK-3") + "---\n",
        "d.md": HEAD.replace("title: A", "title: ''") + "---\n",
    }
    plan = registry.read("backlog/tasks", files, None)
    assert waits(plan) == {"TASK-1": ("TASK-3", "TASK-2"), "TASK-2": ("TASK-3",), "TASK-3": ()}
    assert [(path, line) for path, line, _ in plan.unread] == [("backlog/tasks/a.md", 2), ("backlog/tasks/d.md", 1)]


def test_subtasks_of_task_master_may_have_the_id_of_their_parent() -> None:
    parts = '[{"id": "1.1", "title": "a"}, {"id": "1.2", "title": "b", "dependencies": ["1.1"]}]'
    text = f'{{"tasks": [{{"id": 1, "subtasks": {parts}}}, {{"id": 2, "dependencies": ["1.2"]}}]}}'
    assert waits(read("tasks.json", text)) == {"1.1": (), "1.2": ("1.1",), "1": ("1.1", "1.2"), "2": ("1.2",)}


def test_todos_of_cursor_outside_of_its_list_are_listed() -> None:
    inner = "todos:\n      - id: c\n        content: C\n    blockedBy:\n      - a"
    text = f"---\ntodos:\n  - id: a\n    content: A\n    status: Completed\n    {inner}\n---\n"
    plan = read(".cursor/plans/a.plan.md", text)
    assert (done(plan), listed(plan)) == (["a"], [8, 9])


@every("status, is_done", [
        ("complete", True), ("", True), ("'passed'", True), ("halted # by design", False), ("blocked", False),
        ("partial", False),
    ])  # fmt: skip
def test_a_summary_of_gsd_ends_a_task_unless_it_says_that_work_is_left(status: str, *, is_done: bool) -> None:
    task = '<task type="auto"><name>A</name><verify><automated>make</automated></verify></task>'
    plan, summary = f"---\nphase: 1\nplan: 01\nwave: 1\n---\n{task}\n", f"---\nstatus: {status}\n---\nstatus: x\n"
    files = {"": plan, "01-01-SUMMARY.md": summary}
    found = registry.read("old/01-01-PLAN.md", files, None)
    assert (len(done(found)), listed(found)) == ((1, []) if is_done else (0, [2]))
    files = {"": "- [ ] **T01: A**\n- [ ] **T02: B**\n", "tasks/T01-SUMMARY.md": summary}
    found = registry.read(".gsd/S01-PLAN.md", files, None)
    assert (done(found), listed(found)) == ((["T01"], []) if is_done else ([], [2]))
    said = plan.replace("wave: 1", f"wave: 1\nstatus: {status.strip(chr(39)) or 'draft'}")
    found = registry.read("old/01-01-PLAN.md", {"": said}, None)
    assert (len(done(found)), listed(found)) == ((1, []) if is_done and status else (0, [5]))


def test_boxes_in_the_tag_of_gsd_2_are_tasks() -> None:
    text = "---\nphase: 1\nplan: 01\n---\n<tasks>\n- [x] **T01**: a\n  - Do: it\n- [ ] **T02**: b\n</tasks>\n"
    plan = read(".gsd/phases/01-a/01-01-PLAN.md", text)
    assert (waits(plan), done(plan), listed(plan)) == ({"T01": (), "T02": ("T01",)}, ["T01"], [])


def test_own_ids_are_kept_beside_items_without_one() -> None:
    assert waits(read(CHECK, "- [x] P0-1: a\n- [ ] **P1-2.1: b**\n")) == {"P0-1": (), "P1-2.1": ("P0-1",)}
    mixed = read(CHECK, "- [ ] **T1: a**\n- [ ] b\n- [ ] T2: c\n- [ ] T2: d\n")
    assert [(task.id, task.title) for task in mixed.tasks[:3]] == [("T1", "**T1: a**"), ("b", "b"), ("t2-c", "T2: c")]


def test_a_folder_of_gsd_2_is_read_from_the_plan_of_its_slice() -> None:
    slice = "# S01\n\n### T01: A ✅\n\ntext\n\n### T02 — B\n\ntext\n"
    plan = registry.read(".gsd/S01", {"S01-PLAN.md": slice, "tasks/T01-PLAN.md": "# T01: A\n"}, None)
    assert waits(plan) == {"T01": (), "T02": ("T01",)}
    assert [row[:2] for row in plan.unread] == [(".gsd/S01/S01-PLAN.md", 3), (".gsd/S01/tasks/T01-PLAN.md", 1)]
