"""What an old iDumb left is taken over once, with a report, and told as not witnessed (R-LOG-9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"
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
PROGRESS = {"completed": ["T1-01"], "failed": ["T1-02"], "blocked": ["T1-03"], "started_at": "x", "git_hash": HASH}
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


def old_files() -> dict[str, str | bytes]:
    execution = ".idumb/brain/execution/1"
    return {
        "README.md": "# A project\n",
        ".idumb/brain/state.json": json.dumps(STATE),
        f"{execution}/progress.json": json.dumps(PROGRESS, indent=2),
        f"{execution}/checkpoint-T1-01.json": json.dumps(CHECKPOINT),
        f"{execution}/checkpoint-T1-02.md": MARKDOWN,
        f"{execution}/checkpoint-T1-03.json": '{"id": "checkpoint-T1-03", ',
        ".idumb/brain/context/notes.bin": b"\x00\xff\xfe",
    }


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    sandbox.write_all(old_files())
    sandbox.commit("before")
    return Project(sandbox, sandbox.root)


def imported(project: Project) -> list[dict[str, Any]]:
    return [e["payload"] for e in project.json("log", "--kind", "legacy.imported").data["events"]]


def test_init_takes_over_state_progress_and_checkpoints_of_an_old_idumb(project: Project) -> None:
    """R-LOG-9, R-LOG-4: session, phase, tasks with their commits, anchors and history."""
    answer = project.json("init")
    told = answer.data["taken_over"]
    jsonschema.validate(answer.data, json.loads((SCHEMAS / "init.json").read_text(encoding="utf-8")))
    assert (told["session"], told["phase"]) == ("ses_1", "executed")
    assert (told["anchors"], told["history"]) == (STATE["anchors"], STATE["history"])
    phase = told["phases"][0]
    assert (phase["phase"], phase["completed"], phase["failed"]) == ("1", ["T1-01"], ["T1-02"])
    assert phase["tasks"]["T1-01"]["git_hash"] == HASH
    assert [told] == imported(project)


def test_what_cannot_be_understood_is_listed_and_kept_like_everything_else(project: Project) -> None:
    """R-LOG-9: byte for byte, in the git folder."""
    before = project.repo.ledger()
    told = project.json("init").data["taken_over"]
    assert {row["path"].rpartition("/")[2] for row in told["not_understood"]} == {"checkpoint-T1-03.json", "notes.bin"}
    for file in told["files"]:
        assert Path(file["kept"]).read_bytes() == (project.folder / file["path"]).read_bytes()
        assert Path(file["kept"]).is_relative_to(project.repo.common_dir / "idumb/legacy")
    assert {f["path"] for f in told["files"]} == {name for name in old_files() if name != "README.md"}
    after = project.repo.ledger()
    assert [p for p in before.changed_paths(after) if p in before.entries and before.entries[p].type == "file"] == []


def test_it_is_taken_over_once(project: Project) -> None:
    """R-LOG-9."""
    assert project.json("init").data["taken_over"] is not None
    assert project.json("init").data["taken_over"] is None
    assert len(imported(project)) == 1


def test_what_idumb_itself_writes_later_is_none_of_it(project: Project) -> None:
    """R-LOG-9: state.json is brought up to date in place, and its old lines stay in it."""
    assert project.idumb("init").code == 0
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    assert project.json("init").data["taken_over"] is None
    state = json.loads(project.read(".idumb/brain/state.json"))
    assert (state["anchors"], state["history"][0]) == (STATE["anchors"], STATE["history"][0])


def test_a_project_of_idumb_alone_has_nothing_to_take_over(sandbox: GitSandbox) -> None:
    made = projects.create(sandbox)
    made.plan([making("T1-01", "a.txt")])
    assert made.execute().code == 0
    assert made.json("init").data["taken_over"] is None


def test_status_tells_of_it_and_counts_nothing_as_done(project: Project) -> None:
    """R-LOG-9: the task of the old checkpoint is still to be run."""
    assert project.idumb("init").code == 0
    project.plan([making("T1-01", "a.txt")])
    row = project.json("status").data["phases"][0]
    jsonschema.validate(project.json("status").data, json.loads((SCHEMAS / "status.json").read_text(encoding="utf-8")))
    assert (row["state"], row["elsewhere"]["by"], row["tasks"]) == (
        "recorded",
        "an old iDumb",
        {"total": 1, "ready": 1},
    )
    text = project.idumb("status").out
    assert "done elsewhere, told by an old iDumb, not witnessed here: 1 completed, 1 failed" in text
    assert project.execute().data["counts"]["completed"] == 1
    assert project.json("status").data["phases"][0]["state"] == "verified"


@pytest.mark.parametrize(
    "damage",
    [b"", b"[]", b"{", b"\xff\xfe", b"<<<<<<< a\n{}\n=======\n{}\n>>>>>>> b\n", b"[" * 100_000, b'{"history": 1e999}'],
)
def test_a_damaged_state_file_stops_nothing(sandbox: GitSandbox, damage: bytes) -> None:
    sandbox.write(".idumb/brain/state.json", damage)
    made = Project(sandbox, sandbox.root)
    answer = made.json("init")
    assert answer.code == 0
    assert answer.data["taken_over"]["files"][0]["size"] == len(damage)


def test_a_clone_tells_by_its_commits_what_was_done_elsewhere(sandbox: GitSandbox, tmp_path: Path) -> None:
    """R-LOG-9: history that this clone did not witness, and that was not rolled back."""
    made = projects.create(sandbox)
    made.configure("git: {commit_reports: false}\n")
    made.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")])
    assert made.execute().code == 0
    assert made.idumb("rollback", "1", "--to", "T1-01", "--yes").code == 0
    sandbox.git("clone", "--quiet", ".", str(tmp_path / "clone"))
    clone = Project(GitSandbox(tmp_path / "clone"), tmp_path / "clone")
    row = clone.json("status").data["phases"][0]
    assert (row["state"], row["elsewhere"]["by"], row["elsewhere"]["counts"]) == (
        "recorded",
        "commits",
        {"total": 1, "completed": 1},
    )
    assert made.idumb("undo", "--yes").code == 0
    clone.repo.git("pull", "--quiet")
    assert clone.json("status").data["phases"][0]["elsewhere"]["counts"]["completed"] == 2
