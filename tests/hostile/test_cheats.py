"""T12: no cheat is believed whose commit does not do the work, and the harness would see it (F54, F56, F57)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.crash import programme
from tests.crash.programme import Tally
from tests.hostile import cheating
from tests.hostile.cheating import MODES, PROGRAMME, Verdict
from tests.hostile.cheats import CHEATS, HONEST, KINDS, REMAINING
from tests.hostile.guards import GUARDS

_SAMPLE = ("checks judge the commit", "programs are compared", "a check must run a test")


@pytest.mark.timeout(120)
def test_no_cheat_is_believed_and_honest_work_is_not_refused() -> None:
    """R-RUN-3."""
    programme.on_a_push(PROGRAMME)


@pytest.mark.nightly
@pytest.mark.parametrize("name", _SAMPLE)
def test_without_its_guard_a_cheat_is_believed(tmp_path: Path, name: str) -> None:
    """The harness detects an accepted cheat."""
    tally = Tally()
    cheating.judge_without(next(guard for guard in GUARDS if guard.name == name), tmp_path / "case", tally)
    assert tally.failures == []


@pytest.mark.nightly
def test_an_accepted_cheat_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    believed = Verdict(
        completed=True, check_passes=False, works=False, named=False, warned=False, reason="", stranger=""
    )
    unknown = believed._replace(check_passes=True)
    for verdict, words in ((believed, cheating.ACCEPTED), (unknown, cheating.UNNAMED)):
        monkeypatch.setattr(cheating, "verdict_of", lambda *_, verdict=verdict: verdict)
        tally = Tally()
        cheating.judge(cheating.find("ignored", "a log"), "edits", tmp_path, tally)
        assert [failure.words for failure in tally.failures] == [words]


def test_the_cheats_differ_and_come_in_families_of_ten() -> None:
    assert len({(cheat.family, cheat.name) for cheat in CHEATS}) == len(CHEATS)
    families = Counter(cheat.family for cheat in CHEATS)
    assert min(families.values()) >= 10
    assert len(families.keys() - REMAINING) == 10
    assert families.keys() > REMAINING
    assert {cheat.kind for cheat in CHEATS} == KINDS.keys()
    assert (len(MODES), len(HONEST)) == (2, len(KINDS) + 1)


def test_in_a_sandbox_each_cheat_runs_once_and_each_family_in_every_mode() -> None:
    cases = cheating.in_sandbox()
    assert [case.cheat for case in cases] == [*HONEST, *CHEATS]
    modes = {(case.cheat.family, case.mode) for case in cases}
    assert modes == {(cheat.family, mode) for cheat in (*HONEST, *CHEATS) for mode in MODES}


def test_each_guard_has_a_cheat_that_exists() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)
    for guard in GUARDS:
        assert cheating.find(guard.family, guard.cheat)
        assert guard.removed or guard.configuration
