"""T12: no cheat is believed whose commit does not do the work, and the harness would see it (F54, F56, F57)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import programme
from tests.crash.programme import Tally
from tests.hostile import cheating
from tests.hostile.cheating import PROGRAMME
from tests.hostile.guards import GUARDS


@pytest.mark.timeout(120)
def test_no_cheat_is_believed_and_honest_work_is_not_refused() -> None:
    """R-RUN-3."""
    programme.on_a_push(PROGRAMME)


@pytest.mark.nightly
def test_without_its_guard_a_cheat_is_believed(tmp_path: Path) -> None:
    """The harness detects an accepted cheat."""
    tally = Tally()
    guard = next(guard for guard in GUARDS if guard.name == "checks judge the commit")
    cheating.judge_without(guard, tmp_path / "case", tally)
    assert tally.failures == []


def test_each_guard_has_a_cheat_that_exists() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)
    for guard in GUARDS:
        assert cheating.find(guard.family, guard.cheat)
        assert guard.removed or guard.configuration
