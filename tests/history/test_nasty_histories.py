"""Histories with everything that programs stumble over, made into plans and executed with the real command line.

R-GIT-1 R-GIT-3: whatever bytes, names, modes, links and ignore rules a history holds, every task's commit has the
tree of the original commit, and rollback, resume and undo lead exactly where they say.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.history import nasty
from tests.history.plan_from_history import CHECKLIST, FENCE, Style
from tests.history.rerun import Rerun
from tests.support.gitrepo import GitSandbox

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300)]


def _rerun(tmp_path: Path, chapter: Callable[[GitSandbox], None], style: Style | None = None) -> Rerun:
    repo = nasty.begun(tmp_path / "original")
    base = repo.head()
    chapter(repo)
    return Rerun.prepare(repo.root, tmp_path / "again", base, repo.head(), style)


def _executed(tmp_path: Path, chapter: Callable[[GitSandbox], None]) -> Rerun:
    rerun = _rerun(tmp_path, chapter)
    rerun.execute()
    assert rerun.wrong_tasks() == []
    assert rerun.stands_at(rerun.tip)
    return rerun


THERE_AND_BACK = [nasty.names, nasty.swaps, nasty.links, nasty.ignored]
ONLY_THERE = [chapter for chapter in nasty.CHAPTERS if chapter not in THERE_AND_BACK]


@pytest.mark.parametrize("chapter", ONLY_THERE, ids=lambda chapter: chapter.__name__.strip("_"))
def test_a_nasty_history_is_executed_byte_by_byte(tmp_path: Path, chapter: Callable[[GitSandbox], None]) -> None:
    _executed(tmp_path, chapter)


@pytest.mark.parametrize("chapter", THERE_AND_BACK, ids=lambda chapter: chapter.__name__)
def test_rollback_and_undo_of_a_nasty_history_are_exact(tmp_path: Path, chapter: Callable[[GitSandbox], None]) -> None:
    """As above, and then in all directions."""
    rerun = _executed(tmp_path, chapter)
    middle = len(rerun.stretch) // 2
    rerun.idumb("rollback", "1", "--to", rerun.task(middle), "--yes")
    assert rerun.stands_at(rerun.stretch[middle - 1].oid)
    rerun.idumb("resume", "1", "--no-verify")
    assert rerun.stands_at(rerun.tip)
    assert rerun.wrong_tasks() == []
    rerun.undo()
    assert rerun.stands_at(rerun.stretch[middle - 1].oid)
    rerun.undo()
    assert rerun.stands_at(rerun.tip)
    rerun.idumb("rollback", "1", "--to", "start", "--yes")
    assert rerun.stands_at(rerun.base)


@pytest.mark.parametrize(
    "style",
    [
        Style(CHECKLIST),
        Style(FENCE),
        Style(compare=True),
        Style(CHECKLIST, compare=True, ascii=True),
        Style(FENCE, steps="json steps"),
    ],
    ids=["boxes", "fences", "compared", "ascii", "json"],
)
def test_the_same_history_in_other_notations(tmp_path: Path, style: Style) -> None:
    rerun = _rerun(tmp_path, nasty.short, style)
    rerun.execute()
    assert rerun.wrong_tasks() == []
    assert rerun.stands_at(rerun.tip)


def test_a_history_can_be_run_with_verification(tmp_path: Path) -> None:
    rerun = _rerun(tmp_path, nasty.names_one_by_one)
    rerun.initialise()
    approved = rerun.idumb("check-plan", "1")["data"]["consent_hash"]
    rerun.idumb("execute-phase", "1", "--approve", approved)
    assert rerun.wrong_tasks() == []


def test_verification_names_what_a_later_commit_of_the_history_rewrote(tmp_path: Path) -> None:
    rerun = _rerun(tmp_path, nasty.modes)
    rerun.initialise()
    approved = rerun.idumb("check-plan", "1")["data"]["consent_hash"]
    answer = rerun.idumb("execute-phase", "1", "--approve", approved, expect=1)
    assert answer["data"]["outcome"] == "complete"
    reason = "T1-01 AC-2 passed when its task was done and fails on the final tree"
    assert answer["data"]["verification"]["reason"].startswith(reason)
    assert rerun.wrong_tasks() == []


def test_the_comparison_detects_a_wrong_tree(tmp_path: Path) -> None:
    rerun = _rerun(tmp_path, nasty.modes)
    place = rerun.root / ".planning/phases/1/01-PLAN.md"
    text = place.read_text(encoding="utf-8")
    # The checks prove bytes and not modes, so only the comparison of trees can tell.
    start, _, end = text.rpartition('"mode": "644"')
    place.write_text(f'{start}"mode": "755"{end}', encoding="utf-8")
    rerun.execute()
    assert [line.partition(":")[0] for line in rerun.wrong_tasks()] == [rerun.task(len(rerun.stretch))]
    assert not rerun.stands_at(rerun.tip)
