"""kill -9 at random moments and at durable calls, up to five in a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import kill_points, programme, random_kill
from tests.crash.kill_points import Case, Scene
from tests.crash.shapes import PAIR


@pytest.mark.timeout(120)
def test_kills_at_random_moments_and_during_recovery_lose_and_repeat_nothing() -> None:
    """F30, R-LOG-6: recovery is itself safe to kill."""
    assert programme.on_a_push(random_kill.PROGRAMME).notes["killed while recovering"]


@pytest.mark.nightly
def test_the_programme_detects_a_recovery_that_commits_twice(tmp_path: Path) -> None:
    """A harness that never failed proves nothing."""
    scene = Scene(PAIR, tmp_path / "pair")
    scene.prepare(fine=True)
    kill = "after GitHistory.advance main"
    wrong = dict(kill_points.survive(scene, Case(0, (kill,)), plant="commits are not looked for", fine=True))
    assert programme.REPEATED_TASK in wrong
