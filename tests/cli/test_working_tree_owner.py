"""`status` and `next` show the owner of the working tree and unfinished operations."""

from __future__ import annotations

import os
import re

import pytest

from tests.support import ended_runs, seed
from tests.support.prepared import Prepared
from tests.support.project import Project, shell, task, write

JUDGED = "  - [ ] It is good — human\n"


def test_the_owner_of_the_working_tree_is_shown_while_there_is_one(project: Project) -> None:
    """R-RUN-9: also in the view that an earlier command kept."""
    gate = project.folder.parent / "gate"
    os.mkfifo(gate)
    steps = [write("a.txt", "a\n"), shell(f"cat {gate}")]
    project.plan([task("T1-01", files="create `a.txt`", steps=steps)])
    with project.beside("execute-phase", "1", "--approve", project.approval(), "--no-verify") as run:
        with gate.open("w"):  # the builder has begun
            owners = [project.json("status").data["owner"] for _ in range(2)]
            words = project.quick("next").out
        assert run.wait().code == 0
    for owner in owners:
        assert (owner["pid"], owner["command"], owner["standing"]) == (run.pid, "execute-phase", "running")
    assert re.search(
        rf"In use by process {run.pid} on .*, since [0-9-]+ [0-9:]+ UTC: execute-phase$", words, re.MULTILINE
    )
    assert project.json("status").data["owner"] is None
    assert "In use" not in project.quick("status").out


def test_next_names_what_is_under_way_then_what_waits_then_what_can_run(project: Project) -> None:
    project.plan([task("T1-01", files="create `a.txt`", steps=[write("a.txt", "a\n")])])
    assert project.json("next").data["next"]["command"] == "idumb execute-phase 1"
    judged = task("T2-01", files="create `b.txt`", criteria=JUDGED, steps=[write("b.txt", "b\n")])
    project.plan([judged], phase="2")
    assert project.json("execute-phase", "2", "--approve", project.approval("2")).code == 5
    following = project.json("next").data["next"]
    assert following["command"] == "idumb decisions"
    assert (following["phase"], following["why"]) == ("2", "phase 2 needs an answer")
    project.plan([task("T3-01", files="create `c.txt`", check="true")], phase="3", head="builder: editor\n")
    assert project.quick("start", "T3-01", "--approve", project.approval("3")).code == 0
    assert project.json("next").data["next"]["command"] == "idumb submit T3-01"


@pytest.mark.parametrize("command", seed.one_on_a_push(["rollback", "undo"], "unfinished"))
def test_next_suggests_the_command_that_finishes_unfinished_work(prepared: Prepared, command: str) -> None:
    """R-GIT-3: a rollback or an undo that git refused to commit, of a phase that is verified."""
    project = prepared.get(ended_runs.done)
    back: tuple[str, ...] = ("rollback", "1", "--to", "start", "--yes")
    words, finishing = back, " ".join(["idumb", *back])
    if command == "undo":
        assert project.quick(*back).code == 0
        words, finishing = project.undoing(), "idumb undo"
    hook = project.repo.git_dir / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
    hook.chmod(0o755)
    assert project.quick(*words).code == 1
    hook.unlink()
    view = project.json("status").data
    assert view["next"]["command"] == finishing
    assert view["phases"][0]["restoring"]["command"] == view["next"]["command"]
    assert "was interrupted" in project.quick("status").out
    assert project.quick(*view["next"]["command"].split()[1:]).code == 0
    after = project.json("status").data
    assert after["phases"][0]["restoring"] is None
    assert after["next"]["command"] != view["next"]["command"]
