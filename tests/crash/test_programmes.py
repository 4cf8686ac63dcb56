"""The fault programmes: one case for each kind of fault on a push, all samples at night, and what each must detect.

A harness that never failed proves nothing, so each programme is shown a fault that it has to find. The others are in
`tests/states` and `tests/hostile`.
"""

from __future__ import annotations

import errno
import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from idumb.store import backups, event_chain
from tests.crash import (
    concurrency,
    corruption,
    disk,
    escapes,
    failing_calls,
    fencing,
    full_disk,
    hostile_output,
    kill_points,
    leftover_processes,
    power_cut,
    programme,
    registry,
    rollback_undo,
    scenes,
    secrets,
    shim,
    user_at_work,
)
from tests.crash.programme import LEFT_PROCESS, LOST_BYTES, CannotRun, Programme, Tally
from tests.crash.scenes import Stage
from tests.crash.shapes import PAIR, SHAPES
from tests.crash.shim import Shim
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import shell, task
from tests.support.seed import VARIABLE

pytestmark = pytest.mark.timeout(300)

AT_NIGHT = ("T2", "T5", "T14", "T15")
"""Without a case on a push, because others make faults of their kinds there: T1, T4 and the tests of agents."""


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [name for name in registry.MODULES if name != "T8"])
def test_the_sample_of_a_programme_passes(name: str) -> None:
    """With a fixed seed; those of T8 are in `tests/states/test_matrix.py`, by name.

    R-LOG-6, F30: T2, recovery is itself safe to kill. R-RUN-8, R-RUN-9, F59: T14, no process can be left behind.
    """
    programme.at_night(registry.load(name))


PUSHED = {
    "T4": "A failed system call ends in one clear line, and nothing is falsely done: R-RUN-2, R-LOG-5, F32, F33.",
    "T9": "Rollback and undo name conflicts and never overwrite them; killed ones are run again: R-GIT-3, F24.",
    "T10": "Any content of a file gives a result or an error with its place: R-PLAN-5, R-PLAN-7.",
    "T13": "No program of a repository is run; no link, pipe or huge file blocks: R-LOCK-2, R-LOCK-3, F19, F21, F62.",
    "T21": "Honest work is not refused: R-RUN-3.",
    "T22": "What a user saves, stages and commits beside a run is kept: R-GIT-3.",
}
"""Those that own no clause; the others are below and in `tests/hostile`."""


@pytest.mark.parametrize("name", PUSHED)
def test_the_cases_of_a_push_pass(name: str) -> None:
    programme.on_a_push(registry.load(name))


def test_each_programme_has_a_case_on_a_push() -> None:
    """T8 has an item for each kind of state."""
    programmes = [registry.load(name) for name in registry.MODULES if name not in ("T8", *AT_NIGHT)]
    assert [one.id for one in programmes if not 0 < one.push <= one.sample] == []


def test_a_run_killed_at_any_point_resumes_to_the_same_end() -> None:
    """T1, F30, R-RUN-2, R-GIT-2, R-LOG-1, R-LOG-6, R-PLAN-8: before and after every durable write."""
    programme.on_a_push(kill_points.PROGRAMME)


@pytest.mark.nightly
def test_t1_detects_a_broken_recovery(tmp_path: Path) -> None:
    (scene,) = kill_points.scenes(tmp_path, SHAPES[:1])
    point = "before SqliteEventLog.append step.finished evidence.recorded attempt.finished"
    number = next(n for n, name in enumerate(scene.points[0]) if name.startswith(point))
    assert list(kill_points.survive(scene, kill_points.Case(0, (number,)), plant="nothing is put back"))


@pytest.mark.nightly
def test_t2_detects_a_recovery_that_commits_twice(tmp_path: Path) -> None:
    scene = kill_points.Scene(PAIR, tmp_path / "pair")
    scene.prepare(fine=True)
    case = kill_points.Case(0, ("after GitHistory.advance main",))
    wrong = dict(kill_points.survive(scene, case, plant="commits are not looked for", fine=True))
    assert programme.REPEATED_TASK in wrong


def test_acknowledged_work_survives_a_power_cut_and_the_rest_continues() -> None:
    """T3, F31, R-LOG-6: on real file systems in image files; skipped with a message if they are impossible."""
    programme.on_a_push(power_cut.PROGRAMME)


@pytest.mark.nightly
def test_t3_detects_missing_fsyncs(tmp_path: Path) -> None:
    """Acknowledged checkpoints are lost."""
    try:
        kind = disk.require()[0]
    except CannotRun as reason:
        pytest.skip(f"NO POWER WAS CUT: {reason}")
    tally = Tally()
    scene = power_cut.Scene(kind, tmp_path)
    try:
        scene.prepare((power_cut.EXECUTE,))
        names = scene.known[power_cut.EXECUTE].points
        last = max(n for n, name in enumerate(names) if name.startswith("after SqliteEventLog.append checkpoint"))
        case = power_cut.Case(0, kind, power_cut.EXECUTE, at=last, share=0.0, state_on_disk=False)
        power_cut.cut_and_go_on(scene, case, tally, "nothing is forced")
    finally:
        scene.disk.unmount()
    assert any(failure.kind == programme.LOST_CHECKPOINT for failure in tally.failures), tally


@pytest.mark.nightly
def test_t4_detects_an_ignored_fsync_failure(tmp_path: Path) -> None:
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
            point = failing_calls.Point(scene.name, shim.FSYNC, number, failing_calls.Error(errno.EIO))
            failing_calls.play(stage, faults, scene, point, sound)
            hook = "tests.crash.failing_calls:pass_over_failed_fsyncs"
            failing_calls.play(stage, faults, scene, point, caught, hook=hook)
    assert not sound.failures
    assert any("a failed fsync was passed over" in failure.words for failure in caught.failures), caught


@pytest.mark.nightly
def test_t5_detects_leftover_temporary_files(tmp_path: Path) -> None:
    caught = Tally()
    try:
        with full_disk.mounted(tmp_path / "disk") as place, Stage(tmp_path) as stage:
            init = scenes.all_of(stage, ["init"])["init"]
            for amount in range(6):
                hook = "tests.crash.full_disk:leave_temporary_files"
                full_disk.play(stage, place, init, full_disk.Size("init", "pages", amount), caught, hook=hook)
    except CannotRun as reason:
        pytest.skip(str(reason))
    assert any("leftover files" in failure.words for failure in caught.failures), caught


def test_eight_processes_with_mixed_commands_leave_a_valid_history() -> None:
    """T6, R-LOG-5, F10, F40: one owner at a time, nothing lost, nothing twice, no trace of refused commands."""
    programme.on_a_push(concurrency.PROGRAMME)


@pytest.mark.nightly
def test_t6_detects_a_lock_that_excludes_no_process(tmp_path: Path) -> None:
    """Whether two commands overlap is random, and about one round in three has no overlap: twelve rounds are enough."""
    scene = concurrency.Scene(tmp_path)

    def is_detected(seed: int) -> bool:
        trees = scene.copy(1)
        runs = concurrency.mixed(scene, trees, random.Random(seed), plant="everybody owns")
        return any(concurrency.check(trees, runs))

    assert any(is_detected(seed) for seed in range(12))


def test_an_owner_that_continues_after_a_takeover_writes_nothing() -> None:
    """T7, R-LOG-5, F38: neither in the log nor at refs, on the branch or in the working tree."""
    programme.on_a_push(fencing.PROGRAMME)


@pytest.mark.nightly
def test_t7_detects_a_missing_fence(tmp_path: Path) -> None:
    scene = fencing.scene_in(tmp_path)
    point = "before SqliteEventLog.append checkpoint.recorded"
    number = next(n for n, name in enumerate(scene.points[0]) if name.startswith(point))
    with pytest.raises(AssertionError, match=point):
        fencing.case(scene, number, fencing.AFTER, plant="no fence at all")


@pytest.mark.nightly
def test_t9_detects_that_nothing_is_compared(tmp_path: Path) -> None:
    def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
        rollback_undo.run(size, seed, folder, tally, "nothing is compared")

    planted = Programme("T9", "planted", 24, None, run)
    assert programme.carry_out(planted, size=24, seed=9, folder=tmp_path).failures


def test_damage_to_any_stored_file_is_detected_before_use_and_the_run_continues() -> None:
    """T11, R-LOG-2, R-LOG-6, F43, F44."""
    assert programme.on_a_push(corruption.PROGRAMME).notes["store.db: store.corrupt"]


@pytest.mark.nightly
def test_t11_detects_missing_verification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without verification, damaged events are accepted."""
    tally = Tally()
    scene = corruption.Scene(tmp_path)
    monkeypatch.setattr(event_chain, "own_fault", lambda _: None)
    monkeypatch.setattr(backups, "unsound", lambda _: None)
    corruption.flip_bytes(scene, 60, random.Random(11), tally)
    assert any("believed" in failure.words for failure in tally.failures), tally.notes


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of all processes")
def test_t14_detects_processes_that_outlive_their_group(tmp_path: Path) -> None:
    """Here only the process group is ended."""
    tally = Tally()
    case = leftover_processes.Case("agent", "wait", leftover_processes.TIMEOUT)
    leftover_processes.one_round(tmp_path, tally, [case], plant="only the group")
    cases = {failure.case for failure in tally.failures if failure.kind == LEFT_PROCESS}
    for way in ("double fork", "no environment", escapes.MOVING):
        assert f"agent, wait, {leftover_processes.TIMEOUT}: {way}" in cases


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory by /proc")
def test_t15_detects_unescaped_output(tmp_path: Path) -> None:
    tally = Tally()
    hostile_output.shown(tmp_path, tally, plant="escape off")
    assert any("show T1-02 on a terminal" in failure.case for failure in tally.failures)


def test_no_canary_secret_is_stored_or_printed_anywhere() -> None:
    """T16, R-LOG-3, F63, S13."""
    programme.on_a_push(secrets.PROGRAMME)


@pytest.mark.nightly
def test_t16_detects_unredacted_secrets(tmp_path: Path) -> None:
    tally = Tally()
    secrets.everywhere(tmp_path, secrets.canaries(random.Random(1))[-2:], tally, plant="redaction off")
    reports = " ".join(failure.words for failure in tally.failures)
    for place in ("what show T1-03 says", ".git/idumb/store.db", "objects of git"):
        assert place in reports


@pytest.mark.nightly
def test_t22_detects_that_a_program_overwrites_files_of_the_user(tmp_path: Path) -> None:
    scene = user_at_work.Scene(tmp_path, 1)
    path = scene.files["T1-01"]
    once = "".join(f"echo gone > {scene.project.folder / path}; " for path in user_at_work.OWN)
    steps = [shell(f"for i in 1 2 3 4 5 6 7 8 9; do {once} sleep 0.1; done; echo T1-01 >> {path}")]
    scene.project.plan([task("T1-01", files=f"modify `{path}`", steps=steps)])
    with user_at_work.working(scene, 1) as user:
        user_at_work.start(scene, user, {})
        diary = user.end()
    wrong = [words for kind, words in user_at_work.wrong(scene, diary) if kind == LOST_BYTES]
    assert any("after attempt.started T1-01 and before" in words for words in wrong), wrong


def test_a_command_in_a_warm_process_answers_like_a_new_process(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = projects.create(sandbox, files={"a.txt": "one\n"})
    commands = (["status", "--json"], ["nonsense"])
    answers = [project.idumb(*arguments) for arguments in commands]
    monkeypatch.setenv(projects.COLD, "1")
    assert [project.idumb(*arguments) for arguments in commands] == answers


def test_a_failing_case_is_counted_and_the_next_one_runs(tmp_path: Path) -> None:
    def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
        for number in range(size or 0):
            with tally.case(f"case {number} of seed {seed}", programme.LOST_BYTES):
                (folder / str(number)).touch()
                assert number != 1, "one byte is gone"

    result = programme.carry_out(Programme("T0", "nothing", 3, None, run), size=3, seed=5, folder=tmp_path)
    assert result.cases == 3
    assert result.count(programme.LOST_BYTES) == 1
    assert "case 1 of seed 5: one byte is gone" in programme.report(result)


def divided(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    for number in tally.share(range(size or 0)):
        with tally.case(f"case {number}"):
            tally.note(f"number {number}")
            assert number != 3
    tally.note("parts")


@pytest.mark.nightly
def test_the_parts_of_a_programme_run_each_case_exactly_once(tmp_path: Path) -> None:
    small = Programme("T0", "nothing", 7, None, divided, divides=True)
    result = programme.carry_out(small, size=7, seed=1, folder=tmp_path, jobs=3)
    assert result.cases == 7
    assert result.notes == {**{f"number {number}": 1 for number in range(7)}, "parts": 3}
    assert [failure.case for failure in result.failures] == ["case 3"]


def test_a_push_has_points_of_its_commit_and_a_night_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
        taken.append((size, seed))
        tally.fail(programme.SLOW, "case", "of no consequence here")
        tally.cases += size or 0

    monkeypatch.setenv(VARIABLE, "5")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the folder of a failed case stays
    small = Programme("T0", "nothing", 3, None, run, push=2, least={"cases": 3})
    programme.on_a_push(small)
    programme.at_night(small)
    assert taken == [(2, 5), (3, 1)]
    with pytest.raises(AssertionError, match="too few"):
        programme.at_night(replace(small, least={"cases": 4}))
