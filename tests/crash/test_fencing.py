"""An owner that was stopped, taken over and continued, and proof that a missing fence is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import fencing, programme


@pytest.mark.timeout(120)
def test_an_owner_that_continues_after_a_takeover_writes_nothing() -> None:
    """R-LOG-5, F38, T7: neither in the log nor at refs, on the branch or in the working tree."""
    programme.on_a_push(fencing.PROGRAMME)


@pytest.mark.nightly
def test_the_harness_detects_a_missing_fence(tmp_path: Path) -> None:
    scene = fencing.scene_in(tmp_path)
    point = "before SqliteEventLog.append checkpoint.recorded"
    number = next(n for n, name in enumerate(scene.names) if name.startswith(point))
    with pytest.raises(AssertionError, match=r"an old token wrote|exit"):
        fencing.case(scene, number, fencing.AFTER, plant="no fence at all")
