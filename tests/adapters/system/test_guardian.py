"""Processes of an executor end with it, even if the executor is killed (R-RUN-8, F30, F59)."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from idumb.system.processes import child_process, process_tree, started_program
from tests.support.cases import every

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {"PATH": os.environ["PATH"]}
LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, which only Linux has")

# Runs a script under guard and is killed while that works; the door tells the ids of what the script started.
EXECUTOR = """
import sys
from idumb.system.processes import child_process
child_process.run(["/bin/sh", "-c", sys.argv[1]], cwd=sys.argv[2], environment={"PATH": sys.argv[3]}, guarded=True)
"""
DAEMON = "env -i setsid sh -c 'trap \"\" TERM HUP INT; (echo $$; echo $PPID) > door; while :; do sleep 1000; done'"


@pytest.fixture(autouse=True)
def usual_signals() -> Iterator[None]:
    """Under `nohup`, or in the background of a shell, an unguarded program would inherit ignored signals."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGHUP, signal.SIGQUIT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run(script: str, cwd: Path, *, guarded: bool = True) -> child_process.Finished:
    argv = ["/bin/sh", "-c", script]
    return child_process.run(argv, cwd=str(cwd), environment=ENVIRONMENT, guarded=guarded, grace=0.2)


def test_a_guardian_loads_nothing_that_would_double_its_start() -> None:
    script = (
        "import sys; sys.path.append(sys.argv[1]); from idumb.system.processes import guardian; print(*sys.modules)"
    )
    argv = [sys.executable, "-I", "-S", "-c", script, str(ROOT)]
    loaded = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert not {"collections", "contextlib", "ctypes", "enum", "signal", "socket", "threading", "typing"} & set(loaded)


def test_a_guarded_program_is_found_on_its_own_path_and_has_its_own_session(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "own").write_text("#!/bin/sh\nps -o sid= -p $$; echo $$\n")
    (folder / "own").chmod(0o755)
    environment = {"PATH": f"{tmp_path}/none:{folder}:{ENVIRONMENT['PATH']}"}
    finished = child_process.run(["own"], cwd=str(tmp_path), environment=environment, guarded=True)
    session, program = finished.output.text().split()
    assert session == program


@every("script", ["exit 0", "exit 3", "exit 255", "kill -9 $$", "kill -15 $$", "kill -HUP $$"])
def test_a_guarded_process_ends_like_an_unguarded_one(tmp_path: Path, script: str) -> None:
    ends = [run(f"echo out; echo err >&2; {script}", tmp_path, guarded=guarded) for guarded in (True, False)]
    first, second = ((f.exit_code, f.signal, f.timed_out, f.output, f.cause) for f in ends)
    assert first == second


def test_a_guard_that_cannot_start_is_reported_as_a_system_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-LOG-5: no defect, and the program is not run without its guard."""

    def none_left(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "no")

    monkeypatch.setattr(started_program, "_free", [])
    monkeypatch.setattr(subprocess, "Popen", none_left)
    with pytest.raises(BlockingIOError) as caught:
        run("touch ran", tmp_path)
    assert caught.value.filename == "/bin/sh"
    assert not (tmp_path / "ran").exists()


@every(
    "argv, folder, kind, subject",
    [
        (["/nowhere/program"], ".", FileNotFoundError, "/nowhere/program"),
        (["no-such-program"], ".", FileNotFoundError, "no-such-program"),
        (["/bin/true"], "gone", FileNotFoundError, "gone"),
        (["./plain"], ".", PermissionError, "./plain"),
        (["plain"], ".", PermissionError, "plain"),
        (["/bin/echo", "a\0b"], ".", OSError, "/bin/echo"),
    ],
)
def test_a_program_that_cannot_be_executed_is_an_error_with_a_guard_too(
    tmp_path: Path, argv: list[str], folder: str, kind: type[OSError], subject: str
) -> None:
    (tmp_path / "plain").write_text("no program\n", encoding="utf-8")
    environment = {"PATH": f"{tmp_path}:{tmp_path}/none"}
    with pytest.raises(kind) as caught:
        child_process.run(argv, cwd=str(tmp_path / folder), environment=environment, guarded=True)
    assert caught.value.filename == (str(tmp_path / folder) if subject == "gone" else subject)
    assert run("exit 0", tmp_path).exit_code == 0


def parent(tmp_path: Path, script: str = "") -> int:
    return int(run(f"echo $PPID{script}", tmp_path).output.text().split()[0])


@LINUX_ONLY
def test_a_guard_serves_the_programs_that_follow_and_is_replaced_when_it_is_gone(tmp_path: Path) -> None:
    first = parent(tmp_path)
    assert parent(tmp_path) == first
    assert parent(tmp_path, "; exit 3") == first
    assert parent(tmp_path, "; sleep 1000 >/dev/null 2>&1 &") == first
    assert parent(tmp_path) == first
    os.kill(first, signal.SIGKILL)
    process_tree.wait_gone([first], 30)
    second = parent(tmp_path)
    assert second != first
    # A program that kills its guard has ended with it, or was never started if the guard could not tell any more.
    ends: list[object] = []
    try:
        ends.append(run("echo $$ > pid; kill -9 $PPID; exec sleep 1000", tmp_path).signal)
    except OSError as problem:
        ends.append(problem.filename)
    assert set(ends) <= {signal.SIGKILL, "/bin/sh"}
    assert not process_tree.is_alive(int((tmp_path / "pid").read_text(encoding="ascii")))
    assert not process_tree.is_alive(second)
    assert run("exit 0", tmp_path).exit_code == 0


@LINUX_ONLY
def test_a_guard_outlives_a_program_that_stops_when_asked_and_no_other(tmp_path: Path) -> None:
    def stopped(asked: str) -> child_process.Finished:
        argv = ["/bin/sh", "-c", f"trap '{asked}' TERM; echo $PPID; while :; do read -t 1 line < door; done 2>&-"]
        return child_process.run(argv, cwd=str(tmp_path), environment=ENVIRONMENT, guarded=True, timeout=0.3, grace=0.2)

    before = parent(tmp_path)
    obedient = stopped("exit 7")
    assert (obedient.exit_code, obedient.timed_out, obedient.output.text()) == (7, True, f"{before}\n")
    assert parent(tmp_path) == before
    deaf = stopped("")
    assert (deaf.signal, deaf.timed_out, deaf.output.text()) == (signal.SIGKILL, True, f"{before}\n")
    assert parent(tmp_path) != before


@LINUX_ONLY
@every("how", ["exits", "is killed"])
def test_a_guard_without_a_program_ends_with_the_executor(tmp_path: Path, how: str) -> None:
    script = f"{EXECUTOR}\nimport os\nprint(open('own').read().strip(), flush=True)\nsys.stdin.read()"
    argv = [sys.executable, "-c", script, "echo $PPID > own", str(tmp_path), ENVIRONMENT["PATH"]]
    environment = {**ENVIRONMENT, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, cwd=tmp_path, env=environment, stdin=pipe, stdout=pipe, text=True) as executor:
        assert executor.stdout is not None
        guard = int(executor.stdout.readline())
        assert process_tree.is_alive(guard)
        if how == "is killed":
            executor.kill()
        executor.communicate()
    if how == "is killed":
        process_tree.wait_gone([guard], 30)
    assert not process_tree.is_alive(guard)


@LINUX_ONLY
def test_a_guarded_program_has_the_usual_signals_and_only_its_own_limits(tmp_path: Path) -> None:
    def state(limits: dict[str, int] | None, *, guarded: bool = True) -> list[str]:
        argv = ["/bin/sh", "-c", "grep Sig[BI] /proc/self/status; ulimit -n"]
        finished = child_process.run(
            argv, cwd=str(tmp_path), environment=ENVIRONMENT, guarded=guarded, limits=limits, separate_errors=True
        )
        return finished.output.text().splitlines()

    usual = state(None, guarded=False)
    assert state(None) == usual
    assert state({"open_files": 17}) == [*usual[:2], "17"]
    assert state(None) == usual != [*usual[:2], "17"]


def test_a_guarded_process_inherits_no_file_descriptor(tmp_path: Path) -> None:
    with open(tmp_path / "ours", "wb"):
        output = run("ls -l /proc/$$/fd /proc/$PPID/fd; cat /proc/$PPID/environ | tr '\\0' '\\n'", tmp_path)
    assert "ours" not in output.output.text()


@LINUX_ONLY
def test_a_daemon_of_a_guarded_process_is_ended_and_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "door")
    finished = run(f"({DAEMON} &); cat door > pids", tmp_path)
    daemon = int((tmp_path / "pids").read_text(encoding="ascii").split()[0])
    assert daemon in finished.leftovers
    assert not process_tree.is_alive(daemon)


@LINUX_ONLY
@every("depth", ["", "timeout 1000 "])
def test_daemons_without_environment_die_with_a_killed_executor(tmp_path: Path, depth: str) -> None:
    os.mkfifo(tmp_path / "door")
    script = f"({DAEMON} &); exec {depth}sleep 1000"
    argv = [sys.executable, "-c", EXECUTOR, script, str(tmp_path), ENVIRONMENT["PATH"]]
    with subprocess.Popen(argv, cwd=ROOT, env={**ENVIRONMENT, "PYTHONPATH": str(ROOT)}) as executor:
        with open(tmp_path / "door", encoding="ascii") as door:
            daemon = int(door.readline())
        below = process_tree.descendants([executor.pid])[1:]
        assert daemon in below
        os.kill(executor.pid, signal.SIGKILL)
        executor.wait()
    process_tree.wait_gone(below, 30)
    assert [pid for pid in below if process_tree.is_alive(pid)] == []


@LINUX_ONLY
def test_a_daemon_dies_with_an_executor_that_is_killed_while_it_waits_for_the_daemon(tmp_path: Path) -> None:
    for name in ("door", "asked"):
        os.mkfifo(tmp_path / name)
    daemon = "trap 'echo asked > asked' TERM; echo $$ > door; while :; do sleep 1000 & wait; done"
    (tmp_path / "daemon").write_text(daemon, encoding="utf-8")
    script = "(env -i setsid sh daemon >/dev/null 2>&1 &); cat door > pid"
    executor = EXECUTOR.replace("guarded=True", "guarded=True, grace=600")
    argv = [sys.executable, "-c", executor, script, str(tmp_path), ENVIRONMENT["PATH"]]
    with subprocess.Popen(argv, cwd=ROOT, env={**ENVIRONMENT, "PYTHONPATH": str(ROOT)}) as process:
        (tmp_path / "asked").read_text(encoding="ascii")
        below = process_tree.descendants([process.pid])[1:]
        assert int((tmp_path / "pid").read_text(encoding="ascii")) in below
        process.kill()
    process_tree.wait_gone(below, 30)
    assert [pid for pid in below if process_tree.is_alive(pid)] == []


@LINUX_ONLY
def test_a_daemon_without_environment_of_a_program_in_another_thread_is_ended(tmp_path: Path) -> None:
    """Its cookie is all that connects other processes with such a program, but not those below its guard."""
    os.mkfifo(tmp_path / "door")
    argv = ["/bin/sh", "-c", f"({DAEMON} >/dev/null 2>&1 &); cat door > pids; kill -9 $$"]
    finished = child_process.run(
        argv, cwd=str(tmp_path), environment=ENVIRONMENT, guarded=True, grace=0.2, beside=lambda _: None
    )
    daemon = int((tmp_path / "pids").read_text(encoding="ascii").split()[0])
    assert daemon in finished.leftovers
    assert not process_tree.is_alive(daemon)


@LINUX_ONLY
def test_an_orphan_that_ends_during_the_work_leaves_no_zombie(tmp_path: Path) -> None:
    """The guard adopts orphans, so it must collect them."""
    script = (
        "(sh -c 'echo $$ > dead; exit 0' &); while [ ! -s dead ]; do :; done; while kill -0 $(cat dead); do :; done"
    )
    assert run(script, tmp_path).exit_code == 0


@LINUX_ONLY
@pytest.mark.parametrize("program", ["yes", "cat"])
def test_a_daemon_dies_with_the_executor_even_if_the_program_ends_by_itself_at_that_moment(
    tmp_path: Path, program: str
) -> None:
    """The end of the executor closes the program's streams, so the guard hears of both ends at once."""
    os.mkfifo(tmp_path / "door")
    script = """
import os, sys
from idumb.system.processes import child_process
class Talk:
    over = False
    def begin(self): return b"x"
    def heard(self, data): return b""
argv = ["/bin/sh", "-c", sys.argv[1]]
child_process.run(argv, cwd=sys.argv[2], environment={"PATH": sys.argv[3]}, guarded=True, talk=Talk())
"""
    argv = [sys.executable, "-c", script, f"({DAEMON} &); exec {program}", str(tmp_path), ENVIRONMENT["PATH"]]
    for _ in range(4):  # the order of the two is a matter of chance
        with subprocess.Popen(argv, cwd=ROOT, env={**ENVIRONMENT, "PYTHONPATH": str(ROOT)}) as executor:
            with open(tmp_path / "door", encoding="ascii") as door:
                daemon = int(door.readline())
            below = process_tree.descendants([executor.pid])[1:]
            os.kill(executor.pid, signal.SIGKILL)
            executor.wait()
        process_tree.wait_gone({*below, daemon}, 30)
        assert [pid for pid in {*below, daemon} if process_tree.is_alive(pid)] == []


@pytest.mark.parametrize("interpreter", ["", "/nowhere/python", "/bin/true", "/bin/false"])
def test_a_guard_that_is_none_is_an_error_and_never_the_end_of_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interpreter: str
) -> None:
    monkeypatch.setattr(started_program, "_free", [])
    monkeypatch.setattr(sys, "executable", interpreter)
    started_program.expect_guarded()
    for _ in range(2):
        with pytest.raises(OSError, match=r"python|/bin/sh"):
            run("touch ran", tmp_path)
    assert not (tmp_path / "ran").exists()


@LINUX_ONLY
def test_a_program_cannot_give_the_next_one_other_limits_or_a_lower_priority(tmp_path: Path) -> None:
    shown = "ulimit -n; ulimit -f; nice"
    before = run(shown, tmp_path).output.text()
    lower = "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (5, 5))"
    for change in (lower, "import os; os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)"):
        argv = [sys.executable, "-c", change]
        child_process.run(argv, cwd=str(tmp_path), environment=ENVIRONMENT, guarded=True)
        assert run(shown, tmp_path).output.text() == before


@LINUX_ONLY
def test_a_guard_that_was_stopped_or_asked_to_end_between_programs_starts_the_next_one_or_is_replaced(
    tmp_path: Path,
) -> None:
    guard = parent(tmp_path)
    os.kill(guard, signal.SIGTERM)
    assert parent(tmp_path) == guard
    ends: list[int | str | None] = []
    for _ in range(6):
        os.kill(parent(tmp_path), signal.SIGKILL)
        try:
            ends.append(run("exit 3", tmp_path).exit_code)
        except OSError as problem:
            ends.append(problem.filename)
    assert set(ends) <= {3, "/bin/sh"}


@LINUX_ONLY
def test_a_guard_that_does_not_answer_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = parent(tmp_path)
    monkeypatch.setattr(started_program, "_PATIENCE", 0.05)
    os.kill(guard, signal.SIGSTOP)
    with pytest.raises(OSError, match="timed out"):
        run("touch ran", tmp_path)
    assert not process_tree.is_alive(guard)
    monkeypatch.undo()
    stopped = parent(tmp_path)
    monkeypatch.setattr(started_program, "_PATIENCE", 0.05)
    os.kill(stopped, signal.SIGSTOP)
    started_program.end_free_guardians()
    assert not process_tree.is_alive(stopped)


def test_programs_run_and_end_where_the_system_shows_no_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_tree, "adopt_orphans", lambda: False)
    monkeypatch.setattr(process_tree, "children", lambda pid=None: [])
    monkeypatch.setattr(process_tree, "every_process", list)
    for number in range(5):
        assert run(f"exit {number}", tmp_path).exit_code == number
    argv = ["/bin/sh", "-c", "echo $$ > pid; exec sleep 1000"]
    stopped = child_process.run(argv, cwd=str(tmp_path), environment=ENVIRONMENT, guarded=True, timeout=0.3)
    assert stopped.timed_out
    assert not process_tree.is_alive(int((tmp_path / "pid").read_text(encoding="ascii")))


def test_the_folder_and_the_words_of_a_guarded_program_may_be_relative_or_any_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = os.fsdecode(b"d\xe9")
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    argv = ["/bin/sh", "-c", 'pwd; echo "$1" "$2"', "sh", name, "\u00fc"]
    environment = {**ENVIRONMENT, "NAME": name}
    ends = [
        child_process.run(argv, cwd=name, environment=environment, guarded=guarded, sink=None).output.head
        for guarded in (True, False)
    ]
    assert ends[0] == ends[1] == os.fsencode(f"{tmp_path}/{name}\n{name} \u00fc\n")


@LINUX_ONLY
@every("how", ["ignored", "blocked"])
def test_exit_codes_are_right_if_idumb_inherited_a_signal_that_it_does_not_get(tmp_path: Path, how: str) -> None:
    script = f"""
import signal, sys
from idumb.system.processes import child_process
from idumb.system.processes import signals
if "{how}" == "ignored":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
else:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
signals.keep_exit_codes()
for guarded in (True, False):
    argv, environment = ["/bin/sh", "-c", sys.argv[1]], {{"PATH": sys.argv[2]}}
    print(child_process.run(argv, cwd="/", environment=environment, guarded=guarded, timeout=20).exit_code)
"""
    for program in ("exit 3", "(sleep 1000 >/dev/null 2>&1 &); exit 3"):
        argv = [sys.executable, "-c", script, program, ENVIRONMENT["PATH"]]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("3\n3\n", "")
