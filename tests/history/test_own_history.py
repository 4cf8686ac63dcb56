"""This repository's own history, made into a plan and executed: every task ends in the tree of its commit.

R-GIT-1 R-GIT-3: snapshots and checkpoints on real input, and the way back and forth between them.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.history import commits
from tests.history.rerun import Rerun

ROOT = Path(__file__).resolve().parents[2]
LENGTH = 8
SEED = 20


def _stretch() -> tuple[str, str]:
    """The first commit of a stretch of this history, and its last one; the same for the same number of commits."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout, so there is no history to execute")
    if commits.git(ROOT, "rev-parse", "--is-shallow-repository").strip() == b"true":
        pytest.skip("this is a shallow clone: its history is not here")
    line = commits.first_parents(ROOT, "HEAD")
    if len(line) <= LENGTH:
        pytest.skip(f"the history has only {len(line)} commits, {LENGTH + 1} are needed")
    begin = random.Random(SEED).randrange(len(line) - LENGTH)
    return line[begin], line[begin + LENGTH]


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_every_task_of_our_own_history_ends_in_the_tree_of_its_commit(tmp_path: Path) -> None:
    base, tip = _stretch()
    rerun = Rerun.prepare(ROOT, tmp_path / "again", base, tip)
    rerun.execute()
    assert rerun.wrong_tasks() == []
    assert rerun.stands_at(tip)
    middle = LENGTH // 2
    rerun.idumb("rollback", "1", "--to", rerun.task(middle), "--yes")
    assert rerun.stands_at(rerun.stretch[middle - 1].oid)
    rerun.idumb("resume", "1", "--no-verify")
    assert rerun.stands_at(tip)
    rerun.undo()
    assert rerun.stands_at(rerun.stretch[middle - 1].oid)
    rerun.undo()
    assert rerun.stands_at(tip)
