"""Rollback and undo as a user sees them: records, messages, and the state after a power failure."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from idumb.app.ports.repository import Conflict
from idumb.git.restore import write_back
from idumb.git.restore.path_state import Step
from idumb.git.trees import GitTrees
from idumb.system.clock import SystemClock
from tests.support import seed
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
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


def _failed(sandbox: GitSandbox) -> Project:
    """T1-02 was built in the editor, changed one file, made another, and failed."""
    fields = "- **Builder:** editor\n"
    failing = task("T1-02", files="modify `a.txt`, create `b.txt`", check="false", after="T1-01", fields=fields)
    project = _project(sandbox, making("T1-01", "a.txt"), failing)
    assert run(project).code == 5
    assert project.quick("start", "T1-02").code == 0
    sandbox.write_all({"a.txt": "two\n", "b.txt": "two\n"})
    assert project.quick("submit", "T1-02").code == 1
    return project


@pytest.fixture
def done(prepared: Prepared) -> Project:
    return prepared.get(_done)


@pytest.fixture
def failed(prepared: Prepared) -> Project:
    return prepared.get(_failed)


def _kinds(project: Project) -> list[str]:
    return [event["kind"] for event in project.events()]


def test_rollback_and_undo_make_one_commit_each_with_an_up_to_date_report(done: Project) -> None:
    """R-GIT-3: files, progress and reports in one commit; the report of a rolled-back phase is not "passed".

    The log records everything that idumb commits.
    """
    report = ".planning/phases/1/1-VERIFICATION.md"
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
        assert done.repo.status() == []
        shown = done.json("status").data["phases"][0]
        assert shown["verification"] == (None if status == "unverified" else "passed")
    recorded = [event["payload"] for event in done.events("--kind", "reports.committed")]
    assert len(recorded) == len(done.trailers("Idumb-Reports"))
    assert recorded[-1]["commit"] == before
    assert ".idumb/brain/execution/1/checkpoint-T1-02.md" in recorded[-4]["paths"]
    assert re.sub("created: .*", "", done.read(report)) == re.sub("created: .*", "", verified)
    assert "unverified (tasks were rolled back after the verification)" in done.repo.git("show", f"HEAD~1:{report}")


def _cloned(project: Project, to: Path) -> Project:
    project.repo.git("clone", "--quiet", str(project.folder), str(to))
    sandbox = GitSandbox(to)
    sandbox.git("config", "user.name", "Pat")
    sandbox.git("config", "user.email", "pat@example.invalid")
    return Project(sandbox, to)


def test_a_clone_does_not_repeat_a_phase_that_the_committed_report_calls_verified(
    sandbox: GitSandbox, tmp_path: Path
) -> None:
    """R-RUN-1: this contract was verified elsewhere; nothing changes, and every choice works."""
    change = task("T1-01", files="modify `README.md`", steps=[write("README.md", "changed\n")])
    project = _project(sandbox, change)
    assert run(project).code == 0
    clone = _cloned(project, tmp_path / "clone")
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


def _printed_commands(refused: Answer) -> list[str]:
    """Return the commands below the hint of a refusal, as a user pastes them."""
    below = refused.err.partition("  next: ")[2].splitlines()[1:]
    return [line.strip() for line in below if line.startswith("    ")]


@pytest.mark.nightly
def test_the_printed_commands_of_a_conflict_work_in_the_subfolder_in_which_idumb_was_started(
    sandbox: GitSandbox,
) -> None:
    """R-GIT-3: one command per line; only the files at the top and in the folder change."""
    steps = [write("README.md", "tasks\n"), write("-odd [ab].txt", "made\n"), shell("rm 'src/it is old.txt'")]
    files = "modify `README.md`, create `-odd [ab].txt`, delete `src/it is old.txt`"
    sandbox.write_all({"src/it is old.txt": "old\n", "src/deep/x.txt": "x\n"})
    project = _project(sandbox, task("T1-01", files=files, check="true", steps=steps))
    assert run(project, "--no-verify").code == 0
    mine = {"README.md": "mine\n", "-odd [ab].txt": "mine too\n", "src/it is old.txt": "mine again\n"}
    sandbox.write_all(mine)
    sandbox.git("--literal-pathspecs", "add", "--", "-odd [ab].txt")
    below = Project(sandbox, sandbox.root / "src" / "deep")
    command = (*ROLLBACK, "--yes")
    refused = below.quick(*command)
    assert "restore that of the tasks, delete src/it is old.txt (the tasks left no such file)," in refused.err
    printed = _printed_commands(refused)
    assert len(printed) == 6
    subprocess.run(["/bin/sh", "-e"], input="\n".join(printed), text=True, cwd=below.start, check=True)
    assert below.quick(*command).code == 0
    assert {path: project.read(f"{path}.mine") for path in mine} == mine
    assert (project.read("README.md"), project.read("src/it is old.txt")) == ("# A project\n", "old\n")
    assert not project.exists("-odd [ab].txt")
    assert [path.name for path in below.start.iterdir()] == ["x.txt"]


INDEX_ONLY = ("add a.txt; add --intent-to-add b.txt", "rm --cached --quiet a.txt; add b.txt")


@pytest.mark.nightly
@pytest.mark.parametrize("how", seed.one_on_a_push(INDEX_ONLY, "in the index only"))
def test_a_rollback_whose_files_differ_from_head_in_the_index_only_makes_no_commit(failed: Project, how: str) -> None:
    """R-GIT-3: git refuses an empty commit, and repeating the rollback, `resume` and `undo` would then fail as well."""
    for command in how.split("; "):
        failed.repo.git(*command.split())
    head, staged = failed.repo.head(), failed.repo.git("ls-files", "--stage")
    answer = failed.quick("rollback", "1", "--to", "T1-01", "--yes", "--json")
    assert (answer.code, answer.data["commit"]) == (0, None), answer
    assert failed.repo.head() == head
    assert (failed.read("a.txt"), failed.exists("b.txt")) == ("made\n", False)
    assert failed.repo.git("ls-files", "--stage") == staged
    assert failed.quick(*failed.undoing(), "--json").code == 0
    assert (failed.read("a.txt"), failed.read("b.txt")) == ("two\n", "two\n")


def test_accept_makes_no_commit_if_the_file_differs_from_head_in_the_index_only(failed: Project) -> None:
    """R-GIT-3: what was staged stays staged."""
    failed.repo.git("add", "a.txt")
    failed.repo.write("a.txt", "made\n")
    failed.repo.remove("b.txt")
    head = failed.repo.head()
    answer = failed.quick("accept", "T1-02", "--why", "as before")
    assert answer.code == 0, answer
    assert failed.repo.head() == head
    assert failed.repo.git("show", ":a.txt") == "two"


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
    assert [event for event in _kinds(done) if event == "rollback.abandoned"] == []


def test_a_file_saved_before_the_first_restore_stops_the_rollback(
    done: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = write_back._delete

    def late(writing: write_back.Writing, step: Step) -> None:
        done.repo.write("b.txt", "mine")
        delete(writing, step)

    monkeypatch.setattr(write_back, "_delete", late)
    answer = done.quick(*ROLLBACK, "--yes", "--json")
    assert answer.error["code"] == "rollback.conflict"
    assert "rollback.abandoned" in _kinds(done)
    assert (done.read("a.txt"), done.read("b.txt")) == ("made\n", "mine")


def _locked_after_restoring(patching: pytest.MonkeyPatch, project: Project) -> Path:
    """Let another git command take the lock of the index once the files are restored."""
    restore, lock = GitTrees.restore, project.repo.git_dir / "index.lock"

    def then_lock(self: GitTrees, target: str, expected: str, paths: Iterable[str]) -> tuple[Conflict, ...]:
        conflicts = restore(self, target, expected, paths)
        lock.touch()
        return conflicts

    patching.setattr(GitTrees, "restore", then_lock)
    return lock


def test_the_commit_of_a_rollback_waits_for_the_lock_of_the_index(
    done: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = _locked_after_restoring(monkeypatch, done)
    monkeypatch.setattr(SystemClock, "pause", lambda *_: lock.unlink())
    assert done.quick(*ROLLBACK, "--yes").code == 0
    assert done.repo.status() == []


def test_after_half_a_minute_the_rollback_names_the_lock_and_the_next_command_finishes_it(
    done: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patching:
        lock = _locked_after_restoring(patching, done)
        seconds = [0.0]
        patching.setattr(SystemClock, "pause", lambda *_: seconds.append(seconds[-1] + 11))
        patching.setattr(SystemClock, "monotonic", lambda _: seconds[-1])
        refused = done.quick(*ROLLBACK, "--yes", "--json")
    assert refused.error["code"] == "git.commit-refused"
    assert "index.lock" in refused.error["message"]
    assert 30 <= seconds[-1] <= 70  # once with the reports and once without
    lock.unlink()
    assert done.quick(*ROLLBACK, "--yes").code == 0
    assert done.repo.status() == []
    assert len(done.trailers("Idumb-Rollback")) == 1


def test_the_document_of_an_earlier_attempt_is_rebuilt(done: Project) -> None:
    """R-GIT-2: a run that was killed before it wrote the last document leaves the previous one."""
    place = done.folder / ".idumb/brain/execution/1/checkpoint-T1-02.md"
    right = place.read_text(encoding="utf-8")
    place.write_text(re.sub('timestamp: "[0-9]{4}', 'timestamp: "2001', right), encoding="utf-8")
    assert done.quick("verify-work", "1", "--json").code == 0
    assert place.read_text(encoding="utf-8") == right
