"""`status` and `next` show the owner of the working tree and unfinished operations."""

from __future__ import annotations

import os
import re

import pytest

from tests.support import ended_runs, seed
from tests.support.prepared import Prepared
from tests.support.project import Project, shell, task, write


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
