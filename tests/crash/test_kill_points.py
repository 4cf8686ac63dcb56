"""kill -9 before and after every durable write, in plans of seven shapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import kill_points, programme
from tests.crash.kill_points import Case, Scene
from tests.crash.programme import REPEATED_TASK
from tests.crash.shapes import SHAPES
from tests.support.warm import Warm


@pytest.mark.timeout(120)
def test_a_run_killed_at_any_point_resumes_to_the_same_end() -> None:
    """F30, R-RUN-2, R-GIT-2, R-LOG-1, R-LOG-6, R-PLAN-8."""
    programme.on_a_push(kill_points.PROGRAMME)


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", ["commits are not looked for", "nothing is put back"])
def test_the_programme_detects_a_broken_recovery(fault: str, tmp_path: Path) -> None:
    """A harness that never failed proves nothing."""
    point = {
        "commits are not looked for": "after GitHistory.advance main",
        "nothing is put back": "before SqliteEventLog.append step.finished evidence.recorded attempt.finished",
    }[fault]
    with Warm(tmp_path / "out") as warm:
        (scene,) = kill_points.scenes(tmp_path, warm, SHAPES[:1])
        wrong = dict(kill_points.survive(scene, Case(0, (_at(scene, point),)), plant=fault))
    assert wrong
    assert fault == "nothing is put back" or REPEATED_TASK in wrong


def _at(scene: Scene, name: str) -> int:
    return next(n for n, point in enumerate(scene.points[0]) if point.startswith(name))
