"""kill -9 before and after every durable write, in plans of seven shapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import kill_points, programme
from tests.crash.kill_points import Case
from tests.crash.shapes import SHAPES


@pytest.mark.timeout(120)
def test_a_run_killed_at_any_point_resumes_to_the_same_end() -> None:
    """F30, R-RUN-2, R-GIT-2, R-LOG-1, R-LOG-6, R-PLAN-8."""
    programme.on_a_push(kill_points.PROGRAMME)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_programme_detects_a_broken_recovery(tmp_path: Path) -> None:
    """A harness that never failed proves nothing."""
    (scene,) = kill_points.scenes(tmp_path, SHAPES[:1])
    point = "before SqliteEventLog.append step.finished evidence.recorded attempt.finished"
    number = next(n for n, name in enumerate(scene.points[0]) if name.startswith(point))
    assert list(kill_points.survive(scene, Case(0, (number,)), plant="nothing is put back"))
