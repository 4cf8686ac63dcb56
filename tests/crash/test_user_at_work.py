"""A user works on beside a run: nothing is lost, and the harness sees a text that is, R-GIT-3."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import programme, user_at_work
from tests.crash.programme import LOST_BYTES
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
