"""Power cuts on real file systems in image files; skipped with a message if they are impossible."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import disk, power_cut, programme
from tests.crash.power_cut import EXECUTE, Case, Scene
from tests.crash.programme import CannotRun, Tally


@pytest.mark.timeout(120)
def test_acknowledged_work_survives_a_power_cut_and_the_rest_continues() -> None:
    """F31, R-LOG-6."""
    programme.on_a_push(power_cut.PROGRAMME)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_programme_detects_missing_fsyncs(tmp_path: Path) -> None:
    """A harness that never failed proves nothing: acknowledged checkpoints are lost."""
    try:
        kind = disk.require()[0]
    except CannotRun as reason:
        pytest.skip(f"NO POWER WAS CUT: {reason}")
    tally = Tally()
    scene = Scene(kind, tmp_path)
    try:
        scene.prepare((EXECUTE,))
        names = scene.known[EXECUTE].points
        last = max(n for n, name in enumerate(names) if name.startswith("after SqliteEventLog.append checkpoint"))
        case = Case(0, kind, EXECUTE, at=last, share=0.0, state_on_disk=False)
        power_cut.cut_and_go_on(scene, case, tally, "nothing is forced")
    finally:
        scene.disk.unmount()
    assert any(failure.kind == programme.LOST_CHECKPOINT for failure in tally.failures), tally
