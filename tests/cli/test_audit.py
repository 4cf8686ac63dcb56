"""The audit trail: an entry for each step, and tampering that shows (R-LOG-3)."""

from __future__ import annotations

import sqlite3

from tests.support import doctor as doctors
from tests.support import project as projects
from tests.support.doctor import store
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import making


def test_each_step_has_an_entry_and_an_event_changed_outside_the_program_is_detected(prepared: Prepared) -> None:
    """R-LOG-3: the triggers are dropped, as a person with a database shell could do."""
    project = prepared.get(doctors.create)
    entries = project.events("1", "--kind", "step.finished")
    row = (0, "write_file", True)
    assert [(e["payload"]["index"], e["payload"]["tool"], e["payload"]["ok"]) for e in entries] == [row, row]
    assert len(entries[0]["payload"]["plan_hash"]) == 64
    assert all((entries[0]["at"], entries[0]["run"], entries[0]["payload"]["call"]))
    answer = project.quick("audit", "verify", "--json")
    assert (answer.code, answer.data["broken_at"]) == (0, None)
    assert answer.data["witnessed"] == answer.data["events"] > 5
    with sqlite3.connect(store(project)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute(
            "UPDATE events SET payload = replace(payload, 'write_file', 'delete_file') WHERE kind = 'step.finished'"
        )
    db.close()
    answer = project.quick("audit", "verify", "--json")
    assert answer.code in {1, 4}
    assert answer.error["code"] in {"audit.broken", "store.corrupt"}


def test_invariants_are_judged_again_after_a_rollback_and_after_its_undo(sandbox: GitSandbox) -> None:
    """R-RUN-14."""
    project = projects.create(sandbox)
    invariant = "invariants:\n  - {id: INV-1, text: a stays, check: test -e a.txt}\n"
    project.plan([making("T1-01", "a.txt", "x\n")], head=invariant)
    assert run(project).code == 0
    back = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert back.code == 0, back.out
    assert [(e["subject"], e["result"]) for e in back.data["invariants"]] == [("invariant INV-1", "failed")]
    assert "INV-1" in back.object["warnings"][0]
    assert project.quick(*project.undoing(), "--json").object["warnings"] == []
