"""Histories that programs stumble over, made into plans and executed with the real command line.

R-GIT-1 R-GIT-3: whatever bytes, names, modes, links and ignore rules a history holds, every task's commit has the files
of its step, and rollback, resume and undo lead exactly where they say. A random one revealed a snapshot with a folder
that no longer existed, because a file had become a folder next to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.history import histories
from tests.history.histories import History
from tests.history.rerun import PLAN, Rerun
from tests.support.seed import commit_seed

pytestmark = pytest.mark.timeout(300)

RANDOM = [
    pytest.param(commit_seed(), id="of this commit", marks=pytest.mark.nightly),
    *(pytest.param(seed, marks=pytest.mark.torture) for seed in range(1000, 1060)),
]


def _rerun(tmp_path: Path, chapter: Callable[[History], None]) -> Rerun:
    history = History.begin(tmp_path / "original")
    chapter(history)
    return Rerun.prepare(history, tmp_path / "again")


@pytest.mark.nightly
@pytest.mark.parametrize("chapter", [histories.names, histories.subjects])
def test_a_nasty_history_is_executed_and_rolled_back_exactly(
    tmp_path: Path, chapter: Callable[[History], None]
) -> None:
    rerun = _rerun(tmp_path, chapter)
    rerun.execute()
    rerun.go_back_and_forth(2)


@pytest.mark.parametrize("seed", RANDOM)
def test_a_random_history_is_executed_and_rolled_back_exactly(tmp_path: Path, seed: int) -> None:
    rerun = _rerun(tmp_path, partial(histories.grow, seed=seed, count=4))
    rerun.execute()
    rerun.go_back_and_forth(1 + seed % 3)


@pytest.mark.nightly
def test_the_comparison_detects_a_wrong_mode(tmp_path: Path) -> None:
    rerun = _rerun(tmp_path, histories.names)
    start, _, end = rerun.repo.read(PLAN).rpartition('"mode": "644"')
    rerun.repo.write(PLAN, f'{start}"mode": "755"{end}')
    with pytest.raises(AssertionError):
        rerun.execute()
