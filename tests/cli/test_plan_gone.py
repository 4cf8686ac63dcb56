"""The plan of a finished run may be deleted or half edited: what looks back uses the plan that ran."""

from __future__ import annotations

import pytest

from tests.support import ended_runs
from tests.support.plans import PLAN
from tests.support.prepared import Prepared


@pytest.mark.parametrize("broken", [False, True], ids=["gone", "half edited"])
def test_rollback_and_undo_need_no_present_plan(prepared: Prepared, *, broken: bool) -> None:
    """R-GIT-3."""
    project = prepared.get(ended_runs.done)
    if broken:
        project.repo.write(PLAN, "---\ntype: plan\n")
    else:
        (project.folder / PLAN).unlink()
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not project.exists("a.txt")
    assert project.quick(*project.undoing()).code == 0
    assert project.exists("a.txt")


def test_show_uses_the_plan_that_ran_if_the_present_one_is_gone(prepared: Prepared) -> None:
    """R-GIT-3, R-LOG-6."""
    project = prepared.get(ended_runs.done)
    (project.folder / PLAN).unlink()
    shown = project.json("show", "T1-01").data
    assert (shown["id"], shown["status"]) == ("T1-01", "completed")
    assert "+" in project.json("show", "T1-01", "--diff").data["diff"]
    assert "T1-01" in project.json("show", "T1-01", "--plan").data["text"]
    assert project.json("status").data["next"]["command"] == "idumb check-plan 1"
