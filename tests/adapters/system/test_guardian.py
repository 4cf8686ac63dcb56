"""Processes of an executor end with it, even if the executor is killed (R-RUN-8, F30, F59)."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from idumb.system.processes import child_process, process_tree

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


def run(script: str, cwd: Path, *, guarded: bool = True) -> child_process.Finished:
    argv = ["/bin/sh", "-c", script]
    return child_process.run(argv, cwd=str(cwd), environment=ENVIRONMENT, guarded=guarded, grace=0.2)


def test_a_guarded_program_is_found_on_its_own_path_and_has_its_own_session(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "own").write_text("#!/bin/sh\nps -o sid= -p $$; echo $$\n")
    (folder / "own").chmod(0o755)
    environment = {"PATH": f"{tmp_path}/none:{folder}:{ENVIRONMENT['PATH']}"}
    finished = child_process.run(["own"], cwd=str(tmp_path), environment=environment, guarded=True)
    session, program = finished.output.text().split()
    assert session == program


@pytest.mark.parametrize("script", ["exit 0", "exit 3", "exit 255", "kill -9 $$", "kill -15 $$", "kill -HUP $$"])
def test_a_guarded_process_ends_like_an_unguarded_one(tmp_path: Path, script: str) -> None:
    ends = [run(f"echo out; echo err >&2; {script}", tmp_path, guarded=guarded) for guarded in (True, False)]
    first, second = ((f.exit_code, f.signal, f.timed_out, f.output, f.cause) for f in ends)
    assert first == second


def test_a_guard_that_cannot_start_is_reported_as_a_system_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-LOG-5: no defect, and the program is not run without its guard."""

    def none_left(*_: object, **__: object) -> int:
        raise BlockingIOError(errno.EAGAIN, "no")

    # The first fork is made in C; the ones that make the program of the guard are these.
    monkeypatch.setattr(os, "posix_spawn", none_left)
    monkeypatch.setattr(os, "fork", none_left)
    with pytest.raises(BlockingIOError) as caught:
        run("touch ran", tmp_path)
    assert caught.value.filename == "/bin/sh"
    assert not (tmp_path / "ran").exists()


def test_a_program_that_cannot_be_executed_is_an_error_with_a_guard_too(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        child_process.run(["/nowhere/program"], cwd=str(tmp_path), environment={}, guarded=True)
    with pytest.raises(FileNotFoundError):
        child_process.run(["/bin/true"], cwd=str(tmp_path / "gone"), environment={}, guarded=True)


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
@pytest.mark.parametrize("depth", ["", "timeout 1000 "])
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
def test_an_orphan_that_ends_during_the_work_leaves_no_zombie(tmp_path: Path) -> None:
    """The guard adopts orphans, so it must collect them."""
    script = (
        "(sh -c 'echo $$ > dead; exit 0' &); while [ ! -s dead ]; do :; done; while kill -0 $(cat dead); do :; done"
    )
    assert run(script, tmp_path).exit_code == 0
