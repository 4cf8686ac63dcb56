"""T12: no cheat is believed whose commit does not do the work, and the harness would see it (F54, F56, F57)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import programme
from tests.crash.programme import Tally
from tests.hostile import cheats
from tests.hostile.cheats import CHEATS, HONEST, MODES, PROGRAMME

pytestmark = pytest.mark.slow


@pytest.mark.timeout(200)
def test_no_cheat_is_believed_and_honest_work_is_not_refused(tmp_path: Path) -> None:
    """R-RUN-3."""
    result = programme.carry_out(PROGRAMME, size=PROGRAMME.sample, seed=1, folder=tmp_path)
    assert result.failures == (), programme.report(result)
    assert result.cases >= PROGRAMME.sample


@pytest.mark.parametrize(
    ("family", "name", "configuration"),
    [
        ("ignored", "impl.log", "checks: here\n"),
        ("hidden", "a folder that looks like a cache", "checks: here\n"),
        ("home", "a file in the home", "checks: {home: user}\n"),
    ],
)
def test_without_its_guard_a_cheat_is_believed(tmp_path: Path, family: str, name: str, configuration: str) -> None:
    """The harness detects an accepted cheat."""
    tally = Tally()
    cheat = next(cheat for cheat in CHEATS if (cheat.family, cheat.name) == (family, name))
    cheats.judge(cheat, "here", tmp_path / "case", tally, configuration)
    assert [failure.words for failure in tally.failures] == [
        "the task is completed, and the check fails in a fresh clone of HEAD"
    ]


def test_the_cheats_differ_and_come_in_ten_families() -> None:
    assert len({(cheat.family, cheat.name) for cheat in CHEATS}) == len(CHEATS)
    assert len({cheat.family for cheat in CHEATS}) == 10
    assert len(MODES) * len(CHEATS) > 100
    assert HONEST
