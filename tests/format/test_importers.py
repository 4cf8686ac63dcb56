"""R-PLAN-9: plans of other tools become plans of idumb. `cases/sources` has each form and the plan made of it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from msgspec.structs import replace

from idumb.domain.errors import InputError
from idumb.domain.finding import errors
from idumb.domain.plans import imported
from idumb.domain.plans.imported import Target
from idumb.domain.plans.source_tasks import SourcePlan, SourceTask, unproven
from idumb.markdown.importers import registry, signs, task_managers
from idumb.markdown.plan_files import PlanningFolder
from idumb.markdown.plans import plan_parser
from idumb.markdown.syntax import source
from tests.format import golden
from tests.support.cases import every
from tests.support.growth import assert_linear


@every(
    "kind, text, code",
    [
        ("task-master", '{"tasks": [{"id": 1, "title": "\\ud83d"}]}', "import.unreadable"),
        ("", '<<<<<<< HEAD\n{"master": {"tasks": [{"id": 1, "title": "A"}]}}\n', "import.unreadable"),
        ("backlog", "- [ ] a\n", "import.unknown-format"),
        ("checklist", "---\ntype: plan\ntitle: A\ngoal: B\n---\n- [ ] a\n", "import.unknown-format"),
        ("cursor", "---\ntodos:\n---\n", "import.unknown-format"),
        ("cursor", "---\ntodos: 5\n---\n", "import.unknown-format"),
    ],
)
def test_a_value_that_gives_no_task_is_refused(kind: str, text: str, code: str) -> None:
    with pytest.raises(InputError) as refused:
        registry.read("f.json", {"": text}, kind or None)
    assert refused.value.code == code
    assert ("line 1: " in refused.value.message) == (kind == "")


@pytest.mark.parametrize(("text", "repeated"), [("{}", "\n"), ("# {}x", " "), ("# a{}b", "#")])
def test_long_runs_of_one_character_are_read_in_linear_time(text: str, repeated: str) -> None:
    def read(text: str) -> None:
        with contextlib.suppress(InputError):
            registry.read("f", {"": text}, "spec-kit")
        with contextlib.suppress(InputError):
            registry.read("f", {"": text}, None)

    assert_linear(read, lambda n: text.format(repeated * n))


def test_a_source_is_read_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-PLAN-9."""
    monkeypatch.setattr(source, "_MIB", 1 << 7)
    monkeypatch.setattr(task_managers, "_MOST_FILES", 1)
    text = golden.source_text("checklist").ljust(1 << 12)
    (tmp_path / "TODO.md").write_text(text, encoding="utf-8")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "gone.md").symlink_to("nowhere")  # no format of a checklist needs it
    folder = PlanningFolder(str(tmp_path))
    tasks = folder.source("TODO.md", None).tasks
    assert len(tasks) == 3
    (tmp_path / "TODO.md").write_text(text + "\n- [ ] one more\n", encoding="utf-8")
    with pytest.raises(InputError, match="is larger than"):
        folder.source("TODO.md", None)
    for data, why in (
        ("- [ ] café".encode("latin-1"), "not UTF-8"), ("- [ ] a".encode("utf-16"), "not UTF-8"),
        (b"- [ ] a\n<<<<<<< HEAD\n- [x] b\n=======\n- [ ] b\n>>>>>>> theirs\n", ":2: A merge conflict"),
    ):  # fmt: skip
        (tmp_path / "TODO.md").write_bytes(data)
        with pytest.raises(InputError, match=why):
            folder.source("TODO.md", None)
    backlog = tmp_path / "backlog"
    backlog.mkdir()
    for n in (1, 2):
        (backlog / f"{n}.md").write_text(golden.source_text("backlog"), encoding="utf-8")
    with pytest.raises(InputError, match="has 2 Markdown files"):
        folder.source("backlog", None)


def test_a_file_of_the_folder_where_a_command_starts_has_one_path(tmp_path: Path) -> None:
    (tmp_path / "TODO.md").write_text("- [ ] a\n", encoding="utf-8")
    paths = {PlanningFolder(str(tmp_path)).source(path, None).path for path in (".", "TODO.md")}
    assert paths == {"TODO.md"}


def test_an_imported_plan_follows_its_source_and_keeps_what_a_person_added() -> None:
    before, text = golden.source("spec-kit"), golden.source_text("spec-kit")
    own = golden.written(before).replace("  - [ ] Check them", "  - [ ] Check them — check: `pytest -q`")
    text = text.replace("Check them", "Check all").replace("[ ] T002", "[x] T002") + "- [ ] T006 Ship\n"
    changed = registry.read(before.path, {"": text}, None)
    plan = plan_parser.parse(own.encode(), "p").plan
    assert plan
    ids = imported.ids("7", changed.tasks, {now.id: id for id, now in imported.pairs(plan, changed).items()})
    after, changes = imported.updated(own, plan, changed, Target("7", "01", ids, lambda _: False))
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
    again, none = imported.updated(after, parsed.plan, changed, Target("7", "01", ids, lambda _: False))
    assert (again, none) == (after, ())
    own = "\n### T7-07: Ours\n\n- **Files:** create `x`\n- **Acceptance:**\n  - [ ] it is — check: `make`\n"
    plan, fewer = plan_parser.parse((after + own).encode(), "p").plan, replace(changed, tasks=changed.tasks[:-1])
    assert plan
    again, gone = imported.updated(after + own, plan, fewer, Target("7", "01", ids, lambda _: False))
    assert (again, gone) == (after + own, ("T7-06 is no longer in the source; it stays as it is",))


def test_a_task_is_followed_when_its_tool_writes_its_id_in_another_way() -> None:
    def read(id: str, title: str) -> SourcePlan:
        text = f"---\nid: {id}\ntitle: {title}\nstatus: To Do\nassignee: []\n---\n"
        return registry.read("backlog/tasks/a.md", {"": text}, None)

    text = golden.written(read("task-1", "A"))
    plan = plan_parser.parse(text.encode(), "p").plan
    assert plan
    for id in ("task-1", "TASK-1", "TASK-001"):
        source = read(id, "B")
        assert imported.pairs(plan, source) == {"T7-01": source.tasks[0]}
    assert imported.pairs(plan, read("TASK-2", "A")) == {}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_fields_in_any_spelling_stay_and_labels_in_a_text_of_the_source_are_text(newline: str) -> None:
    def read(files: str, mark: str) -> SourcePlan:
        return registry.read("TODO.md", {"": f"- [{mark}] Make a\n  - **Files:** `{files}`\n  - more\n- [ ] b\n"}, None)

    text = golden.written(read("a.py", " ")).replace("- **Depends on:** none", "- Verify: `make`\n* depends_on: none")
    text = text.replace("- **x-source-id:** make-a", "* __x-source-id__: make-a").replace("\n", newline)
    own = text
    for files, mark in (("b.py", "x"), ("c.py", " "), ("a.py", " ")):
        source, plan = read(files, mark), plan_parser.parse(text.encode(), "p").plan
        assert plan
        target = Target("7", "01", {"make-a": "T7-01", "b": "T7-02"}, lambda _: False)
        text, changes = imported.updated(text, plan, source, target)
        assert changes == ("T7-01 changed in the source",)
        after = plan_parser.parse(text.encode(), "p").plan
        assert after
        assert (after.tasks[0].verify, "x-source-done" in after.tasks[0].extra) == (("make",), mark == "x")
        assert f"- **Files:** `{files}`" in after.tasks[0].description
    assert text == own


@every("text", ["", "# Notes\n\nOnly text.\n", "{}", '{"tasks": [', "\0", "- [ ]\n"])
def test_a_file_without_tasks_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        registry.read("a.md", {"": text}, None)
    assert refused.value.code in ("import.unknown-format", "import.unreadable")


@every(
    "names, why, way",
    [
        (["b/tasks.md", "a/tasks.md", "archive/a/tasks.md"], "has 3 plans: a/tasks.md, b/tasks.md, ", "x/a/tasks.md"),
        (["a/PLAN.md", "b/PLAN.md"], "has 2 plans: a/PLAN.md, b/PLAN.md", "x/a/PLAN.md"),
        (["spec.md", "work/items.md"], "names no plan", "x/FILE"),
    ],
)
def test_a_folder_without_one_plan_is_refused_with_a_command_that_names_a_file(
    names: list[str], why: str, way: str
) -> None:
    for kind in (None, "spec-kit"):
        with pytest.raises(InputError, match=why) as refused:
            registry.read("x", dict.fromkeys(names, "- [ ] T001 a\n"), kind)
        assert str(refused.value.hint) == f"idumb import {way}"


def test_a_folder_around_one_plan_is_that_plan() -> None:
    assert registry.read("specs", {"001-a/tasks.md": "- [ ] T001 a\n"}, None).path == "specs/001-a/tasks.md"


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
        parsed = plan_parser.parse(golden.written(plan).encode(), ".planning/phases/7/01-PLAN.md")
        proofs = (
            [[criterion.proof for criterion in task.acceptance] for task in parsed.plan.tasks] if parsed.plan else []
        )
        if proofs != [["unproven", "unproven"], ["unproven"]]:
            wrong.append((said, proofs, parsed.findings))
    assert wrong == []


def test_a_tag_of_task_master_is_read_alone() -> None:
    text = golden.source_text("task-master")
    plan = registry.read("tasks.json", {"": text}, None, "feature")
    assert ([task.id for task in plan.tasks], plan.tag) == (["9"], "feature")
    with pytest.raises(InputError, match="it has no tag other, but feature, master"):
        registry.read("tasks.json", {"": text}, None, "other")
    with pytest.raises(InputError, match="has no tags"):
        registry.read("TODO.md", {"": "- [ ] a\n"}, None, "feature")


def test_an_empty_list_of_task_master_is_not_the_one_that_is_read() -> None:
    text = '{"master": {"tasks": []}, "page": {"tasks": [{"id": 3, "title": "A"}]}, "new": {"tasks": []}}'
    plan = registry.read("tasks.json", {"": text}, None)
    assert ([task.id for task in plan.tasks], plan.tag, plan.unread) == (["3"], "page", ())


def test_only_what_looks_like_a_file_of_the_repository_is_one() -> None:
    text = (
        "see `console.log`, `a.py`, `.eslintrc.json` and src/x-y.ts, not /home/me/my-app/src/a.ts,"
        " ~/my-notes/b.md or `x.y.z`; ./b/c.md:3-5 too, 在d/e.md中实现, `e.py:12`, and `d/test_f.py::test_g`"
    )
    assert signs.paths_in(text) == ("a.py", ".eslintrc.json", "src/x-y.ts", "b/c.md", "d/e.md", "e.py", "d/test_f.py")
