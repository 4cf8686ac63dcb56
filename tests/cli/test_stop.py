"""`idumb stop` from another terminal, second signals, readers that go away (R-RUN-9, R-LOG-5)."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash import fencing
from tests.support import project as projects
from tests.support import seed, warm
from tests.support.answer import Answer
from tests.support.ended import has_ended
from tests.support.gitrepo import GitSandbox
from tests.support.project import IDUMB, Project, making, shell, task

# The second try finds the note that the first one left outside the work tree.
SLEEPER = "echo half > b.txt; test -e {note} || {{ touch {note}; setsid sleep 600 & echo $! > {door}; sleep 600; }}"


@pytest.fixture
def project(sandbox: GitSandbox, tmp_path: Path) -> Project:
    project = projects.create(sandbox)
    os.mkfifo(tmp_path / "door")
    step = shell(SLEEPER.format(note=tmp_path / "note", door=tmp_path / "door") + "; echo whole >> b.txt")
    project.plan([task("T1-01", files="create `b.txt`", check="grep -q whole b.txt", steps=[step])])
    return project


@pytest.fixture
def busy(project: Project, tmp_path: Path) -> Iterator[tuple[warm.Started, int]]:
    """(a run whose builder sleeps, a process that the builder left)."""
    with project.beside("execute-phase", "1", "--approve", project.approval()) as process:
        with open(tmp_path / "door", encoding="ascii") as door:
            sleeper = int(door.readline())
        yield process, sleeper


def stop(project: Project, *flags: str) -> Answer:
    return project.json("stop", *flags)


def owner_file(project: Project, name: str) -> Path:
    return project.repo.common_dir / "idumb/worktrees/main" / name


def last(project: Project, kind: str) -> dict[str, object]:
    return dict(project.events("--kind", kind)[-1]["payload"])


def test_stopping_without_a_run_says_so(project: Project) -> None:
    answer = stop(project)
    assert answer.code == 0
    assert (answer.data["stopped"], answer.data["owner"]) == (False, None)
    assert project.quick("stop").out.startswith("Nothing is running")


def test_stop_ends_a_run_at_a_safe_point_and_resume_continues(project: Project, tmp_path: Path) -> None:
    """R-RUN-9: the run is recorded as interrupted, with the person, before stop ends; no process is left."""
    with project.beside("execute-phase", "1", "--approve", project.approval()) as process:
        sleeper = int((tmp_path / "door").read_text())
        asks_elsewhere(project, process.pid)
        answer = stop(project)
        assert process.wait().code == 143
    assert answer.code == 0, answer.out
    assert (answer.data["stopped"], answer.data["ended"], answer.data["forced"]) == (True, "interrupted", False)
    assert answer.data["owner"]["pid"] == process.pid
    assert answer.data["next"] == ["idumb resume 1"]
    assert has_ended(sleeper)
    stopped = last(project, "run.interrupted")
    assert stopped["by"] == "stop"
    assert str(stopped["reason"]).startswith("stopped by ")
    assert str(last(project, "attempt.interrupted")["reason"]).startswith("stopped by ")
    assert "stopped by" in project.quick("status").out
    assert not owner_file(project, "owner.json").exists()
    assert not owner_file(project, "stop.json").exists()
    assert stop(project).data["owner"] is None
    shows_the_checkpoint(project, answer.data["checkpoint"])
    continues(project)


def asks_elsewhere(project: Project, process: int) -> None:
    """`decisions` says that a question may wait at another terminal."""
    words = f"idumb execute-phase runs as process {process}, and may ask at its own terminal"
    assert project.json("decisions").object["warnings"] == [words]


def continues(project: Project) -> None:
    assert project.resume("--no-verify").code == 0
    assert project.trailers("Idumb-Task") == ["T1-01"]
    assert project.repo.status() == []


def shows_the_checkpoint(project: Project, kept: dict[str, object]) -> None:
    """R-GIT-2: the event, the document and the ref of the interrupted attempt; `show` prints its files."""
    event = project.events("--kind", "checkpoint.recorded")[-1]
    recorded = event["payload"]
    assert (event["task"], event["attempt"], recorded["status"]) == ("T1-01", 1, "interrupted")
    assert (recorded["git_hash"], recorded["files"]) == (project.repo.head(), ["b.txt"])
    assert str(recorded["error"]).startswith("stopped by ")
    assert recorded["seconds"] > 0
    assert kept == {"task": "T1-01", "attempt": 1, **{name: recorded[name] for name in ("ref", "snapshot", "files")}}
    assert project.repo.kept()[recorded["ref"]] == recorded["snapshot"]
    document = project.read(".idumb/brain/execution/1/checkpoint-T1-01.md")
    assert "status: partial\n" in document
    assert recorded["snapshot"] in document
    shown = project.json("show", "T1-01").data["attempts"][-1]
    assert shown["checkpoint"] == recorded["snapshot"]
    printed = subprocess.run(shlex.split(shown["kept"][0]), cwd=project.folder, capture_output=True, check=True)
    assert printed.stdout == b"half\n"
    words = project.quick("show", "T1-01").out
    assert f"Its files are kept in {recorded['snapshot']}:\n    {shown['kept'][0]}\n" in words
    assert project.json("doctor").code == 0


def test_stop_ends_a_hanging_hook_and_the_work_is_committed_once(project: Project, tmp_path: Path) -> None:
    """F22, R-GIT-2: git and its hook are stopped; resume commits the proven work."""
    project.plan([making("T1-01", "a.txt")])
    door = tmp_path / "door"
    script = f"#!/bin/sh\necho $$ > {door}\nsleep 600\n"
    hook = project.repo.write(".git/hooks/pre-commit", script, mode=0o755)
    with project.beside("execute-phase", "1", "--approve", project.approval()) as process:
        hanging = int(door.read_text())
        assert stop(project).data["ended"] == "interrupted"
        assert process.wait().code == 143
    assert has_ended(hanging)
    assert not (project.repo.git_dir / "index.lock").exists()
    hook.unlink()
    continues(project)
    assert [e["attempt"] for e in project.events("--kind", "attempt.started")] == [1]


def test_a_suspended_owner_is_named_and_only_ended_by_force(project: Project, busy: tuple[warm.Started, int]) -> None:
    """F38: a process that is stopped cannot answer; by force it and all that it started are killed."""
    process, sleeper = busy
    os.kill(process.pid, signal.SIGSTOP)
    assert fencing.stopped(process.pid)
    refused = project.json("resume", "1")
    assert (refused.code, refused.error["code"]) == (4, "lock.held")
    assert "stopped" in refused.error["message"]
    assert "idumb stop --force" in refused.error["hint"]
    answer = stop(project)
    assert (answer.code, answer.error["code"]) == (4, "stop.no-answer")
    assert "idumb stop --force" in answer.error["hint"]
    forced = stop(project, "--force")
    assert forced.code == 0, forced.out
    assert (forced.data["stopped"], forced.data["ended"], forced.data["forced"]) == (True, "killed", True)
    assert process.wait().code == -signal.SIGKILL
    assert has_ended(sleeper)
    assert last(project, "run.interrupted")["forced"] is True
    continues(project)


@pytest.mark.nightly
def test_a_closed_terminal_stops_the_run_and_resume_continues(project: Project, tmp_path: Path) -> None:
    """F36: SIGHUP, without any terminal to print to."""
    consent = project.approval()
    master, terminal = pty.openpty()
    with project.beside("execute-phase", "1", "--approve", consent, terminal=os.ttyname(terminal)) as process:
        sleeper = int((tmp_path / "door").read_text())
        os.close(terminal)
        os.close(master)
        assert process.wait().code == 128 + signal.SIGHUP
    assert has_ended(sleeper)
    assert last(project, "run.interrupted") == {"reason": "stopped by SIGHUP", "by": "signal"}
    continues(project)


@pytest.mark.nightly
@pytest.mark.parametrize("stream", seed.one_on_a_push(["stdout", "stderr"], "a reader"))
def test_a_reader_that_goes_away_ends_the_command_quietly(project: Project, stream: str) -> None:
    """F36, R-RUN-7: a run whose reader goes away completes and exits as usual, for either stream."""
    project.plan([making("T1-01", "a.txt")])
    flags = ("--no-verify", "--approve", project.approval(), *(("--events",) if stream == "stdout" else ()))
    assert gone_after_a_line(project, stream, "execute-phase", "1", *flags) == (0, "")
    assert project.statuses() == {"T1-01": "completed"}


def gone_after_a_line(project: Project, stream: str, *arguments: str) -> tuple[int, str]:
    """Return exit code and the other stream of a command whose reader of `stream` closes after one line."""
    # Python that does not buffer has nothing left to flush when it exits.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        [*IDUMB, *arguments],
        cwd=project.start,
        env=buffered,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        closed, other = (process.stdout, process.stderr) if stream == "stdout" else (process.stderr, process.stdout)
        closed.readline()
        closed.close()
        output = other.read()
    return process.returncode, output if stream == "stdout" else ""


@pytest.mark.parametrize(("closed", "option"), seed.one_on_a_push([(1, ""), (2, "--json")], "a closed stream"))
def test_a_second_signal_is_reported_although_the_other_stream_is_closed(closed: int, option: str) -> None:
    code = f"from idumb.cli import opened_services as o; o._report_forced_stop(2, as_json={bool(option)})"
    process = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}>&-', "sh", IDUMB[0], "-c", code],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Stopped at once" in process.stdout + process.stderr
