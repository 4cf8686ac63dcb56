"""`status` and `next` show the owner of the working tree and unfinished operations."""

from __future__ import annotations

import os
import re

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
