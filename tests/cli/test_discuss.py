"""`plan discuss`, and `plan` commands that add a phase or a task to what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import scripted_roles
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making
from tests.support.scripted_roles import PlanningProject

CONTEXT = ".planning/phases/2/2-CONTEXT.md"


@pytest.fixture
def planning(sandbox: GitSandbox, tmp_path: Path) -> PlanningProject:
    return scripted_roles.create(sandbox, tmp_path / "agents")


def test_questions_are_written_to_the_context_file_and_answered_once(planning: PlanningProject) -> None:
    """R-ADAPT-4, R-ASK-2."""
    run = planning.project.quick
    answer = run("plan", "discuss", "2", "--json")
    assert (answer.code, answer.error["code"]) == (5, "question.waiting")
    first, second = answer.data["open"][:2]
    answered = run("plan", "discuss", "2", "--answer", f"{first}=everybody", "--json")
    assert (answered.code, answered.data["answered"]) == (0, [first])
    place = planning.project.folder / CONTEXT
    place.write_text(place.read_text().replace("_Not answered yet._", "By hand.", 1))
    again = run("plan", "discuss", "2", "--json")
    assert (again.code, len(again.data["open"])) == (5, len(answer.data["open"]) - 2)
    assert [q["answer"] for q in again.data["questions"]][:2] == ["everybody", "By hand."]
    before = place.read_bytes()
    for identity, code in ((first, "question.answered"), (second, "question.answered"), ("Q-99", "question.unknown")):
        assert run("plan", "discuss", "2", "--answer", f"{identity}=x", "--json").error["code"] == code
    empty = run("plan", "discuss", "2", "--answer", f"{again.data['open'][0]}= ", "--json")
    assert empty.error["code"] == "question.no-answer"
    assert place.read_bytes() == before


def test_a_phase_is_appended_to_the_roadmap_and_nothing_else_changes(planning: PlanningProject) -> None:
    """R-PLAN-11."""
    before = planning.project.read(".planning/ROADMAP.md")
    added = planning.project.quick("roadmap", "--add", "Say\nbye <!-- x", "--json")
    assert added.data["added"] == "3"
    assert added.data["phases"][-1]["phase"] == "3"
    after = planning.project.read(".planning/ROADMAP.md")
    assert after == before + "\n## Phase 3: Say bye &lt;!-- x\n"
    assert planning.project.quick("roadmap", "--add", " ", "--json").error["code"] == "roadmap.no-title"


def test_no_phase_is_appended_in_another_encoding_than_that_of_the_roadmap(planning: PlanningProject) -> None:
    """R-PLAN-11: editors of Windows save UTF-16; no editor could read both in one file."""
    place = planning.project.folder / ".planning/ROADMAP.md"
    place.write_text(place.read_text(encoding="utf-8"), encoding="utf-16")
    before = place.read_bytes()
    refused = planning.project.quick("roadmap", "--add", "Say bye", "--json")
    assert (refused.code, refused.error["code"], place.read_bytes()) == (3, "roadmap.unreadable", before)


def test_a_phase_is_inserted_after_another_with_a_number_between(planning: PlanningProject) -> None:
    """R-PLAN-11."""
    for after, insertion, number in (
        ("6", "## Phase 6: F\n", "06.1"),
        ("06", "## Phase 6: F\n\n## Phase 06.1: G\n", "06.2"),
        ("6.1", "## Phase 6: F\n\n## Phase 06.1: G\n", "06.2"),
        ("06.1", "## Phase 6: F\n\n## Phase 6.1: G\n\n## Phase 6.2: H\n", "06.1.1"),
        ("12", "## Phase 12: F\n", "12.1"),
    ):
        text = f"# Roadmap\n\n{insertion}\n## Phase 13: Z\n"
        (planning.project.folder / ".planning/ROADMAP.md").write_text(text, encoding="utf-8")
        words = ("--add", "Repair", "--after", after, "--goal", "It works")
        answer = planning.project.quick("roadmap", *words, "--json")
        assert (answer.code, answer.data["added"]) == (0, number), answer
        after_that = planning.project.read(".planning/ROADMAP.md")
        assert after_that.replace(f"## Phase {number}: Repair\n\nIt works\n\n", "") == text
        named = [row["phase"] for row in answer.data["phases"]]
        assert named.index(number) < named.index("13")
    assert number in planning.project.quick("roadmap").out


def test_an_invalid_insertion_changes_nothing(planning: PlanningProject) -> None:
    """R-PLAN-11."""
    before = planning.project.read(".planning/ROADMAP.md")
    for arguments, code in (
        (("--after", "1"), 2),
        (("--goal", "G"), 2),
        (("--add", "A", "--after", "99"), 3),
        (("--add", " ", "--after", "1"), 3),
    ):
        assert planning.project.quick("roadmap", *arguments, "--json").code == code, arguments
    assert planning.project.read(".planning/ROADMAP.md") == before


PLAN = ".planning/phases/1/01-PLAN.md"
MORE = ("plan", "add-task", "1", "--task", "Write more", "more.txt", "test -e more.txt")


@pytest.fixture
def project(project: Project) -> Project:
    project.plan([making("T1-01", "a.txt"), making("T1-07", "b.txt", after="T1-01")], tail="\n## Notes\n\nMine.\n")
    return project


def test_a_task_is_added_and_every_other_byte_stays(project: Project) -> None:
    """R-PLAN-10: it follows the last task, with the next free id."""
    place = project.folder / PLAN
    before = place.read_bytes()
    answer = project.quick(*MORE, "--task", "Read it", "read more.txt", "true", "--json")
    assert (answer.code, answer.data["tasks"]) == (0, ["T1-08", "T1-09"])
    after = place.read_bytes()
    begin = after.index(b"\n\n### T1-08: Write more")
    end = begin + len(after) - len(before)
    assert after[:begin] + after[end:] == before
    assert b"- **Depends on:** T1-07\n- **Files:** create `more.txt`\n" in after
    checked = project.quick("check-plan", "1", "--json")
    assert (checked.code, checked.data["tasks"]) == (0, 4)


def test_a_task_added_to_a_phase_that_ran_is_added_to_its_run(project: Project) -> None:
    """R-PLAN-10."""
    assert project.execute("--no-verify").code == 0
    added = project.quick(*MORE, "--yes", "--json")
    assert (added.code, added.data["amendment"]["version"]) == (0, 2), added
    assert project.statuses() == {"T1-01": "completed", "T1-07": "completed", "T1-08": "ready"}


def test_a_task_that_makes_the_phase_invalid_is_not_written(project: Project) -> None:
    """R-PLAN-10."""
    before = (project.folder / PLAN).read_bytes()
    for flags in (("--depends-on", "T1-99"), ("--requirement", "REQ-9"), ("--plan", "07")):
        answer = project.quick(*MORE, *flags, "--json")
        assert answer.code == 3, answer.out
    assert (project.folder / PLAN).read_bytes() == before


def test_a_task_that_is_added_to_an_approved_phase_ends_the_approval(project: Project) -> None:
    """R-LOCK-8."""
    assert project.quick("approve", "1", "--hash", project.contract_hash()).code == 0
    added = project.quick(*MORE, "--json")
    assert (added.code, added.data["next"][0]) == (0, "idumb approve 1"), added.out
    assert project.quick("check-plan", "1", "--json").data["approval"]["standing"] == "void"
