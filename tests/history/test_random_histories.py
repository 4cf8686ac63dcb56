"""Random histories, executed: R-GIT-1 R-GIT-3 in cases that were not planned.

One of them revealed a snapshot with a folder that no longer existed, because a file had become a folder next to it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history import nasty, random_history
from tests.history.plan_from_history import Style
from tests.history.rerun import Rerun
from tests.support.seed import commit_seed

_COMMITS = 5


def _there_and_back(tmp_path: Path, seed: int, style: Style) -> None:
    repo = nasty.begun(tmp_path / "original")
    base = repo.head()
    random_history.grow(repo, seed, _COMMITS)
    rerun = Rerun.prepare(repo.root, tmp_path / "again", base, repo.head(), style)
    rerun.execute()
    assert rerun.wrong_tasks() == []
    assert rerun.stands_at(rerun.tip)
    middle = 1 + seed % (_COMMITS - 1)
    rerun.idumb("rollback", "1", "--to", rerun.task(middle), "--yes")
    assert rerun.stands_at(rerun.stretch[middle - 1].oid)
    rerun.undo()
    assert rerun.stands_at(rerun.tip)
    rerun.idumb("rollback", "1", "--to", "start", "--yes")
    assert rerun.stands_at(base)
    rerun.idumb("resume", "1", "--no-verify")
    assert rerun.stands_at(rerun.tip)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [commit_seed()], ids=["of this commit"])
def test_a_random_history_is_executed_and_rolled_back_exactly(tmp_path: Path, seed: int) -> None:
    _there_and_back(tmp_path, seed, Style())


@pytest.mark.torture
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1000, 1060))
def test_many_random_histories_are_executed_and_rolled_back_exactly(tmp_path: Path, seed: int) -> None:
    style = Style(("heading", "fence", "checklist")[seed % 3], steps=("yaml steps", "json steps")[seed % 2])
    _there_and_back(tmp_path, seed, style)
