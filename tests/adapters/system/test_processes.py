"""Running processes: their end is detected, their output is bounded and no process is left (R-RUN-8)."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from idumb.system import child_process, process_end, process_tree, signals, supervision
from tests.support import python
from tests.support.cases import every
from tests.support.ended import has_ended
from tests.support.patience import patient

ENVIRONMENT = {"PATH": os.environ["PATH"]}
LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, which only Linux has")

# Each starts a process that notes its own id in `pid` and would sleep for ever; the starter ends when it is noted.
ESCAPES = {
    "background": "sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do :; done",
    "setsid": "setsid sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do :; done",
    "double fork": "(setsid sh -c 'echo $$ > pid; exec sleep 1000' &) ; while [ ! -s pid ]; do :; done",
    "without environment": "env -i setsid sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do :; done",
    "deaf": "setsid sh -c 'trap \"\" TERM HUP INT; echo $$ > pid; while :; do sleep 1000; done' &"
    " while [ ! -s pid ]; do :; done",
}


def run(script: str, cwd: Path, **options: Any) -> child_process.Finished:
    given = {"grace": 0.2, **options}
    return child_process.run(["/bin/sh", "-c", script], cwd=str(cwd), environment=ENVIRONMENT, **given)


def noted(folder: Path, name: str = "pid") -> int:
    return int((folder / name).read_text(encoding="ascii"))


def has_noted(folder: Path) -> bool:
    return (folder / "pid").exists() and bool((folder / "pid").read_text(encoding="ascii"))


def test_output_and_exit_code_come_from_the_process(tmp_path: Path) -> None:
    finished = run("echo out; echo err >&2; exit 3", tmp_path)
    assert (finished.exit_code, finished.signal, finished.timed_out) == (3, None, False)
    assert finished.output.text() == "out\nerr\n"
    assert finished.output.sha256 == hashlib.sha256(b"out\nerr\n").hexdigest()
    assert not finished.output.truncated
    apart = run("echo out; echo err >&2", tmp_path, separate_errors=True)
    assert (apart.output.text(), apart.errors and apart.errors.text()) == ("out\n", "err\n")


def test_exit_codes_count_although_the_parent_ignored_the_ends_of_its_children(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        signals.keep_exit_codes()
        assert run("exit 3", tmp_path).exit_code == 3
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_program_cannot_remove_the_mark_of_its_ancestors() -> None:
    words = "from idumb.system import process_tree as t; print(t.own_mark(), [m.who for m in t.marks_above()][0])"
    script = f'env -u IDUMB_PLACE {sys.executable} -c "$0"; exit $?'
    marked = {**os.environ, "IDUMB_PLACE": "r@/p", "IDUMB_ROLE": "builder", "IDUMB_TASK": "T1-01"}
    said = subprocess.run(["sh", "-c", script, words], env=marked, capture_output=True, text=True, check=True).stdout
    assert said == "None the builder of T1-01\n"


def test_a_missing_program_is_a_system_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        child_process.run(["/nowhere/program"], cwd=str(tmp_path), environment={})


def test_the_process_gets_only_the_given_environment_and_a_cookie(tmp_path: Path) -> None:
    program = "import os, json; print(json.dumps(dict(os.environ)))"
    finished = child_process.run(
        [sys.executable, "-I", "-c", program], cwd=str(tmp_path), environment={"A": "1", "LC_ALL": "C.UTF-8"}
    )
    import json

    seen = json.loads(finished.output.text())
    assert len(seen.pop(process_tree.PROCESS_COOKIE)) == 24
    assert seen == {"A": "1", "LC_ALL": "C.UTF-8"}


def test_relative_folders_of_path_do_not_reach_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", ".:/usr/bin::tools:/bin")
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.delenv("LANG", raising=False)
    assert child_process.environment(["PATH", "LANG"], {"MORE": "y"}) == {"PATH": "/usr/bin:/bin", "MORE": "y"}


@every("script, answer", [("wc -c", "1000000"), ("exec true", "")])
def test_large_input_arrives_and_may_stay_unread(tmp_path: Path, script: str, answer: str) -> None:
    finished = run(script, tmp_path, stdin=b"x" * 1_000_000)
    assert finished.output.text().strip() == answer
    assert finished.exit_code == 0


@pytest.mark.parametrize("escape", [pytest.param(s, id=n, marks=LINUX_ONLY) for n, s in ESCAPES.items()])
def test_no_child_of_a_process_outlives_it(tmp_path: Path, escape: str) -> None:
    """F59, M12: background jobs, daemons in their own session, without environment, deaf to TERM.

    They hold the output open: the end of the process is waited for, and not that of its output.
    """
    finished = run(escape, tmp_path)
    assert finished.exit_code == 0
    assert not process_tree.is_alive(noted(tmp_path))


def test_a_timed_out_process_is_ended_with_its_children(tmp_path: Path) -> None:
    script = "sh -c 'echo $$ > pid; exec sleep 1000' & echo began; wait"
    finished = patient(
        lambda seconds: run(script, tmp_path, timeout=seconds),
        lambda end: has_noted(tmp_path) and end.output.size > 0,
        0.3,
    )
    assert finished.timed_out
    assert finished.signal == signal.SIGTERM
    assert finished.output.text() == "began\n"
    assert not process_tree.is_alive(noted(tmp_path))


def test_a_process_that_ignores_the_stop_request_is_killed(tmp_path: Path) -> None:
    script = "trap '' TERM; echo $$ > pid; while :; do sleep 1000; done"
    finished = patient(lambda seconds: run(script, tmp_path, timeout=seconds), lambda _: has_noted(tmp_path), 0.3)
    assert (finished.timed_out, finished.signal) == (True, signal.SIGKILL)
    assert not process_tree.is_alive(noted(tmp_path))


def test_a_process_may_use_its_grace_period_to_finish_its_output(tmp_path: Path) -> None:
    words = "trap 'head -c 1000000 /dev/zero; echo saved; exit 7' TERM"
    script = f"{words}; echo $$ > pid; sleep 1000 & wait"
    finished = patient(
        lambda seconds: run(script, tmp_path, timeout=seconds, grace=20), lambda _: has_noted(tmp_path), 0.3
    )
    assert (finished.timed_out, finished.exit_code) == (True, 7)
    assert finished.output.size == 1_000_006
    assert finished.output.tail.endswith(b"saved\n")


@pytest.fixture(params=("handles", "no handles"))
def _handles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some systems have no descriptor of a process that can be waited for."""
    if request.param == "no handles":
        monkeypatch.setattr(process_end, "open_handle", lambda _: None)


@pytest.mark.usefixtures("_handles")
def test_the_end_of_a_process_is_waited_for_and_its_exit_code_stays() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 0.2; exit 7"]) as process, subprocess.Popen(["sleep", "1000"]) as other:
        process_end.wait_gone([process.pid], 60)
        assert not process_tree.is_alive(process.pid)
        process_end.wait_gone([process.pid, other.pid], 0.01)
        assert process_tree.is_alive(other.pid)
        assert process.wait() == 7
        other.kill()


def test_processes_are_ended_though_no_more_files_can_be_opened() -> None:
    lines = (
        "import resource, subprocess; from idumb.system import process_end",
        "program = subprocess.Popen(['sleep', '1000'])",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
        "process_end.end(lambda: [program.pid] if program.poll() is None else [], 0.1)",
        "print(program.wait() < 0)",
    )
    assert python.run("\n".join(lines)) == "True\n"


@pytest.mark.usefixtures("_handles")
def test_an_interrupted_process_has_its_grace_period(tmp_path: Path) -> None:
    def interrupt(data: bytes) -> None:
        if data == b"begun\n":
            raise KeyboardInterrupt

    script = "trap 'sleep 0.1; echo > saved; exit' TERM; echo begun; while :; do sleep 0.01; done"
    with pytest.raises(KeyboardInterrupt):
        child_process.run(
            ["/bin/sh", "-c", script], cwd=str(tmp_path), environment=ENVIRONMENT, sink=interrupt, grace=60
        )
    assert (tmp_path / "saved").exists()


def test_where_orphans_are_not_adopted_the_group_of_a_program_has_its_grace_period(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_end, "_adopting", False)
    monkeypatch.setattr(process_tree, "every_process", list)
    saver = "trap 'sleep 0.1; echo > saved; exit' TERM; echo $$ > pid; while :; do sleep 0.01; done"
    run(f'sh -c "{saver}" & while [ ! -s pid ]; do :; done'.replace("$$", "\\$\\$"), tmp_path, grace=60)
    assert has_ended(noted(tmp_path))
    assert (tmp_path / "saved").exists()


def test_an_interrupt_leaves_nothing_running(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    # More than a pipe holds: when all is written, the process is known to us and its output is being read.
    output_command = "head -c 1000000 /dev/zero"
    started = "sh -c 'echo $$ > pid; exec sleep 1000' & until [ -s pid ]; do :; done"
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(f"{started}; {output_command}; kill -USR1 {os.getpid()}; wait", tmp_path)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not process_tree.is_alive(noted(tmp_path))


@LINUX_ONLY
def test_an_interrupt_at_the_start_leaves_nothing_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process exists, but its creator does not know its id yet."""
    started: list[int] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self.pid)
            assert self.stdout is not None
            self.stdout.close()
            self._child_created = False  # so that nobody is warned of an object that was never handed out
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("exec sleep 1000", tmp_path)
    assert not process_tree.is_alive(started[0])


INTERRUPTED_START = """
import os, signal, sys
from idumb.system import child_process, process_end, process_tree
from idumb.system.signals import SignalInterrupts

class Interrupted(Exception):
    def __init__(self, number): super().__init__(number)

def come(pid):
    os.kill(os.getpid(), signal.SIGTERM)
    return opened(pid)

opened, os.pidfd_open = os.pidfd_open, come
interrupts = SignalInterrupts(Interrupted)
interrupts.install()
try:
    with interrupts.armed():
        argv, environment = ["sh", "-c", "echo $$ > pid; exec sleep 1000"], {"PATH": sys.argv[2]}
        child_process.run(argv, cwd=sys.argv[1], environment=environment, timeout=30)
except Interrupted as interrupted:
    print("interrupted", interrupted, process_tree.children())
"""


@LINUX_ONLY
def test_a_signal_while_a_program_starts_leaves_nothing_running(tmp_path: Path) -> None:
    assert python.run(INTERRUPTED_START, tmp_path, ENVIRONMENT["PATH"]) == "interrupted 15 []\n"
    assert not (tmp_path / "pid").exists() or not process_tree.is_alive(noted(tmp_path))


@LINUX_ONLY
def test_an_orphan_that_ends_during_the_work_leaves_no_zombie(tmp_path: Path) -> None:
    """idumb adopts orphans, so it must collect them: a program may wait until their ids are gone."""
    script = (
        "(sh -c 'echo $$ > dead; exit 0' &); while [ ! -s dead ]; do :; done; while kill -0 $(cat dead); do :; done"
    )
    assert run(f"{script} 2>/dev/null", tmp_path).exit_code == 0


@LINUX_ONLY
def test_a_daemon_without_environment_of_a_program_in_another_thread_is_ended(tmp_path: Path) -> None:
    """Its folder tells whose it is."""
    script = "(env -i setsid sh -c 'echo $$ > pid; exec sleep 1000' >/dev/null 2>&1 &); until [ -s pid ]; do :; done"
    child_process.run(
        ["/bin/sh", "-c", script], cwd=str(tmp_path), environment=ENVIRONMENT, grace=0.2, beside=threading.Event()
    )
    assert not process_tree.is_alive(noted(tmp_path))


@LINUX_ONLY
def test_a_later_process_finds_a_daemon_without_environment_by_its_folder(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    script = "echo $$ > ../pid; exec sleep 1000"
    daemon = subprocess.Popen(["env", "-i", "sh", "-c", script], cwd=tmp_path / "work", start_new_session=True)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        pass
    assert process_end.end_all("IDUMB_PLACE", "no such run", folder=str(tmp_path / "other")) == ()
    assert process_end.end_all("IDUMB_PLACE", "no such run", folder=str(tmp_path / "work")) == (daemon.pid,)
    assert daemon.wait() == -signal.SIGTERM


@LINUX_ONLY
def test_large_output_needs_little_memory(tmp_path: Path) -> None:
    """F60: 100 MB pass through; the kept part is bounded, and the digest covers everything."""
    program = (
        "import sys; from idumb.system import child_process\n"
        "argv = ['/bin/sh', '-c', 'head -c 100000000 /dev/zero']\n"
        "f = child_process.run(argv, cwd='/', environment={'PATH': sys.argv[1]})\n"
        "o = f.output; kept = len(o.begin) + len(o.end)\n"
        # Not `ru_maxrss`: a process that was just started inherits that of its parent.
        "peak = [l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')][0]\n"
        "print(o.size, kept, o.truncated, peak, o.sha256)\n"
    )
    size, kept, truncated, peak, sha256 = python.run(program, ENVIRONMENT["PATH"]).split()
    assert (size, kept, truncated) == (
        "100000000",
        str(supervision.HEAD + supervision.TAIL + 2 * supervision.MARGIN),
        "True",
    )
    assert int(peak) < 60_000  # KiB
    whole = hashlib.sha256()
    for _ in range(100):
        whole.update(bytes(1_000_000))
    assert sha256 == whole.hexdigest()


def test_omitted_output_is_reported_and_only_whole_lines_are_kept(tmp_path: Path) -> None:
    finished = run("i=0; while [ $i -lt 9000 ]; do echo line-$i; i=$((i+1)); done", tmp_path)
    lines = finished.output.text().splitlines()
    gap = next(i for i, line in enumerate(lines) if "bytes left out" in line)
    assert lines[0] == "line-0"
    assert lines[-1] == "line-8999"
    assert all(line.startswith("line-") for i, line in enumerate(lines) if i != gap)
    left_out = int(lines[gap].split()[1])
    assert left_out + sum(len(line) + 1 for i, line in enumerate(lines) if i != gap) == finished.output.size


def test_nul_and_invalid_text_bytes_are_shown_as_escapes(tmp_path: Path) -> None:
    finished = run(r"printf 'a\000b\377c\303\244'", tmp_path)
    assert finished.output.text() == "a\\x00b\\xffcä"
    assert finished.output.head == b"a\0b\xffc\xc3\xa4"


@every("size", [0, supervision.HEAD + supervision.TAIL, supervision.HEAD + supervision.TAIL + 1, 3_000_000])
def test_all_output_is_passed_on(tmp_path: Path, size: int) -> None:
    pieces: list[bytes] = []
    (tmp_path / "data").write_bytes(os.urandom(size))
    finished = child_process.run(["cat", "data"], cwd=str(tmp_path), environment=ENVIRONMENT, sink=pieces.append)
    assert finished.output.truncated is (size > supervision.HEAD + supervision.TAIL)
    assert b"".join(pieces) == (tmp_path / "data").read_bytes()


def test_our_own_children_are_not_orphans(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "1000"]) as own:
        run("true", tmp_path)
        assert own.pid not in process_end._strays("", frozenset())
        assert process_end.end_strays() in {(), None}
        assert own.poll() is None
        own.kill()


def in_thread(work: Callable[[], child_process.Finished]) -> Callable[[], child_process.Finished]:
    done: list[child_process.Finished] = []
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()

    def result() -> child_process.Finished:
        thread.join()
        return done[0]

    return result


def test_concurrent_processes_do_not_affect_each_other(tmp_path: Path) -> None:
    for name in ("gate", "adopted", "go", "go.first"):
        os.mkfifo(tmp_path / name)
    # The first leaves an orphan in a session of its own; the second begins before and ends while that orphan lives.
    orphan = "setsid sh -c 'echo > adopted; cat go > got; echo > finished'"
    first = in_thread(lambda: run(f"cat gate; ({orphan} &); cat go.first", tmp_path, timeout=30))
    second = run("echo > gate; cat adopted", tmp_path, timeout=30)
    assert second.exit_code == 0
    run("echo on > go; while [ ! -s finished ]; do :; done; echo > go.first", tmp_path, timeout=30)
    assert first().exit_code == 0
    assert (tmp_path / "got").read_text(encoding="ascii") == "on\n"


@LINUX_ONLY
def test_a_process_whose_main_thread_ended_is_alive_and_detected() -> None:
    """The system shows it as a zombie, and its environment only by the other threads."""
    name = f"run-{os.urandom(8).hex()}"
    program = (
        "import ctypes, threading; threading.Thread(target=threading.Event().wait).start();"
        " print(flush=True); ctypes.CDLL(None).pthread_exit(None)"
    )
    environment = {**ENVIRONMENT, process_tree.RUN_COOKIE: name}
    argv = [sys.executable, "-I", "-c", program]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, start_new_session=True) as orphan:
        assert orphan.stdout is not None
        orphan.stdout.readline()
        while (process_tree.status(orphan.pid) or [b""])[0] != b"Z":
            pass
        assert process_tree.is_alive(orphan.pid)
        assert process_end.end_all(process_tree.RUN_COOKIE, name) == (orphan.pid,)
        orphan.wait()
        assert not process_tree.is_alive(orphan.pid)


@LINUX_ONLY
def test_ending_the_processes_of_a_run_spares_the_caller_and_its_parents() -> None:
    name = f"run-{os.urandom(8).hex()}"
    program = f"from idumb.system import process_end; print(process_end.end_all('IDUMB_RUN', '{name}'))"
    root = str(Path(__file__).parents[3])
    environment = {**ENVIRONMENT, "PYTHONPATH": root, process_tree.RUN_COOKIE: name, "PROGRAM": program}
    done = subprocess.run(
        ["/bin/sh", "-c", f'{sys.executable} -c "$PROGRAM"; echo parent lives'],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "()\nparent lives\n"


@LINUX_ONLY
def test_an_agent_ends_with_an_idumb_that_is_killed(tmp_path: Path) -> None:
    """Nobody would pay for what it does until the next command."""
    script = "echo $$ > pid; exec sleep 1000"
    code = (
        "import sys; from idumb.system import child_process;"
        " child_process.run(['/bin/sh', '-c', sys.argv[1]], cwd=sys.argv[2], environment={}, agent=True)"
    )
    with python.start(code, script, tmp_path) as host:
        while not has_noted(tmp_path):
            assert host.poll() is None
        host.kill()
    assert has_ended(noted(tmp_path))
