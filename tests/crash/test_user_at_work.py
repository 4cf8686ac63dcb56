"""A user works on beside a run: nothing is lost, and the harness sees a text that is, R-GIT-3."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.crash import programme, user_at_work
from tests.crash.busy_user import Diary, Save
from tests.crash.programme import LOST_BYTES, OTHER
from tests.crash.user_at_work import OWN, Scene
from tests.support.project import shell, task


@pytest.mark.timeout(120)
def test_what_a_user_saves_stages_and_commits_beside_a_run_is_kept() -> None:
    """R-GIT-3, T22."""
    programme.on_a_push(user_at_work.PROGRAMME)


@pytest.mark.nightly
def test_the_harness_sees_that_a_program_overwrites_files_of_the_user(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 1)
    path = scene.files["T1-01"]
    once = "".join(f"echo gone > {scene.project.folder / path}; " for path in OWN)
    steps = [shell(f"for i in 1 2 3 4 5 6 7 8 9; do {once} sleep 0.1; done; echo T1-01 >> {path}")]
    scene.project.plan([task("T1-01", files=f"modify `{path}`", steps=steps)])
    with user_at_work.working(scene, 1) as user:
        user_at_work.start(scene, user, {})
        diary = user.end()
    wrong = [words for kind, words in user_at_work.wrong(scene, diary) if kind == LOST_BYTES]
    assert any("after attempt.started T1-01 and before" in words for words in wrong), wrong


@pytest.mark.nightly
def test_the_harness_sees_each_kind_of_loss(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 2)
    repo = scene.project.repo
    repo.write("own-0.txt", "kept\n")
    repo.write("made-2.txt", "of a task\n")
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "user 1")
    repo.write("own-0.txt", "later\n")
    repo.write_all(dict.fromkeys(("shared-1.txt", "own-3.txt"), "of the user\n"))
    repo.git("commit", "--quiet", "-m", "Task\n\nIdumb-Task: T1-01\nIdumb-Attempt: 1", "shared-1.txt", "own-3.txt")
    scene.events.append({"kind": "task.completed", "task": "T1-01", "attempt": 1, "at": "2026-01-01T00:00:00Z"})
    saves = [Save(OWN[0], text, "in place", 0.0) for text in ("kept\n", "later\n", "replaced\n", "lost\n")]
    diary = Diary(saves, ["replaced\n"], {OWN[1]: "0" * 40}, ["user 1", "user 2"])
    assert [(kind, re.sub("[0-9a-f]{40}", "ID", words)) for kind, words in user_at_work.wrong(scene, diary)] == [
        (
            LOST_BYTES,
            "'lost', saved (in place) after nothing and before task.completed T1-01, is nowhere; now there: 'later\\n'",
        ),
        (LOST_BYTES, "own-1.txt: what the user staged, ID, is nowhere"),
        (LOST_BYTES, "commits of the user that are not on the branch: ['user 2']"),
        (OTHER, "the commit of T1-01, ID, has ('own-3.txt', 'shared-1.txt')"),
        (OTHER, "T1-01 is completed, and its commit, ID, has a text of the user"),
        (OTHER, "a commit of the user, ID, has ('made-2.txt', 'own-0.txt')"),
    ]
