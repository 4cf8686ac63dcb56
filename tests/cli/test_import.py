"""R-PLAN-9: `idumb import` and `idumb export --done` at the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.cli import options
from idumb.domain.decision import Answer as UserAnswer
from idumb.domain.decision import Decision
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

SOURCE = "specs/001-shop/tasks.md"
TASKS = "# Tasks: Shop\n\n## Phase 1: Setup\n\n- [ ] T001 Make `a.txt`\n- [ ] T002 Make `b.txt`\n"
PLAN = ".planning/phases/7/01-PLAN.md"
# Makes the files that the prompt lists as the task's own.
BUILDER = r"""grep -o 'create `[a-z.]*`' | cut -d '`' -f 2 | while read -r name; do echo made > "$name"; done"""


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    (project.folder / "builder.sh").write_text(BUILDER, encoding="utf-8")
    project.configure("builder: agent\nbindings:\n  agent: {adapter: command, argv: [sh, builder.sh]}\n")
    place = project.folder / SOURCE
    place.parent.mkdir(parents=True)
    place.write_text(TASKS, encoding="utf-8")
    project.repo.commit("a plan of spec-kit")
    return project


def add_checks(project: Project) -> None:
    text = project.read(PLAN)
    for name in ("a", "b", "c"):
        text = text.replace(f"- [ ] Make `{name}.txt`\n", f"- [ ] Make `{name}.txt` — check: `test -s {name}.txt`\n")
    (project.folder / PLAN).write_text(text, encoding="utf-8")
    project.commit_own()


def test_an_imported_plan_runs_once_its_checks_are_added_and_its_marks_go_back(project: Project) -> None:
    answer = project.quick("import", "specs/001-shop", "--to", "7", "--json")
    assert answer.code == 0, answer
    assert [(t["id"], t["source_id"], t["missing"]) for t in answer.data["tasks"]] == [
        ("T7-01", "T001", ["a check"]),
        ("T7-02", "T002", ["a check"]),
    ]
    assert "Add a check to: T7-01, T7-02" in project.quick("import", SOURCE).out
    findings = project.quick("check-plan", "7", "--json").data["findings"]
    assert {f["code"] for f in findings if f["severity"] == "error"} == {"task.no-proof"}
    add_checks(project)
    assert project.execute(phase="7").code == 0
    shown = project.quick("export", "--done", "--json")
    assert (shown.code, shown.error["code"]) == (4, "export.not-confirmed")
    assert project.read(SOURCE) == TASKS
    assert project.quick("export", "--done", "7", "--yes", "--json").data["files"] == [
        {"path": SOURCE, "tasks": ["T001", "T002"]}
    ]
    assert project.read(SOURCE) == TASKS.replace("[ ]", "[x]")
    assert project.quick("export", "--done", "--json").data["diff"] == ""


def test_a_source_that_changed_is_shown_and_amends_the_run(project: Project) -> None:
    assert project.quick("import", SOURCE, "--to", "7", "--json").data["path"] == PLAN
    add_checks(project)
    before = project.read(PLAN)
    assert project.quick("import", SOURCE, "--json").data["written"] is False
    assert project.execute(phase="7").code == 0
    (project.folder / SOURCE).write_text(TASKS + "- [ ] T003 Make `c.txt`\n", encoding="utf-8")
    shown = project.quick("import", SOURCE, "--json")
    assert (shown.code, shown.error["code"]) == (4, "import.not-confirmed")
    assert "T7-03: Make `c.txt`" in shown.error["details"]["diff"]
    refused = project.quick("import", SOURCE, "--yes", "--json")
    assert (refused.code, project.read(PLAN)) == (3, before)  # the new task has no check yet, so no run can adopt it
    (project.folder / SOURCE).write_text(TASKS.replace("Make `b", "Please make `b"), encoding="utf-8")
    refused = project.quick("import", SOURCE, "--yes", "--json")
    assert (refused.code, project.read(PLAN)) == (4, before)  # a completed task cannot change


class Editing:
    """A person who edits a file before the yes."""

    def __init__(self, place: Path, text: str) -> None:
        self._place, self._text = place, text

    def ask(self, decision: Decision) -> UserAnswer:
        self._place.write_text(self._text, encoding="utf-8")
        return UserAnswer(decision.id, "yes", "pat")


def test_a_file_that_changes_while_its_change_is_shown_is_not_overwritten(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project.quick("import", SOURCE, "--to", "7", "--json").code == 0
    add_checks(project)
    assert project.execute(phase="7").code == 0
    source, plan = project.folder / SOURCE, project.folder / PLAN
    for place, text, arguments in (
        (source, TASKS + "Mine.\n", ("export", "--done")),
        (plan, project.read(PLAN) + "\nMine.\n", ("import", SOURCE)),
    ):
        person = Editing(place, text)
        monkeypatch.setattr(options, "_asker", lambda *_, person=person, **__: person)
        answer = project.quick(*arguments, "--json")
        assert (answer.code, answer.error["code"]) == (4, f"{arguments[0]}.changed"), answer
        assert place.read_text(encoding="utf-8") == text
        source.write_text(TASKS + "- [ ] T003 Make `c.txt`\n", encoding="utf-8")


def test_a_source_of_two_plans_gets_the_marks_of_both_and_one_that_is_gone_stops_no_other(
    project: Project,
) -> None:
    (project.folder / "TODO.md").write_text("- [ ] Make `d.txt`\n", encoding="utf-8")
    for source, phase in ((SOURCE, "7"), ("TODO.md", "8")):
        assert project.quick("import", source, "--to", phase, "--json").code == 0
    add_checks(project)
    place = ".planning/phases/8/01-PLAN.md"
    (project.folder / place).write_text(
        project.read(place).replace("`d.txt`\n- **x", "`d.txt` — check: `test -s d.txt`\n- **x"), encoding="utf-8"
    )
    text = project.read(PLAN)
    second = text.index("### T7-02")
    (project.folder / ".planning/phases/7/02-PLAN.md").write_text(
        text[: text.index("### T7-01")].replace('plan: "01"', 'plan: "02"') + text[second:], encoding="utf-8"
    )
    (project.folder / PLAN).write_text(text[:second], encoding="utf-8")
    project.commit_own()
    assert [project.execute(phase=phase).code for phase in ("7", "8")] == [0, 0]
    (project.folder / "TODO.md").unlink()
    answer = project.quick("export", "--done", "--yes", "--json")
    assert answer.code == 0, answer
    assert [row["tasks"] for row in answer.data["files"]] == [["T001", "T002"]]
    assert [row["path"] for row in answer.data["unmarked"]] == ["TODO.md"]
    assert project.read(SOURCE) == TASKS.replace("[ ]", "[x]")


def test_items_that_moved_do_not_get_the_checks_of_their_neighbours(project: Project) -> None:
    place = project.folder / "TODO.md"
    place.write_text("- [ ] Make a\n- [ ] Make b\n", encoding="utf-8")
    assert project.quick("import", "TODO.md", "--to", "7", "--json").code == 0
    before = project.read(PLAN)
    place.write_text("- [ ] Think\n- [ ] Make a\n- [ ] Make b\n", encoding="utf-8")
    answer = project.quick("import", "TODO.md", "--yes", "--json")
    assert (answer.code, answer.error["code"]) == (4, "import.moved")
    assert answer.error["details"]["tasks"] == {"T7-01": "2", "T7-02": "3"}
    assert project.read(PLAN) == before
    moved = before.replace("x-source-id:** 2", "x-source-id:** 3").replace("x-source-id:** 1", "x-source-id:** 2")
    (project.folder / PLAN).write_text(moved, encoding="utf-8")
    assert project.quick("import", "TODO.md", "--yes", "--json").code == 0
    assert [line for line in project.read(PLAN).split("\n") if line.startswith("### ")] == [
        "### T7-01: Make a",
        "### T7-02: Make b",
        "### T7-03: Think",
    ]


def test_what_cannot_be_imported_is_refused_without_a_trace(project: Project) -> None:
    (project.folder / "notes.md").write_text("Only text.\n", encoding="utf-8")
    for arguments, code in (
        (("import", "notes.md"), "import.unknown-format"),
        (("import", "missing.md"), "plan.unreadable"),
        (("export", "--done"), "export.nothing-imported"),
    ):
        answer = project.quick(*arguments, "--json")
        assert (answer.code, answer.error["code"]) == (3, code)
    assert not project.exists(".planning/phases/7")
