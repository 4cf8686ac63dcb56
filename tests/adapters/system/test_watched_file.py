"""A file that a running process writes: changes are detected without blocking, silence is judged (R-ADAPT-2)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from idumb.system import child_process, signals, supervision
from idumb.system.signals import SignalInterrupts
from idumb.system.stalls import EXTERNAL, IDLE, WALL

ENVIRONMENT = {"PATH": os.environ["PATH"]}


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


def run(
    script: str, folder: Path, watch: Says, *, timeout: float | None = None, idle: float | None = None
) -> child_process.Finished:
    return child_process.run(
        ["/bin/sh", "-c", script],
        cwd=str(folder),
        environment=ENVIRONMENT,
        timeout=timeout,
        idle_timeout=idle,
        agent=True,
        grace=0.2,
        watch=watch,
    )


@pytest.mark.usefixtures("frequent_looks")
def test_an_agent_that_waits_for_a_person_has_its_whole_time_and_is_not_stalled(tmp_path: Path) -> None:
    finished = run("exec sleep 1000", tmp_path, Says((True, True)), timeout=0.5, idle=0.2)
    assert (finished.limit, finished.cause) == (WALL, EXTERNAL)
    assert "reports that it is waiting" in finished.words()


@pytest.mark.usefixtures("frequent_looks")
def test_an_agent_with_new_output_is_not_silent(tmp_path: Path) -> None:
    finished = run("exec sleep 1000", tmp_path, Says((True, False)), timeout=0.5, idle=0.2)
    assert finished.limit == WALL
    assert "says" not in finished.words()


@pytest.mark.usefixtures("frequent_looks")
def test_silence_counts_from_the_end_of_a_wait(tmp_path: Path) -> None:
    watch = Says(*[(False, True)] * 25, (False, False))
    finished = run("exec sleep 1000", tmp_path, watch, timeout=1000, idle=0.2)
    assert finished.limit == IDLE
    assert watch.count > 25
    assert "says" not in finished.words()


def test_the_number_of_checks_depends_on_time_and_not_on_output(tmp_path: Path) -> None:
    """Each line turns to the process; none of them is a reason to look."""
    watch = Says()
    finished = run("i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done", tmp_path, watch)
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
            run("exec sleep 1000", tmp_path, Says(then=come), timeout=30)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert done == [1]
