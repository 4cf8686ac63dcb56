"""The causes of stalled work: the table, and the same causes with real processes (R-RUN-8, F37, S19)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from idumb.system.processes import child_process, process_tree, stalls
from idumb.system.processes.stalls import DEADLOCK, EXTERNAL, IDLE, MODEL_STALL, RESOURCES, WALL, Observation
from idumb.system.processes.supervision import TimeLimits
from tests.support.cases import every

LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, which only Linux has")
ENVIRONMENT = {"PATH": os.environ["PATH"]}


@every(
    "seen, cause",
    [
        (Observation(busy=1.0, states="RS"), RESOURCES),
        (Observation(busy=0.1, runs=True, states="R"), RESOURCES),
        (Observation(busy=0.1, states="R"), DEADLOCK),
        (Observation(busy=0.0, states="S", full="memory"), RESOURCES),
        (Observation(agent=True, states="S", full="processes", connections=1), RESOURCES),
        (Observation(agent=True, busy=2.0, connections=1), RESOURCES),
        (Observation(states="ST", connections=1), DEADLOCK),
        (Observation(states="S", waits=("pipe_read",)), DEADLOCK),
        (Observation(states="S", waits=("futex_wait_queue",), silence=100.0), DEADLOCK),
        (Observation(states="S", waits=("hrtimer_nanosleep",)), DEADLOCK),
        (Observation(states="S", waits=("hrtimer_nanosleep",), silence=100.0), DEADLOCK),
        (Observation(states="S", waits=("hrtimer_nanosleep",), silence=0.5), EXTERNAL),
        (Observation(states="S", waits=("do_wait",), silence=0.5), DEADLOCK),
        (Observation(states="S", connections=1), EXTERNAL),
        (Observation(states="DS", silence=1.0), EXTERNAL),
        (Observation(agent=True, states="D"), EXTERNAL),
        (Observation(agent=True, states="S", connections=2), MODEL_STALL),
        (Observation(agent=True, states="S", limit=IDLE, silence=60.0), MODEL_STALL),
        (Observation(agent=True, states="S", limit=WALL, silence=60.0), DEADLOCK),
        (Observation(limit=IDLE, states="S", silence=60.0), DEADLOCK),
        (Observation(limit=IDLE, states="S", connections=1), EXTERNAL),
        (Observation(), DEADLOCK),
    ],
)
def test_each_observation_has_one_cause(seen: Observation, cause: str) -> None:
    stall = stalls.cause_of(seen)
    assert stall.kind == cause
    assert stall.words


def test_the_message_states_the_basis_of_the_diagnosis() -> None:
    seen = Observation(limit=IDLE, agent=True, states="S", connections=1, silence=61.2)
    assert stalls.explain(seen) == "hardly any CPU used, 1 open connection, silent for 61 s"
    waits = ("do_wait", "futex_wait_queue", "unix_stream_read_generic")
    assert stalls.waited_for(Observation(waits=waits)) == "a child process and a lock and a socket of this machine"


@every(
    "number, starved, words",
    [(9, False, "from outside"), (9, True, "memory ran out"), (24, False, "CPU time"), (25, False, "file size")],
)
def test_a_signal_that_idumb_did_not_send_indicates_a_limit(number: int, words: str, *, starved: bool) -> None:
    """F37: also as exit 137, as a shell says it."""
    stall = stalls.of_signal(number, starved=starved)
    assert stall is not None
    assert stall.kind == RESOURCES
    assert words in stall.words


@every("number", [0, 1, 15, 11, -128])
def test_other_ends_have_no_cause(number: int) -> None:
    assert stalls.of_signal(number, starved=True) is None


def run(
    script: str,
    folder: Path,
    *,
    timeout: float | None = None,
    idle: float | None = None,
    agent: bool = False,
    limits: dict[str, int] | None = None,
) -> child_process.Finished:
    return child_process.run(
        ["/bin/sh", "-c", script],
        cwd=str(folder),
        environment=ENVIRONMENT,
        timeout=timeout,
        idle_timeout=idle,
        agent=agent,
        limits=limits,
        grace=0.2,
    )


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


CONNECTED = """
import socket, sys
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.recv(1)
"""


@LINUX_ONLY
def test_an_agent_with_an_idle_connection_waits_for_its_model(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        finished = child_process.run(
            [sys.executable, "-I", "-S", "-c", CONNECTED, str(server.getsockname()[1])],
            cwd=str(tmp_path),
            environment=ENVIRONMENT,
            timeout=1.0,
            agent=True,
            grace=0.2,
        )
    assert finished.cause == MODEL_STALL, finished.why
    assert "1 open connection" in finished.why


@LINUX_ONLY
def test_the_peer_of_an_idle_connection_determines_the_cause() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        argv = [sys.executable, "-I", "-S", "-c", CONNECTED, str(server.getsockname()[1])]
        with subprocess.Popen(argv) as process, server.accept()[0]:
            for agent, cause in ((True, MODEL_STALL), (False, EXTERNAL)):
                seen = stalls.look([process.pid], None, limit=WALL, agent=agent, silence=None)
                assert stalls.cause_of(seen).kind == cause


@LINUX_ONLY
def test_a_connection_inside_the_work_has_no_external_peer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        with here, accepted:
            mine = {row[2] for row in stalls.connections([os.getpid()])}
            assert str(os.fstat(here.fileno()).st_ino) not in mine
            assert str(os.fstat(accepted.fileno()).st_ino) not in mine


def test_silence_ends_an_idle_process(tmp_path: Path) -> None:
    finished = run("echo began; sleep 1000", tmp_path, timeout=50.0, idle=0.4, agent=True)
    assert (finished.timed_out, finished.limit, finished.cause) == (True, IDLE, MODEL_STALL)
    assert finished.words().startswith("stopped after 0.4 s of silence (model-stall: ")
    assert finished.output.text() == "began\n"


def test_a_process_with_output_is_not_idle(tmp_path: Path) -> None:
    """The script takes longer than the allowed silence."""
    script = "i=0; while [ $i -lt 13 ]; do echo $i; sleep 0.1; i=$((i+1)); done"
    finished = run(script, tmp_path, idle=1.0)
    assert (finished.exit_code, finished.timed_out) == (0, False)


@pytest.mark.nightly
@LINUX_ONLY
def test_a_silent_process_that_computes_is_not_idle(tmp_path: Path) -> None:
    finished = run("while :; do :; done", tmp_path, timeout=0.8, idle=0.3)
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


@LINUX_ONLY
def test_processes_are_described_as_the_system_reports_them() -> None:
    seen = stalls.look([os.getpid()], None, limit=WALL, agent=False, silence=1.0)
    assert seen.states == "R"
    assert stalls.sample([os.getpid()]).cpu > 0
    assert stalls.look([2**22 + 1], None, limit=WALL, agent=False, silence=None).states == ""
    assert process_tree.status(2**22 + 1) is None
