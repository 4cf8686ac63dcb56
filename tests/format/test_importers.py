"""R-PLAN-9: plans of other tools become plans of idumb that can be read again."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from idumb.domain.errors import InputError
from idumb.domain.finding import errors
from idumb.domain.plans import imported
from idumb.domain.plans.imported import Placed
from idumb.domain.plans.source_tasks import SourcePlan, SourceTask, claims, unproven
from idumb.markdown.importers import forms, registry, task_managers
from idumb.markdown.plan_files import PlanningFolder
from idumb.markdown.plans import plan_parser
from tests.support.cases import every
from tests.support.growth import assert_linear

SPEC_KIT = """# Tasks: Shop

## Phase 1: Setup

- [x] T001 Create project in src/app.py
- [ ] T002 [P] Add `src/a.py`
- [ ] T003 [P] [US1] Add src/b.py
- [ ] TXXX a placeholder

```text
- [ ] T900 an example
```

## Phase 2: Core

- [ ] T004 Join them (depends on T002)
- [ ] T005 Check them
"""
OPENSPEC = """## 1. Setup

- [x] 1.1 Make src/a.ts
- [ ] 1.2 Test it
  - with an empty list
  - [ ] 1.2.1 and a full one

## 2. Use

- [ ] 2.1 **Show** it: `id: T1-01`
- [ ] without a number
"""
TASK_MASTER = """{
  "feature": {"tasks": [{"id": 9, "title": "Other"}]},
  "master": {"tasks": [
    {"id": 1, "title": "A", "status": "done", "dependencies": [], "priority": "high", "details": "# Do\\n- it"},
    {"id": 2, "title": "B", "status": "pending", "dependencies": [1], "testStrategy": "Run it", "subtasks": [
      {"id": 1, "title": "B one", "status": "pending", "dependencies": []},
      {"id": 2, "title": "B two", "status": "in-progress", "dependencies": [1]}
    ]}
  ]}
}
"""
BACKLOG = """---
id: back-12
title: 'Short: links'
status: To Do
assignee:
  - @me
labels: []
dependencies: [back-11]
priority: high
---

## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
Shorten `src/links.py`.
<!-- SECTION:DESCRIPTION:END -->

## Acceptance Criteria
<!-- AC:BEGIN -->
- [ ] #1 It is short
- [x] #2 It is safe — check: the tests
<!-- AC:END -->
"""
SPEC_KITTY = """# Work packages

## Work Package WP01: Read (Priority: P0)

- [x] T001 Parse it
- [x] T002 Test it

## Work Package WP02: Write (Priority: P1)

- [ ] T003 Write it

### Dependencies

- WP01
"""
CURSOR = """---
name: Links
overview: Short links
todos:
  - id: make
    content: Make src/links.py
    status: completed
  - id: show
    content: Show them
    status: pending
---

# Links
"""
CHECKLIST = "# To do\n\n- [x] First\n- [ ] Second in `src/a.py`\n  - [ ] with a part\n\n> quoted\n\n* [ ] Third\r\n"
CLAUDE = (
    "# Plan\n\n## Context\n\n1. no step\n\n## Implementation steps\n\n1. **Make it**\n   - in src/a.py\n2. Test it\n"
)
GSD = (
    '---\nphase: 1\nplan: 01\nwave: 1\nautonomous: true\n---\n<tasks>\n<task type="auto">\n<name>Task 1: A</name>\n'
    "<files>src/a.py</files>\n<action>\n## Do\n- [ ] it\n</action>\n<verify><automated>pytest -q</automated></verify>\n"
    '<done>It works</done>\n</task>\n<task type="checkpoint:human-action"><action>Log in</action></task>\n</tasks>\n'
)  # fmt: skip
SOURCES: Mapping[str, tuple[str, str]] = {
    "spec-kit": ("specs/001-shop/tasks.md", SPEC_KIT),
    "openspec": ("openspec/changes/add-it/tasks.md", OPENSPEC),
    "task-master": (".taskmaster/tasks/tasks.json", TASK_MASTER),
    "backlog": ("backlog/tasks/back-12 - Short-links.md", BACKLOG),
    "spec-kitty": ("kitty-specs/001-a/tasks.md", SPEC_KITTY),
    "cursor": (".cursor/plans/links.plan.md", CURSOR),
    "checklist": ("TODO.md", CHECKLIST),
    "claude": ("/home/me/.claude/plans/a.md", CLAUDE),
    "gsd": ("old/01-01-PLAN.md", GSD),
}
IDS = {
    "spec-kit": ["T001", "T002", "T003", "T004", "T005"],
    "openspec": ["1.1", "1.2", "1.2.1", "2.1", "without-a-number"],
    "task-master": ["1", "2.1", "2.2", "2"],
    "backlog": ["back-12"],
    "spec-kitty": ["WP01", "WP02"],
    "cursor": ["make", "show"],
    "checklist": ["first", "second-in-src-a-py", "third"],
    "claude": ["1", "2"],
    "gsd": ["T1-0101", "T1-0102"],
}
DONE = {"spec-kit": ["T001"], "openspec": ["1.1"], "task-master": ["1"], "spec-kitty": ["WP01"], "cursor": ["make"],
        "checklist": ["first"]}  # fmt: skip


def source(kind: str) -> SourcePlan:
    path, text = SOURCES[kind]
    return registry.read(path, {"": text}, None)


def written(plan: SourcePlan) -> str:
    ids = imported.ids("7", plan.tasks, {})
    return imported.text(plan, Placed("7", "01", ids, lambda path: path == "src/a.py"))


@every("kind", SOURCES)
def test_a_source_is_recognized_and_becomes_a_readable_plan(kind: str) -> None:
    plan = source(kind)
    assert plan.kind == ("checklist" if kind == "claude" else kind)
    assert [task.id for task in plan.tasks] == IDS[kind]
    assert [task.id for task in plan.tasks if task.done] == DONE.get(kind, [])
    parsed = plan_parser.parse(written(plan).encode(), ".planning/phases/7/01-PLAN.md")
    assert errors(parsed.findings) == ()
    assert parsed.plan
    assert [task.extra["x-source-id"] for task in parsed.plan.tasks] == IDS[kind]
    assert {task.id for task in parsed.plan.tasks if "x-source-done" in task.extra} == {
        f"T7-{number:02d}" for number, task in enumerate(plan.tasks, 1) if task.done
    }
    tag = {"tag": "master"} if kind == "task-master" else {}
    assert parsed.plan.extra["x-source"] == {"tool": plan.kind, "path": plan.path, **tag}


def test_dependencies_follow_what_the_source_says_or_its_order() -> None:
    needs = {kind: {task.id: task.depends_on for task in source(kind).tasks} for kind in SOURCES}
    assert needs["spec-kit"] == {
        "T001": (),
        "T002": ("T001",),
        "T003": ("T001",),
        "T004": ("T002", "T003"),
        "T005": ("T004",),
    }
    assert needs["openspec"]["2.1"] == ("1.2.1",)
    assert needs["task-master"] == {"1": (), "2.1": ("1",), "2.2": ("2.1", "1"), "2": ("1", "2.1", "2.2")}
    assert needs["backlog"] == {"back-12": ()}
    assert needs["spec-kitty"]["WP02"] == ("WP01",)
    assert needs["cursor"]["show"] == ("make",)


def test_what_was_not_read_is_named_with_its_line() -> None:
    assert [(line, text) for _, line, text in source("spec-kit").unread] == [(8, "- [ ] TXXX a placeholder")]
    assert [(line, text) for _, line, text in source("openspec").unread] == []


@every("value", ['"acceptanceCriteria": 5', '"status": {}', '"description": null', '"dependencies": null'])
def test_a_value_of_another_type_is_read(value: str) -> None:
    plan = registry.read("f", {"": f'{{"tasks": [{{"id": 1, "title": "a", {value}}}]}}'}, "task-master")
    assert plan_parser.parse(written(plan).encode(), "p").plan
    assert plan.tasks[0].description == ""


@every(
    "kind, text, code",
    [
        ("task-master", '{"tasks": [{"id": 1, "title": "\\ud83d"}]}', "import.unreadable"),
        ("cursor", "---\ntodos:\n---\n", "import.unknown-format"),
        ("cursor", "---\ntodos: 5\n---\n", "import.unknown-format"),
    ],
)
def test_a_value_that_gives_no_task_is_refused(kind: str, text: str, code: str) -> None:
    with pytest.raises(InputError) as refused:
        registry.read("f", {"": text}, kind)
    assert refused.value.code == code


@pytest.mark.parametrize(("text", "repeated"), [("{}", "\n"), ("# {}x", " "), ("# a{}b", "#")])
def test_long_runs_of_one_character_are_read_in_linear_time(text: str, repeated: str) -> None:
    def read(text: str) -> None:
        with contextlib.suppress(InputError):
            registry.read("f", {"": text}, "spec-kit")
        with contextlib.suppress(InputError):
            registry.read("f", {"": text}, None)

    assert_linear(read, lambda n: text.format(repeated * n))


def test_tasks_of_a_folder_that_have_one_id_are_all_imported() -> None:
    """Branches that are merged often leave two tasks with one number."""
    files = {"tasks/b - A.md": BACKLOG, "tasks/b - B.md": BACKLOG.replace("title: ", "title: Not ")}
    plan = registry.read("backlog", files, None)
    assert [task.id for task in plan.tasks] == ["back-12", "back-12~2"]
    why = "the id back-12 of another task; here it is back-12~2"
    assert ("backlog/tasks/b - B.md", 2, why) in plan.unread
    parsed = plan_parser.parse(written(plan).encode(), ".planning/phases/7/01-PLAN.md")
    assert parsed.plan, parsed.findings


def test_a_damaged_file_of_a_folder_is_named() -> None:
    damaged = BACKLOG.replace("title: ", 'title: "\\ud83d" # ')
    files = {"tasks/a.md": damaged, "tasks/b.md": BACKLOG, "notes.md": "Text.\n"}
    plan = registry.read("backlog", files, None)
    assert [task.id for task in plan.tasks] == ["back-12"]
    assert ("backlog/tasks/a.md", 1, "its front matter cannot be read") in plan.unread


def test_a_source_is_read_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-PLAN-9."""
    monkeypatch.setattr(registry, "LARGEST", 1 << 20)
    monkeypatch.setattr(task_managers, "_MOST_FILES", 1)
    text = CHECKLIST.ljust(1 << 20)
    (tmp_path / "TODO.md").write_text(text, encoding="utf-8")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "gone.md").symlink_to("nowhere")  # no format of a checklist needs it
    folder = PlanningFolder(str(tmp_path))
    tasks = folder.source("TODO.md", None).tasks
    assert len(tasks) == 3
    (tmp_path / "TODO.md").write_text(text + "\n- [ ] one more\n", encoding="utf-8")
    with pytest.raises(InputError, match="larger than 1 MiB"):
        folder.source("TODO.md", None)
    backlog = tmp_path / "backlog"
    backlog.mkdir()
    for n in (1, 2):
        (backlog / f"{n}.md").write_text(BACKLOG, encoding="utf-8")
    with pytest.raises(InputError, match="has 2 Markdown files"):
        folder.source("backlog", None)


def test_a_file_of_the_folder_where_a_command_starts_has_one_path(tmp_path: Path) -> None:
    (tmp_path / "TODO.md").write_text(CHECKLIST, encoding="utf-8")
    paths = {PlanningFolder(str(tmp_path)).source(path, None).path for path in (".", "TODO.md")}
    assert paths == {"TODO.md"}


def test_an_imported_plan_follows_its_source_and_keeps_what_a_person_added() -> None:
    path, text = SOURCES["spec-kit"]
    before = source("spec-kit")
    own = written(before).replace("  - [ ] Check them", "  - [ ] Check them — check: `pytest -q`")
    changed = registry.read(
        path, {"": text.replace("Check them", "Check all").replace("[ ] T002", "[x] T002") + "- [ ] T006 Ship\n"}, None
    )
    plan = plan_parser.parse(own.encode(), "p").plan
    assert plan
    ids = imported.ids("7", changed.tasks, {now.id: id for id, now in imported.pairs(plan, changed).items()})
    after, changes = imported.updated(own, plan, changed, Placed("7", "01", ids, lambda _: False))
    assert changes == (
        "T7-02 has another mark in the source",
        "T7-05 changed in the source",
        "T7-06 is new in the source",
    )
    parsed = plan_parser.parse(after.encode(), "p")
    assert parsed.plan
    assert errors(parsed.findings) == ()
    assert [task.title for task in parsed.plan.tasks][-2:] == ["Check all", "Ship"]
    assert parsed.plan.tasks[4].acceptance[0].command == "pytest -q"
    again, none = imported.updated(after, parsed.plan, changed, Placed("7", "01", ids, lambda _: False))
    assert (again, none) == (after, ())


@every("text", ["", "# Notes\n\nOnly text.\n", "{}", '{"tasks": [', "\0", "- [ ]\n"])
def test_a_file_without_tasks_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        registry.read("a.md", {"": text}, None)
    assert refused.value.code in ("import.unknown-format", "import.unreadable")


def test_a_folder_is_read_as_its_tool_would() -> None:
    kitty = {
        "tasks.md": SPEC_KITTY,
        "tasks/WP02-write.md": "---\nwork_package_id: WP02\nowned_files: [src/w.py]\n---\nx\n",
    }
    plan = registry.read("kitty-specs/001-a", kitty, None)
    assert [task.files for task in plan.tasks] == [(), claims(["src/w.py"])]
    backlog = {f"tasks/back-{n} - A.md": BACKLOG.replace("back-12", f"back-{n}") for n in (12, 9)}
    assert [task.id for task in registry.read("backlog", backlog, None).tasks] == ["back-9", "back-12"]


def test_reading_a_checklist_again_finds_the_same_tasks() -> None:
    text = "# Trip\n\n- [ ] Pack\n  - [x] Socks\n  - [ ] Shirts\n- [ ] Go\n"

    first = registry.read("TODO.md", {"": text}, None)

    assert registry.read("TODO.md", {"": text}, None) == first
    assert first.tasks[0].description.splitlines() == ["- [x] Socks", "- [ ] Shirts"]


def test_equal_items_of_a_checklist_are_told_apart_by_their_headings() -> None:
    text = "# T\n## One\n- [ ] Write tests\n## Two\n- [ ] Write tests\n- [ ] Write tests\n- [ ] " + "long " * 60 + "\n"
    ids = [task.id for task in registry.read("TODO.md", {"": text}, None).tasks]
    assert ids[:3] == ["one-write-tests", "two-write-tests", "two-write-tests-2"]
    assert len(ids[3]) == 48


def test_words_of_a_source_are_no_proofs_ids_or_tasks_of_the_plan() -> None:
    """R-PLAN-9: whatever a source says, idumb can read the plan that it writes, with all tasks and without proofs."""
    every = [
        "Phase 4 - Verify every skill", "It works (human)", "It works — check: the tests", "check: `make`",
        "ok -- Human", "ok --human", "AC-2: it works", "[ ] [x] it works", "- [ ] it works", "it (check: `make`)",
        "a — keeps: `make`", "keep:", "nul\0", "T068 — Delete it", "[]", "(AC 3) it works",
        "T7-01: it works", "[T1-02] works", "it - (human)", "- ", "works\n-", "works\n==", "# #", "#",
    ]  # fmt: skip
    wrong = []
    for said in every:
        task = SourceTask("a", said, f"{said}\n\nMore.", acceptance=unproven([said, f"**b** {said}"]))
        plan = SourcePlan("checklist", "TODO.md", said, said, (task, replace(task, id="b", acceptance=())))
        parsed = plan_parser.parse(written(plan).encode(), ".planning/phases/7/01-PLAN.md")
        proofs = (
            [[criterion.proof for criterion in task.acceptance] for task in parsed.plan.tasks] if parsed.plan else []
        )
        if proofs != [["unproven", "unproven"], ["unproven"]]:
            wrong.append((said, proofs, parsed.findings))
    assert wrong == []


def test_a_title_keeps_its_last_letter() -> None:
    source = registry.read("TODO.md", {"": "# #\n\n- [ ] Learn C#\n"}, None)
    plan = plan_parser.parse(written(source).encode(), "p").plan
    assert plan
    assert [plan.title, *(task.title for task in plan.tasks)] == ["TODO.md", "Learn C#"]


def test_commands_of_several_lines_and_what_a_person_checks_are_imported_as_they_are() -> None:
    script = "set -e\nfor f in a b; do\n  test -s $f\ndone"
    text = GSD.replace("pytest -q</automated>", f"\n{script}\n</automated><human>It shines</human>")
    plan = registry.read("old/01-01-PLAN.md", {"": text}, None)
    parsed = plan_parser.parse(written(plan).encode(), ".planning/phases/7/01-PLAN.md")
    assert parsed.plan, parsed.findings
    first = parsed.plan.tasks[0]
    assert [command.strip() for command in first.verify] == [script]
    assert [(one.text, one.proof) for one in first.acceptance] == [("It shines", "human"), ("It works", "verify")]


def test_what_a_plan_of_gsd_says_of_a_task_is_in_the_imported_plan_too() -> None:
    options = (
        '<option id="a b"><name>Pg</name></option><option id="option-3">Big</option><option id="a b">Small</option>'
    )
    options = f"<options>{options}</options>"
    text = GSD.replace('human-action"><action>Log in</action>', f'decision" gate="blocking">{options}')
    text = text.replace("<files>src/a.py", "<files>src/a.py (delete), b.py")
    source = registry.read("old/01-01-PLAN.md", {"": text}, None)
    parsed = plan_parser.parse(written(source).encode(), ".planning/phases/7/01-PLAN.md")
    assert parsed.plan, parsed.findings
    first, second = parsed.plan.tasks
    assert [claim.written for claim in first.files or ()] == ["delete `src/a.py`", "create `b.py`"]
    assert (second.kind, second.notes) == ("decision", "gate: blocking")
    assert [(option.id, option.text) for option in second.options] == [
        ("a-b", "Pg"), ("option-3", "Big"), ("option-4", "Small")
    ]  # fmt: skip


def test_a_file_that_no_plan_can_name_is_listed() -> None:
    rows = '{"tasks": [{"id": 1, "title": "A", "relevantFiles": [{"path": "../x"}, {"path": "src/`y`"}]}]}'
    plan = registry.read("tasks.json", {"": rows}, None)
    assert [text for _, _, text in plan.unread] == ["the file ../x of 1, which leads out of the workspace (..)"]
    assert "`` src/`y` ``" in written(plan)


def test_a_tag_of_task_master_is_read_alone() -> None:
    path, text = SOURCES["task-master"]
    plan = registry.read(path, {"": text}, None, "feature")
    assert ([task.id for task in plan.tasks], plan.tag) == (["9"], "feature")
    assert [words for _, _, words in source("task-master").unread] == [
        "the tasks of the tag feature; read them with --tag feature"
    ]
    with pytest.raises(InputError, match="it has no tag other, but feature, master"):
        registry.read(path, {"": text}, None, "other")
    with pytest.raises(InputError, match="has no tags"):
        registry.read("TODO.md", {"": CHECKLIST}, None, "feature")


def test_only_what_looks_like_a_file_of_the_repository_is_one() -> None:
    text = (
        "see `console.log`, `a.py`, `.eslintrc.json` and src/x-y.ts, not /home/me/my-app/src/a.ts,"
        " ~/my-notes/b.md or `x.y.z`; ./b/c.md too"
    )
    assert forms.paths_in(text) == ("a.py", ".eslintrc.json", "src/x-y.ts", "b/c.md")


def test_what_tools_write_in_several_ways_is_read() -> None:
    bold = SPEC_KITTY.replace(
        "### Dependencies\n\n- WP01", "**Dependencies**: WP01 (needs WP09 later) · **Risks**: WP03"
    )
    assert registry.read("tasks.md", {"": bold}, None).tasks[1].depends_on == ("WP01",)
    twice = BACKLOG.replace("#1 It", "#1 #1 It")
    assert registry.read("b.md", {"": twice}, None).tasks[0].acceptance[0].text == "It is short"
    archived = registry.read("openspec/changes/archive/2026-01-02-add-it/tasks.md", {"": OPENSPEC}, None)
    assert archived.title == "add it"


CURSOR_BY_HAND = """---
name: Launcher
overview: Start it: fast
todos:
  - id: 'start'   # first
    content: `run.sh` starts: api, web
    status: "pending" # soon
  - id: old
    content: @scope/pkg upgrade
    status: cancelled
---
"""


def test_front_matter_without_quotes_is_read() -> None:
    first, second = registry.read("x.plan.md", {"": CURSOR_BY_HAND}, None).tasks
    assert (first.id, first.title, first.files) == ("start", "`run.sh` starts: api, web", claims(["run.sh"]))
    assert (second.title, second.done) == ("@scope/pkg upgrade", False)
    assert "cancelled in the source" in second.inferred


def test_what_follows_the_last_step_is_no_part_of_it() -> None:
    steps = "### Step 1: **Parse**\n\nRead.\n\n#### How\n\nFast.\n\n### Step 2: Test\n\n"
    text = f"# Plan\n\n## Steps\n\n{steps}## Verification\n\n1. Run it\n"
    first, second = registry.read("plan.md", {"": text}, None).tasks
    assert (first.title, first.description) == ("Parse", "Read.\n\n#### How\n\nFast.")
    assert (second.title, second.description) == ("Test", "")
