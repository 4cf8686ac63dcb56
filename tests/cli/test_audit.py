"""The audit trail: an entry for each step, and tampering that shows (R-LOG-3)."""

from __future__ import annotations

import sqlite3

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt", "x\n")])
    assert project.execute().code == 0
    return project


def test_each_step_has_an_entry_with_plan_hash_tool_arguments_response_and_time(project: Project) -> None:
    """R-LOG-3."""
    entries = project.json("log", "1", "--kind", "step.finished").data["events"]
    assert [(e["payload"]["index"], e["payload"]["tool"], e["payload"]["ok"]) for e in entries] == [
        (0, "write_file", True)
    ]
    assert len(entries[0]["payload"]["plan_hash"]) == 64
    assert all((entries[0]["at"], entries[0]["run"], entries[0]["payload"]["call"]))


def test_an_untouched_log_verifies_up_to_its_head(project: Project) -> None:
    """R-LOG-3."""
    answer = project.json("audit", "verify")
    assert (answer.code, answer.data["broken_at"]) == (0, None)
    assert answer.data["events"] > 5
    assert answer.data["witnessed"] == answer.data["events"]


def test_an_event_changed_outside_the_program_is_detected(project: Project) -> None:
    """R-LOG-3: the triggers are dropped, as a person with a database shell could do."""
    store = project.repo.git_dir / "idumb/store.db"
    with sqlite3.connect(store) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute(
            "UPDATE events SET payload = replace(payload, 'write_file', 'delete_file') WHERE kind = 'step.finished'"
        )
    db.close()
    answer = project.json("audit", "verify")
    assert answer.code in {1, 4}
    assert answer.error["code"] in {"audit.broken", "store.corrupt"}


def test_invariants_are_judged_again_after_a_rollback_and_after_its_undo(sandbox: GitSandbox) -> None:
    """R-RUN-14."""
    project = projects.create(sandbox)
    project.plan(
        [making("T1-01", "a.txt", "x\n")], head="invariants:\n  - {id: INV-1, text: a stays, check: test -e a.txt}\n"
    )
    assert project.execute().code == 0
    back = project.json("rollback", "1", "--to", "start", "--yes")
    assert back.code == 0, back.out
    assert [(e["subject"], e["result"]) for e in back.data["invariants"]] == [("invariant INV-1", "failed")]
    assert "INV-1" in back.object["warnings"][0]
    assert project.json("undo", "--yes").object["warnings"] == []
