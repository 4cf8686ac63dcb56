"""What `error.details` tells: every failure (R-RUN-7) and every refusal (R-ASK-1). `Answer.error` checks each.

Which codes there are, and that each has its row, is owned by `tests/meta/test_refusals.py`.
 (R-RUN-8).
"""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from idumb.cli import main
from tests.meta import source
from tests.support.choices import refused
from tests.support.project import Project, making, shell, task

CRITERION = "success_criteria:\n  - {text: It is right, check: test -e never.txt}\n"


def kinds(details: dict[str, Any]) -> list[str]:
    return [event["kind"] for event in details["audit_trail"]]


def test_a_failed_verification_names_criterion_check_and_plan(project: Project) -> None:
    """R-RUN-7."""
    plan = project.plan([making("T1-01", "a.txt")], head=CRITERION)
    for ended in (project.execute(), project.json("verify-work", "1")):
        assert (ended.code, ended.error["code"]) == (1, "verification.failed")
        details = ended.error["details"]
        assert (details["status"], details["tool"]) == ("failed", "test -e never.txt")
        assert details["step_id"] == ended.data.get("verification", ended.data)["evidence"][0]["subject"]
        assert details["plan_hash"] == hashlib.sha256(plan.read_bytes()).hexdigest()
        assert "verification.recorded" in kinds(details)
    assert refused(project, ended) == {}


def test_a_stopped_run_names_its_step_and_who_stopped_it(project: Project, tmp_path: Path) -> None:
    """R-RUN-7, R-RUN-9; R-ASK-1, R-LOG-5: until then, each second command names the owner of the working tree."""
    os.mkfifo(tmp_path / "door")
    step = shell(f"echo half > b.txt; echo x > {tmp_path}/door; sleep 600")
    project.plan([task("T1-01", files="create `b.txt`", steps=[step])])
    with project.beside("execute-phase", "1", "--approve", project.approval(), "--json") as running:
        (tmp_path / "door").read_text(encoding="ascii")
        for arguments in (("execute-phase", "1"), ("resume", "1"), ("rollback", "1", "--to", "start", "--yes")):
            held = project.json(*arguments)
            assert (held.code, held.error["code"]) == (4, "lock.held")
            details = held.error["details"]
            assert (details["pid"], f"pid: {running.pid}" in details["evidence"]) == (running.pid, True)
            assert {"host", "since", "command"} <= set(details)
            assert str(running.pid) in held.error["message"]
            assert [row["id"] for row in details["choices"]] == ["wait", "stop", "force"]
        assert project.quick("status").code == 0
        assert project.json("stop").code == 0
        ended = running.wait()
    assert (ended.code, ended.error["code"]) == (128 + signal.SIGTERM, "run.interrupted")
    details = ended.error["details"]
    assert (details["status"], details["step_id"], details["tool"]) == ("interrupted", "T1-01", "steps")
    assert details["error"].startswith("stopped by ")
    assert len(details["plan_hash"]) == 64
    assert kinds(details)[-2:] == ["attempt.interrupted", "checkpoint.recorded"]
    assert [row["command"] for row in details["choices"]] == ["idumb resume 1"]


def test_a_commit_that_git_refuses_is_reported_with_its_step(project: Project) -> None:
    """R-RUN-7."""
    project.repo.write(".git/hooks/pre-commit", "#!/bin/sh\necho no; exit 1\n", mode=0o755)
    project.plan([making("T1-01", "a.txt")], commit=False)
    ended = project.execute()
    assert (ended.code, ended.error["code"]) == (1, "git.commit-refused")
    assert ended.error["details"]["step_id"] == "T1-01"
    assert len(ended.error["details"]["plan_hash"]) == 64


def test_a_refusal_states_what_is_blocked_and_each_choice_works(project: Project) -> None:
    """R-ASK-1: `Answer.error` looks for the fields; here each command of a choice is run as it is printed."""
    project.plan([making("T1-01", "a.txt")])
    approval, in_the_way = project.approval(), "task.dirty-path"
    # A folder where the task makes a file stops it before its builder, too.
    for path, code in (("a.txt", in_the_way), (".git/MERGE_HEAD", "git.merge-in-progress"), ("a.txt/mine", in_the_way)):
        place = project.repo.write(path, f"{project.repo.head()}\n")
        answer = project.json("execute-phase", "1", "--approve", approval)
        assert answer.error["code"] == code
        assert refused(project, answer) == {}
        place.unlink()


def problem(number: int, path: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), path) if path else OSError(number, os.strerror(number))


def test_each_system_error_has_its_code_its_path_and_a_next_step() -> None:
    for number, code in (
        (errno.ENOSPC, "system.full"),
        (errno.EDQUOT, "system.full"),
        (errno.EROFS, "system.read-only"),
        (errno.EACCES, "system.denied"),
        (errno.EIO, "system.disk"),
        (errno.EMFILE, "system.files"),
        (errno.EAGAIN, "system.memory"),
        (errno.ELOOP, "system.refused"),
    ):
        explained = main.of_system(problem(number, "/somewhere/a.txt"))
        assert (explained.code, explained.exit_code) == (code, 4)
        assert "/somewhere/a.txt" in explained.message
        assert os.strerror(number) in explained.message
        assert explained.hint


def test_in_a_folder_that_was_removed_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a rollback of the task that made it."""
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert main.run(["status"]) == 4
    assert capsys.readouterr().err.startswith(
        "idumb: The folder that you are in no longer exists. [system.folder-gone]"
    )


def test_libgit2_messages_are_recognized_without_an_error_number() -> None:
    explained = main.of_system(OSError("failed to make directory '/x/.git/objects/e8': No space left on device"))
    assert explained.code == "system.full"
    assert explained.details == {"path": "/x/.git/objects/e8"}


def test_an_unusable_state_directory_is_named_with_the_variable_that_moves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file/state"))
    for number in (errno.ENOTDIR, errno.EACCES, errno.EROFS):
        for below in ("", "idumb", "idumb/consent/a.json"):
            explained = main.of_system(problem(number, str(tmp_path / "file/state" / below)))
            assert f"Cannot use the state directory {tmp_path / 'file/state/idumb'}" in explained.message
            assert explained.hint is not None
            assert "XDG_STATE_HOME" in explained.hint


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a file that is always full")
def test_an_answer_that_cannot_be_written_is_one_error(project: Project) -> None:
    environment = {**os.environ, "PYTHONPATH": str(source.ROOT)}
    for words in ("status", "audit --help"):
        command = f"cd {project.folder} && {sys.executable} -m idumb {words} >/dev/full"
        ended = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
        assert (ended.returncode, len(ended.stderr.splitlines())) == (4, 2), words
        assert ended.stderr.startswith("idumb: Cannot write the answer: No space left on device [system.refused]\n")
