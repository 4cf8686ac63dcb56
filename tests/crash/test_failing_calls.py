"""T4: system calls that fail, and that the programme catches faults of idumb's own."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from idumb.git import discover
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from tests.crash import failing_calls, programme, scenes, shim
from tests.crash.failing_calls import PROGRAMME, Error, Point
from tests.crash.programme import CannotRun, Tally
from tests.crash.scenes import Stage
from tests.crash.shim import Shim
from tests.support import checkouts, seed
from tests.support.gitrepo import GitSandbox


@pytest.mark.timeout(120)
def test_a_failed_system_call_ends_in_one_clear_line_and_the_work_continues_from_there() -> None:
    """R-RUN-2, R-LOG-5, F32, F33: nothing is falsely called done, and nothing of the user is lost."""
    programme.on_a_push(PROGRAMME)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_programme_detects_an_ignored_fsync_failure(tmp_path: Path) -> None:
    """In the middle of the command objects are synced."""
    try:
        faults = Shim(tmp_path / "shim")
    except CannotRun as reason:
        pytest.skip(str(reason))
    caught, sound = Tally(), Tally()
    with Stage(tmp_path, preload=str(faults.library), environment=faults.environment) as stage:
        scene = scenes.all_of(stage, ("rollback",))["rollback"]
        middle = failing_calls.count(stage, faults, scene)[shim.FSYNC] // 2
        for number in range(middle - 2, middle + 6):
            point = Point(scene.name, shim.FSYNC, number, Error(errno.EIO))
            failing_calls.play(stage, faults, scene, point, sound)
            hook = "tests.crash.failing_calls:pass_over_failed_fsyncs"
            failing_calls.play(stage, faults, scene, point, caught, hook=hook)
    assert not sound.failures
    assert any("a failed fsync was passed over" in failure.words for failure in caught.failures), caught


@pytest.mark.parametrize("nth", seed.one_on_a_push(range(1, 9), "rename"))
def test_a_commit_is_complete_or_absent_if_a_rename_fails(
    sandbox: GitSandbox, tmp_path: Path, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-GIT-2, F32: a second try moves index and branch."""
    sandbox.write_all({"a.txt": "one\n", "old.txt": "old\n"})
    first = sandbox.commit()
    sandbox.write_all({"a.txt": "two\n", "new.txt": "new\n"})
    sandbox.remove("old.txt")
    try:
        faults = Shim(tmp_path / "shim")
    except CannotRun as reason:
        pytest.skip(str(reason))
    faults.order.spared = 1  # this process is not preloaded, so git is the first to come
    for name, value in faults.environment.items():
        monkeypatch.setenv(name, value)
    history = GitHistory(discover.find(str(sandbox.root)))
    place = discover.find(str(sandbox.root))
    history, trees = GitHistory(place, proof=lambda: checkouts.create(sandbox)), GitTrees(place)
    tree = trees.committed(first, trees.scan(), ("a.txt", "new.txt", "old.txt"))

    def commit() -> str | None:
        made = history.make(tree, first, "both\n\nIdumb-Task: T1-01\n", hooks=False).commit
        return made if made is not None and history.advance(history.head().branch, made, first, "T1-01") == "" else None

    with faults.armed(sandbox.root, kind=shim.RENAME, error=errno.ENOSPC, nth=nth):
        made = commit()
    for name in faults.environment:
        monkeypatch.delenv(name)
    if made is None:
        assert sandbox.head() == first
        made = commit()
    assert made == sandbox.head() != first
    assert sandbox.status() == []
