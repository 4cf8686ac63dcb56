"""The files of an old iDumb are imported once, with a report, and shown as not proven (R-LOG-9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making

HASH = "0123456789012345678901234567890123456789"

STATE: dict[str, Any] = {
    "version": "0.2.0",
    "initialized": "2026-02-04T10:00:00+07:00",
    "framework": "bmad",
    "phase": "executed",
    "lastValidation": None,
    "validationCount": 3,
    "anchors": [{"id": "a1", "type": "decision", "content": "Use plain files", "priority": "critical"}],
    "history": [{"timestamp": "2026-02-04T11:00:00Z", "action": "execute-phase:1", "agent": "x", "result": "pass"}],
    "session": "ses_1",
}
FAILED, BLOCKED = [{"task_id": "T1-02"}], ["T1-03", "T1-01", None]  # some versions write tasks as objects
PROGRESS = {"completed": ["T1-01"], "failed": FAILED, "blocked": BLOCKED, "started_at": "x", "git_hash": HASH}
CHECKPOINT = {
    "id": "checkpoint-T1-01",
    "timestamp": "2026-02-04T10:30:00Z",
    "task_id": "T1-01",
    "status": "completed",
    "git_hash": HASH,
    "files_modified": ["src/a.ts"],
    "validation_result": "pass",
    "retry_count": 0,
    "error_message": None,
    "duration_seconds": 45,
}
MARKDOWN = "---\nid: checkpoint-T1-02\ntask_id: T1-02\nstatus: failed\ngit_hash: no-git\n---\n\n# It failed\n"
EXECUTION = ".idumb/brain/execution/1"


def old_files() -> dict[str, str | bytes]:
    return {
        "README.md": "# A project\n",
        ".idumb/brain/state.json": json.dumps(STATE),
        f"{EXECUTION}/progress.json": json.dumps(PROGRESS, indent=2),
        f"{EXECUTION}/checkpoint-T1-01.json": json.dumps(CHECKPOINT),
        f"{EXECUTION}/checkpoint-T1-02.md": MARKDOWN,
        f"{EXECUTION}/checkpoint-T1-03.json": '{"id": "checkpoint-T1-03", ',
        f"{EXECUTION}/checkpoint-T1-04.md": MARKDOWN.encode().replace(b"no-git", b"caf\xe9"),
        ".idumb/brain/context/notes.bin": b"\x00\xff\xfe",
    }


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    sandbox.commit_with(old_files(), "before")
    return Project(sandbox, sandbox.root)


def imported(project: Project) -> list[dict[str, Any]]:
    return [e["payload"] for e in project.json("log", "--kind", "legacy.imported").data["events"]]


def test_init_migrates_state_progress_and_checkpoints_of_an_old_idumb(project: Project) -> None:
    """R-LOG-9, R-LOG-4: session, phase, tasks with their commits, anchors and history; once."""
    answer = project.json("init")
    migrated = answer.data["taken_over"]
    assert (migrated["session"], migrated["phase"]) == ("ses_1", "executed")
    assert (migrated["anchors"], migrated["history"]) == (STATE["anchors"], STATE["history"])
    phase = migrated["phases"][0]
    shown = [phase[name] for name in ("phase", "completed", "failed", "blocked")]
    assert shown == ["1", ["T1-01"], ["T1-02"], ["T1-03"]]
    assert phase["tasks"]["T1-01"]["git_hash"] == HASH
    assert project.json("init").data["taken_over"] is None
    assert [migrated] == imported(project)


def test_unreadable_files_are_listed_and_kept_like_everything_else(project: Project) -> None:
    """R-LOG-9: the originals are kept byte for byte in the git folder."""
    before = project.repo.ledger()
    migrated = project.json("init").data["taken_over"]
    assert {row["path"].rpartition("/")[2] for row in migrated["not_understood"]} == {
        "checkpoint-T1-03.json",
        "checkpoint-T1-04.md",
        "notes.bin",
    }
    for file in migrated["files"]:
        assert Path(file["kept"]).read_bytes() == (project.folder / file["path"]).read_bytes()
        assert Path(file["kept"]).is_relative_to(project.repo.common_dir / "idumb/legacy")
    assert {f["path"] for f in migrated["files"]} == {name for name in old_files() if name != "README.md"}
    after = project.repo.ledger()
    assert [p for p in before.changed_paths(after) if p in before.entries and before.entries[p].type == "file"] == []


def test_status_mentions_it_and_counts_nothing_as_completed(project: Project) -> None:
    """R-LOG-9: the task of the old checkpoint still has to run; `state.json` keeps its old lines."""
    assert project.quick("init").code == 0
    project.plan([making("T1-01", "a.txt")])
    row = project.json("status").data["phases"][0]
    assert (row["state"], row["elsewhere"]["by"], row["tasks"]) == (
        "recorded",
        "an old iDumb",
        {"total": 1, "ready": 1},
    )
    text = project.quick("status").out
    assert "done elsewhere according to an old iDumb, not recorded here: 1 completed, 1 failed" in text
    assert project.execute().data["counts"]["completed"] == 1
    assert project.json("status").data["phases"][0]["state"] == "verified"
    assert project.json("init").data["taken_over"] is None  # what idumb wrote since
    state = json.loads(project.read(".idumb/brain/state.json"))
    assert (state["anchors"], state["history"][0]) == (STATE["anchors"], STATE["history"][0])


def test_a_damaged_state_file_does_not_stop_the_migration(tmp_path: Path) -> None:
    for number, damage in enumerate((b"<<<<<<< a\n{}\n=======\n{}\n>>>>>>> b\n", b"[" * 100_000)):
        sandbox = GitSandbox.create(tmp_path / str(number))
        sandbox.write(".idumb/brain/state.json", damage)
        answer = Project(sandbox, sandbox.root).json("init")
        assert answer.code == 0
        assert answer.data["taken_over"]["files"][0]["size"] == len(damage)


def test_completed_work_is_accepted_before_a_run_or_built_as_any_other(project: Project) -> None:
    """R-LOG-9: `init` names it and the command; `accept` begins the run, starts no program, and `resume` continues."""
    project.repo.write(f"{EXECUTION}/progress.json", json.dumps({**PROGRESS, "completed": ["T1-01", "T1-02", "a; b"]}))
    shown = project.quick("init").out
    assert [line.split(": ")[1] for line in shown.splitlines() if "count as done here" in line] == [
        f"idumb accept {task} --why REASON" for task in ("T1-01", "T1-02", "'a; b'")
    ]
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt"), making("T1-03", "c.txt", after="T1-01")])
    accepted = project.json("accept", "T1-01", "--why", "I read it")
    assert (accepted.code, accepted.data["next"]) == (0, ["idumb resume 1"])
    assert project.json("status").data["phases"][0]["state"] == "halted"
    assert project.events("--kind", "attempt.started") == []
    assert project.resume("--approve", project.approval(), "--no-verify").code == 0
    assert project.statuses() == {"T1-01": "accepted", "T1-02": "completed", "T1-03": "completed"}
    assert sorted(project.trailers("Idumb-Task")) == ["T1-02", "T1-03"]
