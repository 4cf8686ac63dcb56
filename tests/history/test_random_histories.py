"""Random histories, executed: R-GIT-1 R-GIT-3 in cases that were not planned.

One of them revealed a snapshot with a folder that no longer existed, because a file had become a folder next to it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history import nasty, random_history
from tests.history.rerun import Rerun
from tests.support.seed import commit_seed

_COMMITS = 4


SEEDS = [pytest.param(seed, marks=pytest.mark.torture) for seed in range(1000, 1060)]


@pytest.mark.nightly
@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [pytest.param(commit_seed(), id="of this commit"), *SEEDS])
def test_a_random_history_is_executed_and_rolled_back_exactly(tmp_path: Path, seed: int) -> None:
    repo = nasty.begun(tmp_path / "original")
    base = repo.head()
    random_history.grow(repo, seed, _COMMITS)
    rerun = Rerun.prepare(repo.root, tmp_path / "again", base, repo.head())
    rerun.execute()
    rerun.go_back_and_forth(1 + seed % (_COMMITS - 1))
