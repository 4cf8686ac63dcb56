"""`idumb plan add-task`: a task more, and no other byte of the plan."""

from __future__ import annotations

import shlex

import pytest

from tests.support.project import Project, making

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


def test_a_task_that_makes_the_phase_invalid_is_not_written(project: Project) -> None:
    """R-PLAN-10."""
    before = (project.folder / PLAN).read_bytes()
    for flags in (("--depends-on", "T1-99"), ("--requirement", "REQ-9"), ("--plan", "07")):
        answer = project.quick(*MORE, *flags, "--json")
        assert answer.code == 3, answer.out
    assert (project.folder / PLAN).read_bytes() == before


def test_in_an_approved_phase_a_person_must_agree_that_the_approval_ends(project: Project) -> None:
    """R-LOCK-8."""
    assert project.quick("approve", "1", "--hash", project.contract_hash()).code == 0
    refused = project.quick(*MORE, "--json")
    assert (refused.code, refused.error["code"]) == (4, "plan.approved")
    assert "T1-08" not in project.read(PLAN)
    added = project.quick(*shlex.split(refused.error["hint"])[1:], "--json")
    assert (added.code, added.data["next"][0]) == (0, "idumb approve 1"), added.out
    assert project.quick("check-plan", "1", "--json").data["approval"]["standing"] == "void"
