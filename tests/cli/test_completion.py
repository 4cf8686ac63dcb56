"""What a shell completes."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.support.project import IDUMB, Project, making


def completed(project: Project, *words: str) -> list[str]:
    """Return what `words` can become; the last one is incomplete. Nothing may be said to the terminal."""
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_IDUMB_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [*IDUMB], cwd=project.start, env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.nightly
def test_commands_phases_and_tasks_are_completed(project: Project) -> None:
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt")])
    assert completed(project, "idumb", "dlq", "re") == ["retry", "remove"]
    assert completed(project, "idumb", "execute-phase", "") == ["1"]
    assert completed(project, "idumb", "show", "t1-0") == ["T1-01", "T1-02"]
