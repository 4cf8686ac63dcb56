"""Causes of stalled work and crashes: the table, and the same with real processes (R-RUN-8, R-ADAPT-2, F37, S19)."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from idumb.system import child_process, signals, stalls, supervision
from idumb.system.child_process import Finished
from idumb.system.signals import SignalInterrupts
from idumb.system.stalls import DEADLOCK, EXTERNAL, IDLE, MODEL_STALL, RESOURCES, WALL, Sample, TimeLimits
from tests.support.cases import every

LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, which only Linux has")
ENVIRONMENT = {"PATH": os.environ["PATH"]}


@every(
    "limit, busy, agent, silence, cause",
    [
        (WALL, True, False, None, RESOURCES),
        (WALL, True, True, 60.0, RESOURCES),
        (WALL, False, False, None, DEADLOCK),
        (WALL, False, False, 60.0, DEADLOCK),
        (WALL, False, True, 60.0, MODEL_STALL),
        (WALL, False, False, 0.5, None),
        (WALL, False, True, 0.5, None),
        (WALL, None, False, 60.0, None),
        (IDLE, False, True, 60.0, MODEL_STALL),
        (IDLE, False, False, 60.0, DEADLOCK),
    ],
)
def test_each_observation_has_one_cause(
    limit: str, *, busy: bool | None, agent: bool, silence: float | None, cause: str | None
) -> None:
    """What the system does not show is unknown."""
    found = stalls.of_limit(limit, busy=busy, agent=agent, silence=silence, says_it_waits=False)
    assert found.kind == cause
    assert found.words


def test_work_that_says_that_it_waits_is_stopped_for_something_outside() -> None:
    found = stalls.of_limit(WALL, busy=False, agent=True, silence=60.0, says_it_waits=True)
    assert (found.kind, found.words) == (EXTERNAL, "it reports that it is waiting")


def test_the_message_states_the_basis_of_the_diagnosis() -> None:
    found = stalls.of_limit(IDLE, busy=False, agent=True, silence=61.2, says_it_waits=False)
    assert found.words == "hardly any CPU used, silent for 61 s"


@every(
    "cpu, runs, busy",
    [(0.4, False, True), (0.1, False, False), (0.1, True, True), (None, False, None)],
)
def test_work_is_what_uses_a_core_or_wants_one(*, cpu: float | None, runs: bool, busy: bool | None) -> None:
    """A loaded machine may not provide one."""
    assert stalls.works(Sample(1.0, 0.0, runs), Sample(2.0, cpu, runs)) is busy
    assert stalls.works(None, Sample(2.0, cpu, runs)) is None


@every(
    "number, words",
    [(9, "memory ran out"), (24, "CPU time"), (25, "file size")],
)
def test_a_signal_that_idumb_did_not_send_indicates_a_limit(number: int, words: str) -> None:
    """F37: also as exit 137, as a shell says it."""
    stall = stalls.of_signal(number)
    assert stall.kind == RESOURCES
    assert words in stall.words


def test_other_ends_have_no_cause() -> None:
    assert {stalls.of_signal(number) for number in (0, 1, 15, 11, -128)} == {stalls.Cause()}


def run(script: str, folder: Path, **options: Any) -> child_process.Finished:
    given = {"agent": "watch" in options, "grace": 0.2, **options}
    return child_process.run(["/bin/sh", "-c", script], cwd=str(folder), environment=ENVIRONMENT, **given)


@LINUX_ONLY
@every(
    "script, cause",
    [
        ("while :; do :; done", RESOURCES),
        ("mkfifo p; read x < p", DEADLOCK),
        ("sleep 1000 & wait", DEADLOCK),
        ("kill -STOP $$", DEADLOCK),
    ],
)
def test_a_timeout_gets_its_cause(tmp_path: Path, script: str, cause: str) -> None:
    finished = run(script, tmp_path, timeout=0.5)
    assert (finished.timed_out, finished.limit, finished.cause) == (True, WALL, cause), finished.why
    assert finished.words().startswith(f"stopped after 0.5 s ({cause}: ")


def test_silence_ends_an_idle_process(tmp_path: Path) -> None:
    finished = run("echo began; sleep 1000", tmp_path, timeout=50.0, idle_timeout=0.4, agent=True)
    assert (finished.timed_out, finished.limit, finished.cause) == (True, IDLE, MODEL_STALL)
    assert finished.words().startswith("stopped after 0.4 s of silence (model-stall: ")
    assert finished.output.text() == "began\n"


def test_a_process_with_output_is_not_idle(tmp_path: Path) -> None:
    """The script takes longer than the allowed silence."""
    script = "i=0; while [ $i -lt 13 ]; do echo $i; sleep 0.1; i=$((i+1)); done"
    finished = run(script, tmp_path, idle_timeout=1.0)
    assert (finished.exit_code, finished.timed_out) == (0, False)


@pytest.mark.nightly
@LINUX_ONLY
def test_a_silent_process_that_computes_is_not_idle(tmp_path: Path) -> None:
    finished = run("while :; do :; done", tmp_path, timeout=0.8, idle_timeout=0.3)
    assert (finished.limit, finished.cause) == (WALL, RESOURCES)


def test_an_observation_made_stale_by_output_is_repeated() -> None:
    limits = TimeLimits(100.0, None, 10.0, agent=True)
    assert limits.next_look(None) == 108.0
    assert limits.next_look(105.0) == 113.0


def test_without_limits_nothing_is_observed() -> None:
    assert TimeLimits(0.0, None, None, agent=False).next_look(None) is None


SHOWN = (
    "import resource as r; print(*(r.getrlimit(kind)[0] for kind in (r.RLIMIT_NOFILE, r.RLIMIT_NPROC, r.RLIMIT_CPU)))"
)


@every(
    "script, limits, words",
    [
        (f"exec {sys.executable} -c 'bytearray(1 << 30)'", {"memory": 512 << 20}, "MemoryError"),
        ("head -c 3000 /dev/zero > f; echo $(wc -c < f)", {"file_size": 1024}, "1024"),
        (f"exec {sys.executable} -I -S -c '{SHOWN}'", {"open_files": 40, "processes": 77, "cpu": 5}, "40 77 5"),
    ],
)
@LINUX_ONLY
def test_a_limit_is_enforced_by_the_system(tmp_path: Path, script: str, limits: dict[str, int], words: str) -> None:
    """S19."""
    assert words in run(script, tmp_path, limits=limits).output.text()


def test_a_process_over_its_cpu_limit_is_ended_with_that_cause(tmp_path: Path) -> None:
    """The signal is what the system sends then."""
    finished = run("kill -XCPU $$", tmp_path)
    assert (finished.signal, finished.timed_out, finished.cause) == (signal.SIGXCPU, False, RESOURCES)
    assert finished.words() == "ended by signal 24 (resources: CPU time limit reached)"


def test_a_kill_from_outside_is_reported(tmp_path: Path) -> None:
    """F37: as a signal, and as the exit that a shell makes of it."""
    assert run("kill -9 $$", tmp_path).cause == RESOURCES
    assert run("sh -c 'kill -9 $$'; exit $?", tmp_path).cause == RESOURCES
    assert run("kill -15 $$", tmp_path).cause is None
    assert run("exit 1", tmp_path).cause is None


def test_the_use_of_a_process_is_read_and_an_ended_one_has_none() -> None:
    assert (stalls.sample([os.getpid()]).cpu or 0) > 0
    assert stalls.sample([2**22 + 1]).cpu is None


def test_silence_is_no_stall_where_the_system_shows_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that computes silently must not be ended for it."""
    monkeypatch.setattr(stalls, "sample", lambda _: Sample(time.monotonic(), None, runs=False))
    finished = run("sleep 1", tmp_path, timeout=20.0, idle_timeout=0.2)
    assert (finished.exit_code, finished.timed_out) == (0, False)


NONE: Any = None


@every(
    "code, signal, timed_out, crashed",
    [
        (None, 9, False, True),
        (None, 11, False, True),
        (126, None, False, True),
        (127, None, False, True),
        (None, 9, True, False),
        (1, None, False, False),
        (2, None, False, False),
        (137, None, False, False),
    ],
)
def test_a_process_crashed_if_a_signal_ended_it_or_it_never_started(
    code: int | None, signal: int | None, *, timed_out: bool, crashed: bool
) -> None:
    """137 is the code of a program that reports the signal of another; it ended by itself."""
    assert Finished(code, signal, timed_out, NONE, None, 0.0).crashed == crashed


class Says:
    """A `Watch` that returns the given results one by one, and the last one repeatedly."""

    def __init__(self, *looks: tuple[bool, bool], then: Callable[[], object] = lambda: None) -> None:
        self._looks: Iterator[tuple[bool, bool]] = iter(looks)
        self._then = then
        self._now = (False, False)
        self.count = 0

    @property
    def waits(self) -> bool:
        return self._now[1]

    def look(self) -> bool:
        self._now = next(self._looks, self._now)
        self.count += 1
        self._then()
        return self._now[0]


@pytest.fixture
def frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "_EVERY", 0.02)


@pytest.mark.usefixtures("frequent_looks")
def test_an_agent_that_waits_for_a_person_has_its_whole_time_and_is_not_stalled(tmp_path: Path) -> None:
    """Nor is one silent that has new output."""
    finished = run("exec sleep 1000", tmp_path, watch=Says((True, True)), timeout=0.5, idle_timeout=0.2)
    assert (finished.limit, finished.cause) == (WALL, EXTERNAL)
    assert "reports that it is waiting" in finished.words()
    assert run("exec sleep 1000", tmp_path, watch=Says((True, False)), timeout=0.5, idle_timeout=0.2).limit == WALL


@pytest.mark.usefixtures("frequent_looks")
def test_silence_counts_from_the_end_of_a_wait(tmp_path: Path) -> None:
    watch = Says(*[(False, True)] * 25, (False, False))
    finished = run("exec sleep 1000", tmp_path, watch=watch, timeout=1000, idle_timeout=0.2)
    assert finished.limit == IDLE
    assert watch.count > 25
    assert "says" not in finished.words()


def test_the_number_of_checks_depends_on_time_and_not_on_output(tmp_path: Path) -> None:
    """Each line turns to the process; none of them is a reason to look."""
    watch = Says()
    finished = run("i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done", tmp_path, watch=watch)
    assert finished.output.size > 100_000
    assert watch.count <= finished.seconds / 0.5


class Interrupted(Exception):
    pass


def test_a_check_completes_when_a_signal_arrives(tmp_path: Path) -> None:
    """A started write of the file is completed, and the next process can read it."""
    done: list[int] = []

    def come() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        done.append(1)

    before = {number: signal.getsignal(number) for number in signals.CAUGHT}
    interrupts = SignalInterrupts(lambda _: Interrupted())
    try:
        interrupts.install()
        with pytest.raises(Interrupted), interrupts.armed():
            run("exec sleep 1000", tmp_path, watch=Says(then=come), timeout=30)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert done == [1]
