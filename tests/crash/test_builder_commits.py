"""kill -9 between all that it takes to let the branch have what a builder committed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crash import kill_points
from tests.crash.kill_points import Case, Scene
from tests.crash.shapes import EXECUTE, Shape, Step
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task
from tests.support.warm import Warm

SCRIPT = (
    "case $IDUMB_TASK in T1-01) mkdir sub; echo one > sub/a.txt; git rm -q old.txt; git add sub;"
    " git commit -qm 'Add a';;"
    " *) echo two >> sub/a.txt; git commit -qam 'Say two';; esac; echo more >> sub/a.txt; git commit -qam 'Say more'"
)


def _build(place: Path) -> Project:
    """Two tasks whose builder commits twice each, and work of the user's that is none of it."""
    project = projects.create(
        GitSandbox.create(place), files={"old.txt": "old\n", "staged.txt": "one\n", ".gitignore": "*.log\n"}
    )
    agent = f"{{adapter: command, argv: [sh, -c, {json.dumps(SCRIPT)}]}}"
    project.configure(f"git: {{commit: builder}}\nbuilder: agent\nbindings:\n  agent: {agent}\n")
    project.plan(
        [
            task("T1-01", files="create `sub/a.txt`, delete `old.txt`", check="grep -q more sub/a.txt"),
            task("T1-02", files="modify `sub/a.txt`", check="grep -q two sub/a.txt", after="T1-01"),
        ]
    )
    project.repo.write("staged.txt", "two\n")
    project.repo.git("add", "staged.txt")
    project.repo.write("staged.txt", "three\n")
    project.repo.write("mine.txt", "never committed\n")
    return project


SHAPE = Shape("builders that commit", _build, (Step(EXECUTE),))
ABOUT = (
    "checkpoint.intended",
    "GitTrees.restore",
    "GitTrees.keep ",
    "GitHistory.advance",
    "program.write",
    "refs.move",
)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_killed_while_commits_are_taken_ends_with_each_of_them_once(tmp_path: Path) -> None:
    """R-GIT-2, R-GIT-6: the log names the tip before the branch moves, so recovery adopts it or repeats the rest."""
    with Warm(tmp_path / "out") as warm:
        (scene,) = kill_points.scenes(tmp_path, warm, (SHAPE,), fine=True)
        cases = _window(scene)
        assert len(cases) >= 8
        for case in cases:
            wrong = list(kill_points.survive(scene, case, fine=True))
            assert not wrong, (scene.points[0][int(case.kills[0])], wrong)


def _window(scene: Scene) -> list[Case]:
    """Every point from the second task's intent to its checkpoint."""
    names = scene.points[0]
    first = max(n for n, name in enumerate(names) if name.startswith("before") and "checkpoint.intended" in name)
    last = max(n for n, name in enumerate(names) if name.startswith("after") and "checkpoint.recorded" in name)
    return [Case(0, (n,)) for n in range(first, last + 1) if any(word in names[n] for word in ABOUT)]
