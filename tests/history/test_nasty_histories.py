"""Histories with everything that programs stumble over, made into plans and executed with the real command line.

R-GIT-1 R-GIT-3: whatever bytes, names, modes, links and ignore rules a history holds, every task's commit has the
tree of the original commit, and rollback, resume and undo lead exactly where they say.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.history import nasty
from tests.history.rerun import Rerun
from tests.support.gitrepo import GitSandbox

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300)]


def _rerun(tmp_path: Path, chapter: Callable[[GitSandbox], None]) -> Rerun:
    repo = nasty.begun(tmp_path / "original")
    base = repo.head()
    chapter(repo)
    return Rerun.prepare(repo.root, tmp_path / "again", base, repo.head())


@pytest.mark.parametrize("chapter", nasty.CHAPTERS, ids=lambda chapter: chapter.__name__)
def test_a_nasty_history_is_executed_and_rolled_back_exactly(
    tmp_path: Path, chapter: Callable[[GitSandbox], None]
) -> None:
    rerun = _rerun(tmp_path, chapter)
    rerun.execute()
    rerun.go_back_and_forth(len(rerun.stretch) // 2)


def test_the_comparison_detects_a_wrong_tree(tmp_path: Path) -> None:
    """The checks prove bytes and not modes, so only the comparison of trees can tell."""
    rerun = _rerun(tmp_path, nasty.modes)
    place = rerun.root / ".planning/phases/1/01-PLAN.md"
    start, _, end = place.read_text(encoding="utf-8").rpartition('"mode": "644"')
    place.write_text(f'{start}"mode": "755"{end}', encoding="utf-8")
    with pytest.raises(AssertionError, match=rerun.task(len(rerun.stretch))):
        rerun.execute()
