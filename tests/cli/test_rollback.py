"""Rollback and undo as a user sees them: records, messages, and the state after a power failure."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from idumb.app.ports import Conflict
from idumb.git import write_back
from idumb.git.path_state import Step
from idumb.git.trees import GitTrees
from idumb.system.clock import SystemClock
from tests.support import ended_runs, seed
from tests.support.gitrepo import GitSandbox
from tests.support.plans import PLAN, run
from tests.support.prepared import Prepared, prepared_project
from tests.support.project import Project, making, shell, task, write

ROLLBACK = ("rollback", "1", "--to", "start")


def _project(sandbox: GitSandbox, *tasks: str) -> Project:
    sandbox.write_all({"README.md": "# A project\n"})
    project = Project(sandbox, sandbox.root)
    sandbox.commit("first")
    assert project.quick("init").code == 0
    project.configure("run:\n  max_attempts: 1\n")
    project.plan(tasks or (making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")))
    return project


def _done(sandbox: GitSandbox) -> Project:
    project = _project(sandbox)
    assert run(project).code == 0
    return project


done = prepared_project(_done)


def test_rollback_and_undo_make_one_commit_each_with_an_up_to_date_report(done: Project) -> None:
    """R-GIT-3: files, progress and reports in one commit; the report of a rolled-back phase is not "passed".

    The log records everything that idumb commits.
    """
    report, checkpoint = ".planning/phases/1/1-VERIFICATION.md", ".idumb/brain/execution/1/checkpoint-T1-02.md"
    verified, before = done.read(report), done.repo.head()
    words: tuple[str, ...] = (*ROLLBACK, "--yes")
    for status in ("unverified", "passed", "unverified", "passed"):
        answer = done.quick(*words, "--json")
        assert answer.code == 0, answer
        assert done.repo.git("rev-parse", "HEAD~1") == before
        assert answer.data["commit"] == done.repo.head()
        before = done.repo.head()
        assert f"\nstatus: {status}\n" in done.repo.git("show", f"HEAD:{report}")
        words = done.undoing()
        assert (done.exists(checkpoint), done.repo.status()) == (status == "passed", [])
        shown = done.json("status").data["phases"][0]
        assert shown["verification"] == (None if status == "unverified" else "passed")
    recorded = [event["payload"] for event in done.events("--kind", "reports.committed")]
    assert len(recorded) == len(done.trailers("Idumb-Reports"))
    assert (recorded[-1]["commit"], checkpoint in recorded[-4]["paths"]) == (before, True)
    assert re.sub("created: .*", "", done.read(report)) == re.sub("created: .*", "", verified)
    assert "unverified (tasks were rolled back after the verification)" in done.repo.git("show", f"HEAD~1:{report}")


def test_a_clone_does_not_repeat_a_phase_that_the_committed_report_calls_verified(
    sandbox: GitSandbox, tmp_path: Path
) -> None:
    """R-RUN-1: this contract was verified elsewhere; nothing changes, and every choice works."""
    change = task("T1-01", files="modify `README.md`", steps=[write("README.md", "changed\n")])
    project = _project(sandbox, change)
    assert run(project).code == 0
    clone = project.clone(tmp_path / "clone")
    before = clone.repo.ledger()
    for flags in ((), ("--dry-run",)):
        answer = run(clone, *flags)
        assert (answer.code, answer.error["code"]) == (4, "phase.verified"), answer
        assert ".planning/phases/1/1-VERIFICATION.md in HEAD says so" in answer.error["message"]
        assert [row["id"] for row in answer.error["details"]["choices"]] == ["leave", "look", "force"]
        assert clone.repo.ledger() == before
    clone.configure("run:\n  max_attempts: 2\n")
    assert run(clone).error["code"] != "phase.verified"  # another contract


def test_reports_that_git_refuses_after_a_rollback_are_a_warning(done: Project) -> None:
    """R-GIT-3: without a report commit, because of commit policy `none` or a hook that refuses reports."""
    script = "#!/bin/sh\ngit diff --cached --quiet -- .idumb .planning && exit 0\necho no reports >&2\nexit 1\n"
    done.repo.write(".git/hooks/pre-commit", script, mode=0o755)
    answer = done.quick("rollback", "1", "--to", "T1-01", "--yes", "--json")
    assert answer.code == 0, answer
    assert any("no reports" in warning for warning in answer.object["warnings"])


def test_a_file_saved_during_a_rollback_is_kept_and_the_rollback_is_recorded(
    done: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half-restored files with a log that says nothing was restored would be an undefined state."""
    delete = write_back._delete

    def late(writing: write_back.Writing, step: Step) -> None:
        delete(writing, step)
        done.repo.write("a.txt", "mine")

    monkeypatch.setattr(write_back, "_delete", late)
    answer = done.quick(*ROLLBACK, "--yes", "--json")
    assert answer.code == 0, answer
    assert answer.object["warnings"] == ["not restored, because they changed: a.txt"]
    assert done.read("a.txt") == "mine"
    assert not done.exists("b.txt")
    recorded = next(e for e in reversed(done.events()) if e["kind"] == "rollback.completed")
    assert (recorded["payload"]["paths"], recorded["payload"]["left"]) == (["b.txt"], ["a.txt"])


def before_restoring(patching: pytest.MonkeyPatch, act: Callable[[], object], call: int = 1) -> None:
    """Let the user act just before files are restored, at this call."""
    restore, calls = GitTrees.restore, itertools.count(1)

    def late(self: GitTrees, *words: Any) -> tuple[Conflict, ...]:
        if next(calls) == call:
            act()
        return restore(self, *words)

    patching.setattr(GitTrees, "restore", late)


def test_a_save_just_before_a_rollback_is_kept_and_named(done: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the way of a file before that is a conflict."""
    before_restoring(monkeypatch, lambda: done.repo.write("a.txt", "mine"))
    answer = done.quick(*ROLLBACK, "--yes", "--json")
    assert answer.object["warnings"] == ["not restored, because they changed: a.txt"]
    assert answer.data["paths"] == ["b.txt"]
    assert (done.read("a.txt"), done.exists("b.txt")) == ("mine", False)
    done.repo.write("b.txt/mine", "mine")
    assert done.json(*done.undoing()).error["code"] == "rollback.conflict"


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "b.txt")
    return "is no longer a file or a link"


def _repository(folder: Path) -> str:
    shutil.copytree(folder / ".git", folder / "b.txt" / ".git")
    return "is a folder now, which contains b.txt/.git/"


def _ignored(folder: Path) -> str:
    for name, text in {".git/info/exclude": "mine\n", "b.txt/mine": "mine"}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return "is a folder now, which contains b.txt/mine"


@pytest.mark.parametrize("put", [_pipe, _repository, _ignored])
def test_nothing_is_restored_if_something_outside_every_snapshot_is_in_the_way(
    done: Project, put: Callable[[Path], str]
) -> None:
    """The printed command moves it aside; then the undo restores all."""
    assert done.quick(*ROLLBACK, "--yes").code == 0
    why, words = put(done.folder), done.undoing()
    refused = done.json(*words)
    assert why in refused.error["message"]
    assert (refused.error["code"], done.exists("a.txt")) == ("rollback.conflict", False)
    [row] = refused.error["details"]["files"]
    assert row["keep"] == "mv b.txt b.txt.mine"
    (done.folder / "b.txt").rename(done.folder / "b.txt.mine")
    assert done.json(*words).code == 0
    assert (done.exists("a.txt"), (done.folder / "b.txt").is_file()) == (True, True)


@pytest.mark.parametrize("command", seed.one_on_a_push(["rollback", "undo"], "what a lock stops"))
def test_after_half_a_minute_the_rollback_names_the_lock_and_the_next_command_finishes_it(
    done: Project, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """R-GIT-3, R-GIT-6: what the user saved meanwhile stays, and is named. The next `undo` needs no name."""
    words = (*ROLLBACK, "--yes") if command == "rollback" else done.undoing()
    with monkeypatch.context() as patching:
        lock = done.repo.git_dir / "index.lock"
        before_restoring(patching, lock.touch)
        seconds = [0.0]
        patching.setattr(SystemClock, "pause", lambda *_: seconds.append(seconds[-1] + 11))
        patching.setattr(SystemClock, "monotonic", lambda _: seconds[-1])
        refused = done.quick(*words, "--json")
    assert refused.error["code"] == "git.commit-refused"
    assert "index.lock" in refused.error["message"]
    assert 30 <= seconds[-1] <= 70  # once with the reports and once without
    lock.unlink()
    assert done.json("verify-work", "1").error["code"] == "rollback.unfinished"
    done.repo.write("a.txt", "mine\n")
    finished = done.quick(*(words if command == "rollback" else ("undo",)))
    assert (finished.code, "Finishing the interrupted" in finished.err) == (0, True)
    assert "not restored, because they changed: a.txt" in finished.err
    assert (done.read("a.txt"), done.repo.status()) == ("mine\n", [" M a.txt"])
    assert len(done.trailers("Idumb-Rollback")) == 1


@pytest.mark.parametrize("broken", seed.one_on_a_push([False, True], "a plan that is gone or half edited"))
def test_rollback_and_undo_need_no_present_plan(prepared: Prepared, *, broken: bool) -> None:
    """R-GIT-3."""
    project = prepared.get(ended_runs.done)
    if broken:
        project.repo.write(PLAN, "---\ntype: plan\n")
    else:
        (project.folder / PLAN).unlink()
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not project.exists("a.txt")
    assert project.quick(*project.undoing()).code == 0
    assert project.exists("a.txt")


def test_the_reports_of_a_rollback_are_in_the_folder_that_the_phase_has_now(prepared: Prepared) -> None:
    """In the folder that it had, they would make a second one for the phase, which is then ambiguous."""
    project = prepared.get(ended_runs.done)
    folder = (project.folder / PLAN).parent
    folder.rename(folder.with_name("01-auth"))
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not folder.exists()
    assert project.json("show", "T1-01").data["status"] == "ready"


def test_show_uses_the_plan_that_ran_if_the_present_one_is_gone(prepared: Prepared) -> None:
    """R-GIT-3, R-LOG-6."""
    project = prepared.get(ended_runs.done)
    (project.folder / PLAN).unlink()
    shown = project.json("show", "T1-01").data
    assert (shown["id"], shown["status"]) == ("T1-01", "completed")
    assert "+" in project.json("show", "T1-01", "--diff").data["diff"]
    assert "T1-01" in project.json("show", "T1-01", "--plan").data["text"]
    assert project.json("show", "T1-01", "--debug").data["task"]["title"] == "Task T1-01"
    status = project.json("status").data
    assert (status["phases"][0]["state"], status["next"]["command"]) == ("verified", None)


def test_completed_work_that_the_plan_changed_is_reverted_before_it_is_repeated(prepared: Prepared) -> None:
    """R-RUN-12: the refusal names the next step; `ended_runs.replaced` goes on to the end."""
    project = prepared.get(ended_runs.done)
    project.plan([making("T1-01", "a.txt", "other\n")])
    assert project.json("status").data["next"]["command"] == "idumb rollback 1 --to start"
    refused = project.execute()
    assert (refused.code, refused.error["code"]) == (4, "plan.done-changed")
    assert "idumb rollback 1 --to start" in refused.error["hint"]
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not project.exists("a.txt")


def test_show_prints_the_files_of_a_killed_attempt(project: Project, tmp_path: Path) -> None:
    """R-LOG-6, R-GIT-2: they are in no tree of the user's, and the next attempt starts without them."""
    note = tmp_path / "again"
    kill = shell(f"[ -e {note} ] || {{ touch {note}; kill -9 $PPID; }}")
    steps = [shell("echo half >> README.md"), kill, shell("echo more >> README.md")]
    project.plan([task("T1-01", files="modify `README.md`", steps=steps)])
    before = project.read("README.md")
    assert project.idumb("execute-phase", "1", "--approve", project.approval()).code == -9
    assert project.read("README.md") == before
    assert project.json("debug", "replay", "1").code == 0, "progress.json may lag behind until the run goes on"
    assert project.resume("--no-verify").code == 0
    assert project.read("README.md") == f"{before}half\nmore\n"
    killed = project.quick("show", "T1-01", "--json").data["attempts"][0]
    assert project.repo.git(*shlex.split(killed["kept"][0])[1:]) == f"{before}half"
