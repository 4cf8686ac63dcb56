"""kill -9 at every step of delivering a builder's commits to the branch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crash import kill_points
from tests.crash.kill_points import Case, Scene
from tests.crash.shapes import EXECUTE, Shape, Step
from tests.support import project as projects
from tests.support import seed
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


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", seed.one_on_a_push(("intended", "delivered", "branch moved"), "delivery"))
def test_a_run_killed_while_it_takes_commits_ends_with_each_of_them_once(tmp_path: Path, name: str) -> None:
    """R-GIT-2, R-GIT-6: the log names the tip before the branch moves, so recovery adopts it or repeats the rest."""
    with Warm(tmp_path / "out") as warm:
        (scene,) = kill_points.scenes(tmp_path, warm, (SHAPE,), fine=True)
        points = _window(scene)
        point = points[name]
        wrong = list(kill_points.survive(scene, Case(0, (point,)), fine=True, twice=False))
        assert not wrong, (scene.points[0][point], wrong)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_user_commits_before_a_run_that_was_killed_while_it_took_commits_is_resumed(tmp_path: Path) -> None:
    with Warm(tmp_path / "out") as warm:
        (scene,) = kill_points.scenes(tmp_path, warm, (SHAPE,), fine=True)
        _survives_a_commit_of_the_users(scene, _window(scene)["delivered"])


def _window(scene: Scene) -> dict[str, int]:
    """Points of the second task: after its intent, its delivery, and the move of the branch."""
    names = scene.points[0]
    intended = max(n for n, name in enumerate(names) if name.startswith("after") and "checkpoint.intended" in name)

    def following(start: str) -> int:
        return next(n for n in range(intended, len(names)) if names[n].startswith(start))

    return {
        "intended": intended,
        "delivered": following("after GitTrees.restore"),
        "branch moved": following("after git_program.write"),
    }


def _survives_a_commit_of_the_users(scene: Scene, point: int) -> None:
    """The user commits before the run is resumed: nothing of it is lost, and the task is repeated on top."""
    project = scene.copy(0)
    scene.say(project, scene.shape.steps[0], {"at": point, "fine": True})
    project.repo.git("commit", "-q", "-m", "Theirs", "--", "staged.txt")
    answer = scene.go_on(project, scene.shape.steps[0])
    assert answer is not None
    assert answer.code == 0, answer
    subjects = [line for line in project.subjects() if line in {"Add a", "Say more", "Say two", "Theirs"}]
    assert subjects == ["Add a", "Say more", "Theirs", "Say two", "Say more"]
    assert project.repo.git("show", "HEAD:staged.txt") == "three"
    assert project.read("mine.txt") == "never committed\n"
