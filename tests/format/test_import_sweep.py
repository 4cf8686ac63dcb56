"""R-PLAN-9: each line of a source that looks like a task, a mark, an id, a status or a dependency is used or listed."""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from collections.abc import Mapping

from idumb.domain.errors import InputError
from idumb.domain.plans.source_tasks import SourcePlan
from idumb.markdown.importers import registry
from idumb.markdown.importers.source_file import Sources
from tests.format import test_importers
from tests.hostile.mutating import mutated
from tests.support.cases import every

SPEC, OPEN, KITTY = "specs/001-a/tasks.md", "openspec/changes/x/tasks.md", "kitty-specs/001-a/tasks.md"
CHECK = "TODO.md"


def read(path: str, text: str, **beside: str) -> SourcePlan:
    return registry.read(path, {"": text, **{name.replace("__", "/"): value for name, value in beside.items()}}, None)


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
    """Return the format, and how many forms match the table, are used and are listed."""
    source = Sources(path, files)
    plan = registry.opened(source, kind)
    rows = {(name, line) for name, line, _ in plan.unread}
    found: Counter[str] = Counter()
    for file in filter(lambda each: each.is_swept, source.opened.values()):
        for line, forms in file.matched():
            used = file.used.get(line, set()).intersection(forms)
            left = len(forms) - len(used)
            found += Counter(matched=len(forms), used=len(used), listed=left if (file.path, line) in rows else 0)
    return plan.kind, found


def test_whatever_happens_to_a_source_what_matches_is_used_or_listed() -> None:
    chance = random.Random(11)
    sources = list(test_importers.SOURCES.values())
    for path, text in sources * 14:
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


def test_a_statement_is_stronger_than_the_order() -> None:
    plan = read(SPEC, "# A\n\n- [ ] T001 a (depends on T002)\n- [ ] T002 b\n")
    assert waits(plan) == {"T001": ("T002",), "T002": ()}


def test_ids_are_taken_whole() -> None:
    ids = ["T004", "T004.1", "T005A", "T006-1", "T-007"]
    text = "# A\n\n" + "".join(f"- [ ] {id} x\n" for id in ids) + "- [ ] **T008**: y (depends on T004.1, T006-1)\n"
    plan = read(SPEC, text)
    assert [task.id for task in plan.tasks] == [*ids, "T008"]
    assert waits(plan)["T008"] == ("T004.1", "T006-1", "T-007")
    assert [task.title for task in plan.tasks][-1] == "y (depends on T004.1, T006-1)"


@every("path, id, last", [(OPEN, "1.1", "2.1"), (SPEC, "T001", "T003")])
def test_the_task_after_a_repeated_id_waits_for_the_second_one_and_the_id_is_listed(
    path: str, id: str, last: str
) -> None:
    text = f"## 1. A\n- [x] {id} One\n\n## 2. B\n- [ ] {id} Three\n- [ ] {last} Four\n"
    plan = read(path, text)
    assert waits(plan)[last] == (f"{id}~2",)
    assert listed(plan) == [5]


def test_a_line_of_code_spans_opens_no_fence_and_a_fence_without_end_is_listed_with_what_it_hides() -> None:
    inline = "# A\n\n- [ ] T001 a\n\n```npm test``` must pass.\n\n- [ ] T002 b\n"
    assert list(waits(read(SPEC, inline))) == ["T001", "T002"]
    plan = read(CHECK, "- [ ] a\n```\nmake\n- [ ] b\n- [ ] c\n")
    assert (len(plan.tasks), listed(plan)) == (1, [2, 4, 5])


def test_comments_and_closed_fences_hold_no_tasks_and_a_comment_without_end_hides_none_in_silence() -> None:
    hidden = "- [ ] a\n<!-- - [ ] b -->\n<!--\n- [ ] c\n-->\n~~~\n- [ ] d\n~~~\n- [ ] e\n"
    plan = read(CHECK, hidden)
    assert ([task.title for task in plan.tasks], plan.unread) == (["a", "e"], ())
    assert listed(read(CHECK, "- [ ] a\n\n<!--\n- [ ] b\n")) == [3, 4]
    fenced = read(OPEN, "## 1. A\n- [ ] 1.1 a\n```\n- [ ] 1.2 b\n```\n")  # OpenSpec counts it
    assert (list(waits(fenced)), listed(fenced)) == (["1.1"], [4])


@every("marker", ["1.", "2)", "-", "*", "+", "  -"])
def test_every_item_with_a_box_is_a_task(marker: str) -> None:
    plan = read(SPEC, f"# A\n\n{marker} [x] T001 a\n{marker} [ ] T002 b\n\n## Check\n\n- [ ] All pass\n")
    assert (list(waits(plan)), done(plan), listed(plan)) == (["T001", "T002"], ["T001"], [8])
    assert done(read(CHECK, f"# L\n\n{marker} [x] a\n{marker} [ ] b\n")) == ["a"]


@every("line", [
        "- [ ]T002 b", "- [] T002 b", "-[ ] T002 b", "- [x ] T002 b", "* [ x] T002 b", "[ ] T002 b", "- T002 b",
        "> - [ ] T002 b", "### [x] T002 b", "| [ ] | T002 |", "| T002 | b |", "T002: b", "a. [ ] T002 b",
        "- \\[ ] T002 b",
        "    - [ ] T002 b", "<p>\n- [ ] T002 b", "- [-] T002 b", "- ☐ T002 b", "- [ ] do it", "- [ ]",
        "☑ T002 b", "• [ ] T002 b",
    ])  # fmt: skip
def test_a_slip_of_the_pen_is_listed(line: str) -> None:
    plan = read(SPEC, f"# A\n\n- [ ] T001 a\n\ntext\n\n{line}\n\n- [ ] T003 c\n")
    number = 8 if "\n" in line else 7
    assert number in listed(plan)
    assert {"T001", "T003"} <= waits(plan).keys()


def test_an_item_without_a_box_beside_items_with_one_is_listed() -> None:
    assert listed(read(CHECK, "1. [x] a\n2. b\n3. [ ] c\n")) == [2]
    assert listed(read(CHECK, "# A\n\n- [ ] a\n  - detail\n  - [ ] part\n")) == []


def test_steps_and_headings_that_are_no_tasks_here_are_listed() -> None:
    plan = read(CHECK, "# P\n\n## Context\n\n1. no step\n\n## Steps\n\n1. Make it\n2. Test it\n")
    assert (list(waits(plan)), listed(plan)) == (["1", "2"], [5])
    boxes = read(CHECK, "# P\n\n### Step 1: A\n\n- [ ] a\n\n### Step 2: B\n\ntext\n")
    assert ([task.title for task in boxes.tasks], listed(boxes)) == (["a"], [7])


def test_a_byte_order_mark_and_other_line_ends_change_nothing() -> None:
    for text in ("\ufeff- [x] a\n- [ ] b\n", "- [x] a\r\n- [ ] b\r\n", "- [x] a\r- [ ] b\r"):
        plan = read(CHECK, text)
        assert (list(waits(plan)), done(plan)) == (["a", "b"], ["a"])
    assert read(SPEC, "\ufeff# Tasks: Shop\n\n- [ ] T001 a\n").title == "Shop"


def task(id: str, status: str = "To Do", needs: str = "", more: str = "", body: str = "x\n") -> str:
    head = f"id: {id}\ntitle: {id}\nstatus: {status}\nassignee: []\ndependencies: [{needs}]\n{more}"
    return f"---\n{head}---\n\n## Description\n\n{body}"


def test_backlog_compares_ids_without_case_prefix_and_zeros_and_unknown_ones_are_listed() -> None:
    files = {
        "tasks/1.md": task("TASK-1"), "tasks/2.md": task("TASK-2", needs="task-1"),
        "tasks/3.md": task("TASK-3", needs="02, 77"), "tasks/4.md": task("TASK-4", needs="TASK-3"),
        "tasks/5.md": task("TASK-4.1", more="parent_task_id: task-4\n"),
        "tasks/6.md": task("TASK-6", body="Depends on TASK-1.\n"),
    }  # fmt: skip
    plan = registry.read("backlog", files, None)
    assert waits(plan) == {
        "TASK-1": (), "TASK-2": ("TASK-1",), "TASK-3": ("TASK-2",), "TASK-4": ("TASK-3", "TASK-4.1"),
        "TASK-4.1": ("TASK-3",), "TASK-6": ("TASK-1",),
    }  # fmt: skip
    assert next(row for row in plan.unread if "77" in row[2])[:2] == ("backlog/tasks/3.md", 6)


def test_the_last_status_of_the_board_and_the_folder_of_completed_tasks_mean_done() -> None:
    files = {
        "config.yml": 'statuses: ["Offen", "Läuft", "Fertiggestellt"]\n', "tasks/1.md": task("A-1", "Fertiggestellt"),
        "tasks/2.md": task("A-2", "Läuft"), "completed/3.md": task("A-3", "Läuft"), "archive/tasks/4.md": task("A-4"),
        "drafts/5.md": task("A-5"),
    }  # fmt: skip
    plan = registry.read("backlog", files, None)
    assert (list(waits(plan)), done(plan)) == (["A-1", "A-2", "A-3"], ["A-1", "A-3"])
    assert {row[0] for row in plan.unread} >= {"backlog/archive/tasks/4.md", "backlog/drafts/5.md"}


def test_criteria_of_both_kinds_are_read_and_a_ticked_one_of_an_open_task_is_listed() -> None:
    criteria = "- [ ] #1 It works\n- [x] #2 It is fast\n"
    body = f"x\n\n## Acceptance Criteria\n\n{criteria}\n## Definition of Done\n\n- [ ] #1 Tests\n"
    plan = registry.read("backlog/tasks/a.md", {"": task("A-1", body=body)}, None)
    assert ([one.text for one in plan.tasks[0].acceptance], listed(plan)) == (["It works", "It is fast", "Tests"], [16])
    assert listed(registry.read("a.md", {"": task("A-1", "Done", body=body)}, None)) == []


def lists(*rows: dict[str, object]) -> str:
    return json.dumps({"master": {"tasks": rows}}, indent=1)


def test_subtasks_wait_for_what_their_parent_needs_and_ids_are_compared_as_texts() -> None:
    page = {
        "id": 1,
        "title": "Page",
        "dependencies": [2, "9"],
        "subtasks": [{"id": 1, "title": "L"}, {"id": "2", "title": "M", "dependencies": [1]}],
    }
    plan = read("tasks.json", lists(page, {"id": "2", "title": "Api", "status": "odd"}, {"title": "no id"}))
    assert waits(plan) == {"1.1": ("2",), "1.2": ("1.1", "2"), "1": ("2", "1.1", "1.2"), "2": ()}
    assert sorted(text for _, _, text in plan.unread) == [
        "a task without an id: no id",
        "the dependency of 1 on 9, no task of this source",
        "the status odd of 2",
    ]
    assert min(listed(plan)) > 3
    assert list(waits(read("t.json", '{"tasks": [{"id": 4.10, "title": "a"}, {"id": 4.1, "title": "b"}]}'))) == [
        "4.10",
        "4.1",
    ]


def test_a_key_of_a_json_task_that_states_what_the_tool_does_not_know_is_listed() -> None:
    sub = {"id": 1, "title": "S", "parentId": 7}
    task = {"id": 7, "title": "A", "blockedBy": [1], "dependsOn": [], "completed": True, "createdAt": "x"}
    plan = read("tasks.json", lists({**task, "subtasks": [sub]}))
    assert [why for _, _, why in plan.unread] == ["blockedBy of 7: 1", "completed of 7: true"]


def test_a_value_of_another_form_is_read_or_listed() -> None:
    rows = (
        {"id": 1, "title": "A", "status": ["done"], "dependencies": {"why": 2}, "subtasks": {"id": 9}},
        {"id": 2, "title": "B", "status": {"is": "done"}, "requires": [1], "dependencies": [{"id": 1}]},
    )
    plan = read("tasks.json", json.dumps({"tasks": rows, "archived": [{"id": 3, "title": "C"}]}))
    assert (done(plan), waits(plan)) == (["1"], {"1": (), "2": ("1",)})
    assert sorted(text for _, _, text in plan.unread) == [
        "requires of 2: 1",
        "subtasks of 1: 9",
        "the dependency of 1 on why: 2, no task of this source",
        "the list `archived`",
        "the status is: done of 2",
    ]
    todos = "- {id: a, content: A, status: [done]}\n- {id: b, content: B, dependencies: [{id: a}, {a: why}]}\n"
    plan = read("x.plan.md", f"---\ntodos:\n{todos}---\n")
    assert (done(plan), waits(plan), listed(plan)) == (["a"], {"a": (), "b": ("a",)}, [4])
    kitty = {
        "tasks.md": "## WP01: A\n\n## WP02: B\n",
        "tasks/WP02.md": prompt("WP02", "[WP01: first]", "lane: [done]\n"),
    }
    plan = registry.read("kitty-specs/001-a", kitty, None)
    assert (done(plan), waits(plan)["WP02"]) == (["WP02"], ("WP01",))


def test_documents_of_backlog_are_no_tasks_and_what_is_in_its_folder_of_tasks_is_read_or_listed() -> None:
    files = {
        "tasks/1.md": task("A-1", "Won't do", needs="{A-9: why}"),
        "tasks/2.md": "# A-2\n",
        "docs/3.md": task("doc-1"),
        "decisions/4.md": task("decision-1"),
        "README.md": "# Tasks\n",
    }
    plan = registry.read("backlog", files, None)
    assert list(waits(plan)) == ["A-1"]
    assert [(row[0][-4:], row[1], row[2].partition(":")[0]) for row in plan.unread] == [
        ("1.md", 4, "the status Won't do of A-1"),
        ("1.md", 6, "the dependency of A-1 on A-9"),
        ("2.md", 1, "no task"),
    ]


def test_a_status_of_an_open_task_of_gsd_and_a_heading_beside_its_tasks_are_listed() -> None:
    text = "# P\n\n## Phase 1: A\n\n### Task 1: A\n\n**status:** DONE\n**Done:** It works\n\n## Phase 2: B\n\ntext\n"
    assert listed(read("docs/p.md", text)) == [7, 10]


def test_packages_wait_for_what_their_sections_name_and_for_nothing_else() -> None:
    text = (
        "# W\n\n## Work Package WP01: A\n\n- [x] T001 a\n\n### Dependencies\n\n- None (WP02 builds on this).\n\n"
        "## Work Package WP02: B\n\n- [ ] T002 b\n\n### Dependencies\n\n- Depends on WP01 (`make()`).\n"
        "- Blocks WP03\n\n## WP03 — C\n\n**Dependencies**: WP01 (schema), WP02 (api)\n\n- [ ] T003 c\n\n"
        "## Work Package 4 — D\n\n**Depends on**: WP2-WP3.\n"
    )
    plan = read(KITTY, text)
    assert waits(plan) == {"WP01": (), "WP02": ("WP01",), "WP03": ("WP01", "WP02"), "WP04": ("WP02", "WP03")}
    assert (done(plan), listed(plan)) == (["WP01"], [18])


def prompt(id: str, needs: str = "[]", more: str = "") -> str:
    return f"---\nwork_package_id: {id}\ntitle: {id}\ndependencies: {needs}\n{more}---\n\nDo it.\n"


def test_a_package_with_a_file_is_done_by_its_lane_alone_and_a_fence_states_nothing() -> None:
    section = "## Work Package WP01: A\n\n- [x] T001 x\n\n```\nDepends on: WP02\n```\n"
    plan = registry.read("kitty-specs/001-a", {"tasks.md": section, "tasks/WP01-a.md": prompt("WP01")}, None)
    assert (done(plan), waits(plan)) == ([], {"WP01": ()})
    own = prompt("WP01").replace("Do it.", "- [x] T001 x")
    assert done(registry.read("kitty-specs/001-a/tasks/WP01-a.md", {"": own}, None)) == []


def test_a_dependency_that_is_only_partly_read_is_listed() -> None:
    needs = '["None, but WP02", "WP01 unless WP03"]'
    plan = registry.read(
        "kitty-specs/001-a", {"tasks.md": "## WP01: A\n", "tasks/WP04-d.md": prompt("WP04", needs)}, None
    )
    assert sorted(text for _, _, text in plan.unread) == [
        "dependencies: None, but WP02",
        "dependencies: WP01 unless WP03",
    ]


def test_prompt_files_are_stronger_than_sections_and_events_than_both() -> None:
    sections = "".join(
        f"## Work Package {id}: {id}\n\n- [ ] T00{n} x\n\n" for n, id in enumerate(("WP01", "WP02", "WP03"), 1)
    )
    files = {
        "tasks.md": f"# W\n\n{sections}", "tasks/WP01-a.md": prompt("WP01", more="lane: done\n"),
        "tasks/WP02-b.md": prompt("WP02", "WP01", "lane: planned\n"),
        "tasks/done/WP03-c.md": prompt("WP03", '"WP01, WP02"'),
        "tasks/WP04-d.md": prompt("WP04", "[WP03, the team]", "lane: lost\n"),
        "status.events.jsonl": '{"wp_id": "WP02", "to_lane": "x"}\n{"wp_id": "WP02", "to_lane": "done"}\n{"x": 1}\n{'
    }  # fmt: skip
    plan = registry.read("kitty-specs/001-a", files, None)
    assert waits(plan) == {"WP01": (), "WP02": ("WP01",), "WP03": ("WP01", "WP02"), "WP04": ("WP03",)}
    assert done(plan) == ["WP01", "WP02", "WP03"]
    files["tasks.md"] += "### Dependencies\n\n- WP01\n"  # of WP03, whose own file may say nothing of it
    files["tasks/done/WP03-c.md"] = "---\nwork_package_id: WP03\n---\nx\n"
    assert waits(registry.read("kitty-specs/001-a", files, None))["WP03"] == ("WP01",)
    assert sorted(text for _, _, text in plan.unread) == [
        "dependencies: the team",
        "no event: {",
        "the lane lost of WP04",
    ]


HEADED = "# P\n\n**Goal:** g\n\n### Task 1: A\n\n- [x] **Step 1: x**\n- [x] y\n\n### Task 2: B\n\n- [x] x\n- [ ] y\n"
SLICE = "# S01: Base\n\n## Tasks\n\n- [x] **T01: A** `est:5m`\n  - Do: a\n- [ ] **T02: B** `est:5m`\n"


@every("path, text, ids", [("docs/p.md", HEADED, ["1"]), ("S01-PLAN.md", SLICE, ["T01"])])
def test_a_ticked_task_or_one_with_ticked_steps_is_done(path: str, text: str, ids: list[str]) -> None:
    assert done(read(path, text)) == ids


def test_a_plan_of_gsd_with_a_summary_is_done_and_what_only_the_plan_says_is_carried_or_listed() -> None:
    text = test_importers.GSD.replace("wave: 1", "wave: 2\ndepends_on: ['01-02']\nmust_haves: {truths: [It greets]}")
    path = "old/01-01-PLAN.md"
    plan = read(path, text)
    assert (done(plan), [each.text for each in plan.criteria], listed(plan)) == ([], ["It greets"], [4, 5])
    assert "- [ ] It greets — human\n" in test_importers.written(plan)
    files = {"": text, "01-01-SUMMARY.md": "---\nphase: 1\n---\n"}
    assert len(done(registry.read(path, files, None))) == 2
    files["01-01-SUMMARY.md"] = "---\nstatus: halted\n---\n"
    assert done(registry.read(path, files, None)) == []


def test_todos_without_content_and_states_that_say_more_than_done_are_listed() -> None:
    done_one, cancelled = (
        "  - id: {0}\n    content: {0}\n    status: {1}\n".format(*row)
        for row in (("a", "completed"), ("c", "cancelled"))
    )
    plan = read("x.plan.md", f"---\ntodos:\n{done_one}  - id: b\n{cancelled}---\n- [ ] d\n")
    assert (done(plan), list(waits(plan)), listed(plan)) == (["a"], ["a", "c"], [6, 9, 11])
