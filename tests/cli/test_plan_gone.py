"""The plan of a finished run may be deleted or half edited: what looks back uses the plan that ran."""

from __future__ import annotations

import pytest

from tests.support.plans import PLAN, run
from tests.support.project import Project, making


@pytest.mark.parametrize("broken", [False, True], ids=["gone", "half edited"])
def test_rollback_and_undo_need_no_present_plan(project: Project, *, broken: bool) -> None:
    """R-GIT-3."""
    project.plan([making("T1-01", "a.txt")])
    assert run(project).code == 0
    if broken:
        project.repo.write(PLAN, "---\ntype: plan\n")
    else:
        (project.folder / PLAN).unlink()
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not (project.folder / "a.txt").exists()
    assert project.quick(*project.undoing()).code == 0
    assert (project.folder / "a.txt").exists()


def test_show_uses_the_plan_that_ran_if_the_present_one_is_gone(project: Project) -> None:
    """R-GIT-3."""
    project.plan([making("T1-01", "a.txt")])
    assert run(project).code == 0
    (project.folder / PLAN).unlink()
    shown = project.quick("show", "T1-01", "--json").data
    assert (shown["id"], shown["status"]) == ("T1-01", "completed")
    assert "+" in project.quick("show", "T1-01", "--diff", "--json").data["diff"]
