"""T4: system calls that fail, and that the programme catches faults of idumb's own."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from idumb.git import discover
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from tests.crash import failing_calls, programme, scenes, shim
from tests.crash.failing_calls import PROGRAMME, Error, Point
from tests.crash.programme import CannotRun, Tally
from tests.crash.scenes import Scene, Stage
from tests.crash.shim import Shim
from tests.support import checkouts, seed
from tests.support.gitrepo import GitSandbox


@pytest.mark.timeout(120)
def test_a_failed_system_call_ends_in_one_clear_line_and_the_work_continues_from_there() -> None:
    """R-RUN-2, R-LOG-5, F32, F33: nothing is falsely called done, and nothing of the user is lost."""
    programme.on_a_push(PROGRAMME)


@dataclass(frozen=True, slots=True)
class Play:
    stage: Stage
    faults: Shim
    scene: Scene
    forced: int  # fsyncs of the undisturbed command
    verifying: Scene

    def points(self) -> list[Point]:
        """Some fsyncs from the middle of the command, where objects are synced."""
        middle = self.forced // 2
        return [Point(self.scene.name, shim.FSYNC, middle + n, Error(errno.EIO)) for n in range(4)]

    def verification_counts(self) -> tuple[int, ...]:
        return failing_calls.count(self.stage, self.faults, self.verifying)

    def verify_failing(self, kind: int, numbers: Iterable[int], error: Error) -> Tally:
        """Run `verify-work` once for each of these calls of a kind, which fails."""
        tally = Tally()
        for number in numbers:
            point = Point(self.verifying.name, kind, number, error)
            failing_calls.play(self.stage, self.faults, self.verifying, point, tally)
        return tally


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    folder = tmp_path_factory.mktemp("faults")
    try:
        faults = Shim(folder / "shim")
    except CannotRun as reason:
        pytest.skip(str(reason))
    with Stage(folder, preload=str(faults.library), environment=faults.environment) as stage:
        scene_of = scenes.all_of(stage, ("rollback", "verify-work"))
        scene = scene_of["rollback"]
        forced = failing_calls.count(stage, faults, scene)[shim.FSYNC]
        yield Play(stage, faults, scene, forced, scene_of["verify-work"])


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("pass_over_failed_fsyncs", "a failed fsync was passed over"),
        ("repeat_failed_fsyncs", "a failed fsync was tried again"),
    ],
)
def test_the_programme_detects_an_ignored_fsync_failure(play: Play, fault: str, words: str) -> None:
    caught, sound = Tally(), Tally()
    for point in play.points():
        failing_calls.play(play.stage, play.faults, play.scene, point, sound)
        hook = f"tests.crash.failing_calls:{fault}"
        failing_calls.play(play.stage, play.faults, play.scene, point, caught, hook=hook)
    assert not sound.failures
    assert any(words in failure.words for failure in caught.failures), caught


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_checks_on_a_file_system_that_becomes_read_only_end_in_one_clear_line(play: Play) -> None:
    opened = play.verification_counts()[shim.OPEN]
    numbers = (opened * part // 32 for part in range(16, 32, 2))
    assert not play.verify_failing(shim.OPEN, numbers, Error(errno.EROFS, for_good=True)).failures


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_working_tree_of_checks_is_removed_although_one_of_its_folders_fails_to_close(play: Play) -> None:
    closed = play.verification_counts()[shim.CLOSE]
    numbers = (closed - back for back in range(12, 48, 4))
    assert not play.verify_failing(shim.CLOSE, numbers, Error(errno.EIO)).failures


def test_points_of_a_sample_are_spread_over_scenes_and_kinds() -> None:
    counts = {"one": (5,) * len(shim.NAMES), "two": (0, 9) + (1,) * (len(shim.NAMES) - 2)}
    points = failing_calls.sample(counts, 19, random.Random(3))
    assert {(point.scene, point.kind) for point in points} == {
        *(("one", kind) for kind in range(10)),
        *(("two", kind) for kind in range(1, 10)),
    }
    assert all(1 <= point.nth <= counts[point.scene][point.kind] for point in points)
    assert len(failing_calls.all_points(counts)) == 5 * 10 + 9 + 8


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
