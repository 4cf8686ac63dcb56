"""`idumb execute-phase N --dry-run`: a run in a temporary copy that changes nothing of the user (R-RUN-11)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox, work_tree
from tests.support.project import Project, delete, edit, failing_task, making, shell, task


def everything(project: Project) -> dict[str, Any]:
    """Every byte, mode and link of the working tree, the git folder with its objects, and the state directory."""
    entries: dict[str, Any] = {f"tree/{path}": entry for path, entry in work_tree(project.folder).items()}
    entries |= {f"git/{path}": entry for path, entry in work_tree(project.repo.common_dir).items()}
    state = Path(os.environ["XDG_STATE_HOME"])
    return entries | {f"state/{path}": entry for path, entry in (work_tree(state) if state.exists() else {}).items()}


def rehearse(project: Project, *flags: str, approve: bool = True) -> Answer:
    consent = ("--approve", project.approval()) if approve else ()
    before = everything(project)
    answer = project.json("execute-phase", "1", "--dry-run", *consent, *flags)
    after = everything(project)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()
    return answer


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    files = {"README.md": "# A project\n", ".gitignore": "*.log\n", "old.txt": "old\n", "edited.txt": "one\ntwo\n"}
    project = projects.create(sandbox, files=files)
    project.plan(
        [
            making("T1-01", "a.txt"),
            task(
                "T1-02",
                files="modify `edited.txt`, delete `old.txt`",
                check="grep -q three edited.txt",
                after="T1-01",
                steps=[edit("edited.txt", "two", "three"), delete("old.txt"), shell("test -e a.txt")],
            ),
        ]
    )
    return project


def test_a_dry_run_changes_not_one_byte_and_shows_what_a_run_would_change(project: Project) -> None:
    """R-RUN-11: working tree, git folder with objects, index, refs, log and state directory are unchanged.

    The diff of the dry run is the diff of the run.
    """
    project.repo.write("mine.txt", "not committed\n")
    project.repo.write_all({"noise.log": "ignored\n", "README.md": "# Changed by hand\n"})
    project.repo.git("add", "README.md")
    answer = rehearse(project)
    report = answer.data["dry_run"]
    assert (answer.code, answer.data["outcome"], answer.data["run"]) == (0, "complete", None)
    assert [(f["path"], f["change"], f["added"], f["removed"]) for f in report["files"]] == [
        ("a.txt", "created", 1, 0),
        ("edited.txt", "modified", 1, 1),
        ("old.txt", "deleted", 0, 1),
    ]
    assert "+three" in report["diff"]
    assert "-old" in report["diff"]
    assert "mine.txt" not in report["diff"]
    assert [(c["task"], c["files"]) for c in report["would_commit"]] == [
        ("T1-01", ["a.txt"]),
        ("T1-02", ["edited.txt", "old.txt"]),
    ]
    assert project.quick("status", "--json").data["phases"][0]["state"] == "ready"
    base = project.repo.head()
    assert project.execute("--no-verify").code == 0
    names = ["a.txt", "edited.txt", "old.txt"]
    real = project.repo.git("diff", "--full-index", "--no-renames", base, "HEAD", "--", *names)
    assert report["diff"].strip() == real


def test_a_predicted_failure_is_reported_and_leaves_nothing(sandbox: GitSandbox) -> None:
    """R-RUN-7, R-RUN-11: with the step and the plan; it is the result even if a person is asked too."""
    project = projects.create(sandbox)
    asked = task("T1-03", files="create `c.txt`", fields="- **Builder:** human\n")
    project.plan([failing_task("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01"), asked])
    answer = rehearse(project, "--max-attempts", "1")
    assert (answer.code, answer.error["code"]) == (1, "dry-run.failed")
    assert answer.error["message"] == "A run would fail. Failed: T1-01."
    statuses = {row["id"]: row["status"] for row in answer.data["dry_run"]["tasks"]}
    assert statuses == {"T1-01": "failed", "T1-02": "blocked", "T1-03": "waiting"}
    assert "exhausted" not in answer.out  # no question that disappears with the copy
    assert "resume" not in str(answer.error["hint"])
    details = answer.error["details"]
    assert (details["status"], details["step_id"], details["tool"]) == ("failed", "T1-01", "steps")
    assert details["error"] == "AC-1 failed"
    assert len(details["plan_hash"]) == 64
    assert "task.failed" in {event["kind"] for event in details["audit_trail"]}
    assert all("resume" not in (row["command"] or "") for row in details["choices"])


def test_a_dry_run_and_a_run_ask_about_an_undeclared_file(project: Project) -> None:
    project.plan([making("T1-01", "a.txt", steps=[shell("echo x > a.txt; touch stray.txt")])])
    rehearsed, ended = rehearse(project), project.execute()
    assert (rehearsed.code, rehearsed.error["code"], ended.code) == (5, "dry-run.waiting", 5)


def test_a_dry_run_skips_what_a_copy_cannot_contain(sandbox: GitSandbox, tmp_path: Path) -> None:
    """R-RUN-11, R-LOCK-9: tasks with effects outside the files, and those of a person, are listed and not begun."""
    project = projects.create(sandbox)
    mark = tmp_path / "deployed"
    outside = f"- **Rollback:** compensatable\n  - `rm -f {mark}`\n"
    told_all = "- **Rollback:** irreversible: it tells the world\n"
    project.plan(
        [
            making("T1-01", "a.txt"),
            task("T1-02", files="create `b.txt`", steps=[shell(f"touch {mark} b.txt")], fields=outside),
            making("T1-03", "c.txt", after="T1-02"),
            making("T1-04", "d.txt"),
            task("T1-05", files="create `e.txt`", steps=[shell(f"touch {mark} e.txt")], fields=told_all),
        ]
    )
    answer = rehearse(project)
    report = answer.data["dry_run"]
    assert [row["task"] for row in report["not_rehearsed"]] == ["T1-02", "T1-05"]
    assert not mark.exists()
    rows = {row["id"]: row for row in report["tasks"]}
    assert [task_id for task_id, row in rows.items() if row["rehearsed"]] == ["T1-01", "T1-04"]
    assert rows["T1-03"]["why"] == "needs T1-02"


def test_an_interrupted_dry_run_leaves_nothing(project: Project) -> None:
    """R-RUN-11."""
    step = shell("kill -INT $PPID; tail -f /dev/null")
    project.plan([making("T1-01", "a.txt"), task("T1-02", files="create `b.txt`", steps=[step], after="T1-01")])
    consent = ("--approve", project.approval())
    before = everything(project)
    ended = project.idumb("execute-phase", "1", "--dry-run", *consent)
    assert ended.code == 130
    assert "idumb resume" not in ended.out + ended.err
    assert everything(project) == before


def test_the_question_of_a_dry_run_names_it_and_its_hint_starts_no_run(project: Project) -> None:
    """R-RUN-11, R-ASK-1: pasting the hint starts the dry run and not the run; a run keeps its own hint.

    A dry run runs commands, so it asks like a run.
    """
    project.plan([making("T1-01", "a.txt")])
    refused = rehearse(project, approve=False)
    details = refused.error["details"]
    pasted = f"idumb execute-phase 1 --dry-run --approve {project.approval()}"
    assert (refused.code, refused.error["code"], refused.error["hint"]) == (4, "consent.missing", pasted)
    assert "dry run" in details["what"].lower()
    assert "copy" in details["why"]
    assert [(row["id"], row["command"]) for row in details["choices"]] == [("run", pasted), ("no", None)]
    assert "no consent is recorded" in details["choices"][0]["consequence"]
    assert project.quick(*pasted.split()[1:], "--json").data["run"] is None
    assert not project.exists("a.txt")
    # That consent counted once.
    assert project.quick("execute-phase", "1", "--dry-run", "--json").error["code"] == "consent.missing"
    real = project.quick("execute-phase", "1", "--json")
    assert real.error["code"] == "consent.missing"
    assert "dry" not in json.dumps(real.error["details"])
    assert "--dry-run" not in str(real.error["hint"])


@pytest.mark.nightly
def test_a_dry_run_of_an_interrupted_phase_says_nothing_of_its_reports(project: Project) -> None:
    """R-RUN-11: no warning says that a file was kept in the copy, because the copy is removed."""
    project.plan([making("T1-01", "a.txt"), failing_task("T1-02", "b.txt", after="T1-01")])
    ended = project.json("execute-phase", "1", "--approve", project.approval())
    assert ended.data["outcome"] != "complete"
    assert project.repo.status()
    answer = project.idumb("execute-phase", "1", "--dry-run", "--approve", project.approval())
    assert "not as idumb wrote it" not in answer.out + answer.err
