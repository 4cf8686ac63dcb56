"""R-PLAN-9: `idumb import` at the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.cli import opened_services
from idumb.domain.action import Answer as UserAnswer
from idumb.domain.action import Decision
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project

SOURCE = "specs/001-shop/tasks.md"
TASKS = "# Tasks: Shop\n\n## Phase 1: Setup\n\n- [ ] T001 Make `a.txt`\n- [ ] T002 Make `b.txt`\n"
PLAN = ".planning/phases/7/01-PLAN.md"
# Makes the files that the prompt lists as the task's own.
BUILDER = r"""grep -o 'create `[a-z.]*`' | cut -d '`' -f 2 | while read -r name; do echo made > "$name"; done"""


def with_source(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    (project.folder / "builder.sh").write_text(BUILDER, encoding="utf-8")
    project.configure("builder: agent\nbindings:\n  agent: {adapter: command, argv: [sh, builder.sh]}\n")
    place = project.folder / SOURCE
    place.parent.mkdir(parents=True)
    place.write_text(TASKS, encoding="utf-8")
    project.repo.commit("a plan of spec-kit")
    return project


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return with_source(sandbox)


def done(sandbox: GitSandbox) -> Project:
    """The source is imported as phase 7, and both tasks are completed."""
    project = with_source(sandbox)
    assert project.quick("import", SOURCE, "--to", "7", "--json").data["path"] == PLAN
    add_checks(project)
    assert project.execute("--no-verify", phase="7").code == 0
    return project


def add_checks(project: Project) -> None:
    text = project.read(PLAN)
    for name in ("a", "b", "c"):
        text = text.replace(f"- [ ] Make `{name}.txt`\n", f"- [ ] Make `{name}.txt` — check: `test -s {name}.txt`\n")
    (project.folder / PLAN).write_text(text, encoding="utf-8")
    project.commit_own()


def test_a_source_that_changed_is_shown_and_completed_work_stays(prepared: Prepared) -> None:
    project = prepared.get(done)
    before = project.read(PLAN)
    again = project.quick("import", SOURCE, "--json").data
    assert (again["written"], [row["missing"] for row in again["tasks"]]) == (False, [[], []])
    (project.folder / SOURCE).write_text(TASKS + "- [ ] T003 Make `c.txt`\n", encoding="utf-8")
    shown = project.quick("import", SOURCE, "--json")
    assert (shown.code, shown.error["code"]) == (4, "import.not-confirmed")
    assert "T7-03: Make `c.txt`" in shown.error["details"]["diff"]
    assert project.read(PLAN) == before
    (project.folder / SOURCE).write_text(TASKS.replace("Make `b", "Please make `b"), encoding="utf-8")
    kept = project.quick("import", SOURCE, "--yes", "--json")
    assert (kept.code, kept.data["written"], project.read(PLAN)) == (0, False, before)
    assert kept.data["changes"] == ["T7-02 changed in the source; it stays as it is"]  # because it is completed
    told = project.quick("import", SOURCE).out
    assert f"{kept.data['changes'][0]}\n{PLAN} was not changed.\n" in told


def halted(sandbox: GitSandbox) -> Project:
    """The source is imported and run until its second task, which nobody can do yet, has failed."""
    project = with_source(sandbox)
    assert project.quick("import", SOURCE, "--to", "7", "--json").code == 0
    add_checks(project)
    text = project.read(PLAN).replace("test -s b.txt", "test -s wanted.txt")
    (project.folder / PLAN).write_text(text, encoding="utf-8")
    project.commit_own()
    assert project.execute("--max-attempts", "1", phase="7").code == 1
    return project


def test_a_new_item_without_a_check_waits_in_the_plan_until_the_run_is_amended(prepared: Prepared) -> None:
    project = prepared.get(halted)
    (project.folder / SOURCE).write_text(TASKS.replace("Make `b", "Please make `b"), encoding="utf-8")
    assert project.quick("import", SOURCE, "--yes", "--json").data["next"] == ["idumb resume 7"]
    assert project.quick("import", SOURCE, "--to", "8", "--json").error["code"] == "import.elsewhere"
    (project.folder / SOURCE).write_text(TASKS + "- [ ] T003 Make `c.txt`\n", encoding="utf-8")
    written = project.quick("import", SOURCE, "--yes", "--json")
    assert (written.code, written.data["next"]) == (0, ["idumb check-plan 7", "idumb amend 7 --from-file"]), written
    assert project.quick("show", "T7-01", "--json").data["run"] is None  # no run has all tasks of the plan
    assert project.quick("resume", "7", "--json").code in (3, 4)
    text = project.read(PLAN).replace("- [ ] Make `c.txt`\n", "- [ ] Make `c.txt` — check: `test -s c.txt`\n")
    (project.folder / PLAN).write_text(text, encoding="utf-8")
    amended = project.quick("amend", "7", "--from-file", "--yes", "--json")
    assert (amended.code, amended.data["version"]) == (0, 3), amended


class Editing:
    """A person who edits a file before the yes."""

    def __init__(self, place: Path, text: str) -> None:
        self._place, self._text = place, text

    def ask(self, decision: Decision) -> UserAnswer:
        self._place.write_text(self._text, encoding="utf-8")
        return UserAnswer(decision.id, "yes", "pat")


def test_a_file_that_changes_while_its_change_is_shown_is_not_overwritten(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = prepared.get(done)
    text = project.read(PLAN) + "\nMine.\n"
    person = Editing(project.folder / PLAN, text)
    monkeypatch.setattr(opened_services, "_asker", lambda *_, **__: person)
    (project.folder / SOURCE).write_text(TASKS + "- [ ] T003 Make `c.txt`\n", encoding="utf-8")
    answer = project.quick("import", SOURCE, "--json")
    assert (answer.code, answer.error["code"]) == (4, "import.changed"), answer
    assert project.read(PLAN) == text


def test_a_source_stays_in_the_format_and_list_that_it_was_imported_in(project: Project) -> None:
    """A file of several formats is not read in another one because a flag was forgotten."""
    assert project.quick("import", SOURCE, "--from", "checklist", "--to", "7", "--json").code == 0
    for path in (SOURCE, "specs/001-shop"):
        again = project.quick("import", path, "--json")
        assert (again.data["kind"], again.data["changes"]) == ("checklist", []), again
    other = project.quick("import", SOURCE, "--from", "spec-kit", "--json")
    assert (other.error["code"], other.error["hint"]) == ("import.other-format", f"idumb import {SOURCE}")


def test_a_source_that_moved_updates_its_plan_and_another_one_gets_its_own(project: Project) -> None:
    assert project.quick("import", "specs/001-shop", "--to", "7", "--json").code == 0
    old, new = project.folder / SOURCE, project.folder / "archive/tasks.md"
    new.parent.mkdir()
    new.write_text(TASKS.replace("- [ ] T002", "- [x] T002"), encoding="utf-8")
    assert project.quick("import", "archive", "--to", "8", "--json").data["path"] == ".planning/phases/8/01-PLAN.md"
    (project.folder / ".planning/phases/8/01-PLAN.md").unlink()
    old.unlink()
    moved = project.quick("import", "archive", "--yes", "--json")
    assert (moved.data["path"], moved.data["changes"]) == (PLAN, ["T7-02 has another mark in the source"])
    new.write_text(TASKS.replace("`b", "`c"), encoding="utf-8")  # half of it is another plan
    assert project.quick("import", "archive", "--to", "8", "--json").data["path"] == ".planning/phases/8/01-PLAN.md"


def test_items_that_moved_keep_their_own_files_and_checks(project: Project) -> None:
    place = project.folder / "TODO.md"
    place.write_text("- [ ] Make a\n- [ ] Make b\n", encoding="utf-8")
    assert project.quick("import", "TODO.md", "--to", "7", "--json").code == 0
    text = project.read(PLAN).replace("- [ ] Make a\n", "- [ ] Make a — check: `test -s a.txt`\n")
    (project.folder / PLAN).write_text(text, encoding="utf-8")
    place.write_text("- [ ] Think\n- [ ] Make b\n- [ ] Make a\n", encoding="utf-8")
    answer = project.quick("import", "TODO.md", "--yes", "--json")
    assert answer.data["changes"] == [
        "T7-01 has another place in the source",
        "T7-02 has another place in the source",
        "T7-03 is new in the source",
    ]
    tasks = project.quick("check-plan", "7", "--json").data["read"][0]
    assert tasks["depends_on"] == {"T7-01": ["T7-02"], "T7-02": ["T7-03"], "T7-03": []}
    first = project.read(PLAN).partition("### T7-02")[0]
    assert "### T7-01: Make a\n" in first
    assert "test -s a.txt" in first


def test_what_cannot_be_imported_is_refused_without_a_trace(project: Project) -> None:
    (project.folder / "notes.md").write_text("Only text.\n", encoding="utf-8")
    for arguments, code in (
        (("import", "notes.md"), "import.unknown-format"),
        (("import", "missing.md"), "plan.unreadable"),
    ):
        answer = project.quick(*arguments, "--json")
        assert (answer.code, answer.error["code"]) == (3, code)
    assert not project.exists(".planning/phases/7")


def test_a_task_that_its_tool_calls_done_needs_no_builder_and_the_phase_is_verified(project: Project) -> None:
    """R-PLAN-9: its mark is history. Without the mark it is a task like any other."""
    (project.folder / SOURCE).write_text(TASKS.replace("- [ ] T001", "- [x] T001"), encoding="utf-8")
    answer = project.quick("import", SOURCE, "--to", "7", "--json")
    assert [(row["done"], row["missing"]) for row in answer.data["tasks"]] == [(True, []), (False, ["a check"])]
    add_checks(project)
    place = project.folder / PLAN
    place.write_text(project.read(PLAN).replace(" — check: `test -s a.txt`", ""), encoding="utf-8")
    project.commit_own()
    ran = project.execute(phase="7")
    assert (ran.code, ran.data["outcome"], ran.data["verification"]["status"]) == (0, "complete", "passed"), ran
    assert project.statuses("7") == {"T7-01": "omitted", "T7-02": "completed"}
    assert not project.exists("a.txt")
    marked = next(line for line in project.read(PLAN).split("\n") if line.startswith("- **x-source-done:**"))
    place.write_text(project.read(PLAN).replace(f"{marked}\n", ""), encoding="utf-8")
    codes = {f["code"] for f in project.quick("check-plan", "7", "--json").data["findings"]}
    assert "task.no-proof" in codes


def test_an_import_fills_the_first_phase_if_it_has_no_plan(project: Project) -> None:
    """R-PLAN-9: `init` writes a roadmap with one phase."""
    project.repo.write(".planning/ROADMAP.md", "# Roadmap\n\n## Phase 1: The first step\n\nText.\n")
    assert project.quick("import", SOURCE, "--json").data["path"] == ".planning/phases/1/01-PLAN.md"
    (project.folder / "TODO.md").write_text("- [ ] Make a\n", encoding="utf-8")
    assert project.quick("import", "TODO.md", "--json").data["path"] == ".planning/phases/2/01-PLAN.md"
