"""T9, and a fault that it must find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import programme, rollback_undo
from tests.crash.programme import Programme, Tally


@pytest.mark.timeout(120)
def test_rollback_and_undo_are_exact_whatever_the_user_does_in_between() -> None:
    """R-GIT-3, F24: conflicts are named and never overwritten; killed commands are run again."""
    programme.on_a_push(rollback_undo.PROGRAMME)


@pytest.mark.nightly
@pytest.mark.timeout(120)
def test_a_planted_fault_is_detected(tmp_path: Path) -> None:
    def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
        rollback_undo.run(size, seed, folder, tally, "nothing is compared")

    planted = Programme("T9", "planted", 24, None, run)
    result = programme.carry_out(planted, size=24, seed=9, folder=tmp_path)
    assert result.failures
