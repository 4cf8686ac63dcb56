"""A file that a running process writes: changes are detected without blocking, silence is judged (R-ADAPT-2)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from idumb.system.files.named_files import WatchedFile
from idumb.system.processes import child_process, signals, supervision
from idumb.system.processes.signals import SignalInterrupts
from idumb.system.processes.stalls import EXTERNAL, IDLE, WALL

ENVIRONMENT = {"PATH": os.environ["PATH"]}
MOST = 100


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "state"


def watched(place: Path) -> WatchedFile:
    return WatchedFile(str(place), MOST)


def test_content_is_read_once_until_it_changes(place: Path) -> None:
    file = watched(place)
    assert file.news() is None
    place.write_bytes(b"one")
    assert [file.news() for _ in range(4)] == [b"one", b"one", None, None]
    place.write_bytes(b"another")
    assert file.news() == b"another"


def test_a_change_with_equal_size_and_times_is_read_by_the_next_check(place: Path) -> None:
    """Files' times have a grain; both writes can fall into one."""
    place.write_bytes(b"one")
    file = watched(place)
    assert file.news() == b"one"
    with place.open("r+b") as same:
        same.write(b"two")
    assert file.news() == b"two"


def test_replacing_and_removing_the_file_are_changes(place: Path) -> None:
    file = watched(place)
    place.write_bytes(b"one")
    assert [file.news() for _ in range(3)] == [b"one", b"one", None]
    place.with_name("other").write_bytes(b"two")
    place.with_name("other").replace(place)
    assert file.news() == b"two"
    place.unlink()
    assert [file.news() for _ in range(3)] == [b"", b"", None]


def a_link(place: Path) -> None:
    place.with_name("aside").write_bytes(b"{}")
    place.symlink_to("aside")


def a_loop(place: Path) -> None:
    place.symlink_to(place.name)


def a_device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def a_socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))


def too_much(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1 << 40)


def a_little_too_much(place: Path) -> None:
    place.write_bytes(b"x" * (MOST + 1))


HOSTILE: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link": a_link,
    "a link to itself": a_loop,
    "a link to a device": a_device,
    "a socket": a_socket,
    "a file without an end": too_much,
    "a file that is too long": a_little_too_much,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_special_file_reads_as_empty_without_blocking(place: Path, kind: str) -> None:
    file = watched(place)
    HOSTILE[kind](place)
    assert not any(file.news() for _ in range(3))


OPENED = """
import os, sys
from idumb.system.files.named_files import WatchedFile
place, opened = sys.argv[1], []
sys.addaudithook(lambda event, given: opened.append(1) if event == "open" and given[0] == place else None)
file = WatchedFile(place, 100)
for _ in range(1000):
    file.news()
print(len(opened))
"""


def test_an_unchanged_file_is_not_opened_again(place: Path) -> None:
    place.write_bytes(b"one")
    root = str(Path(__file__).parents[3])
    argv = [sys.executable, "-c", OPENED, str(place)]
    done = subprocess.run(argv, env={"PYTHONPATH": root}, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("2\n", "")


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


@pytest.mark.usefixtures("frequent_looks")
def test_an_agent_without_output_is_silent(tmp_path: Path) -> None:
    assert run("exec sleep 1000", tmp_path, Says(), timeout=1000, idle=0.2).limit == IDLE


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
