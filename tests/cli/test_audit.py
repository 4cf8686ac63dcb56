"""The audit trail: an entry for each step, and tampering that shows (R-LOG-3)."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.support import doctor as doctors
from tests.support import project as projects
from tests.support.doctor import store
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import making
from tests.support.ssh_keys import make_key


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


@pytest.mark.usefixtures("home")
def test_a_signed_bundle_has_each_step_and_response_and_ssh_keygen_alone_verifies_it(
    prepared: Prepared, tmp_path: Path
) -> None:
    """R-OPS-3."""
    project, file = prepared.get(doctors.create), tmp_path / "bundle.json"
    key = make_key(tmp_path / "key")
    made = project.json("audit", "bundle", "1", "--file", str(file), "--sign", str(key))
    assert (made.code, made.data["signed"], made.object["warnings"]) == (0, True, [])
    assert made.data["written"] == [str(file), f"{file}.sig"]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == made.data["sha256"]
    bundle = json.loads(file.read_bytes())
    for task in bundle["tasks"]:
        (step,) = task["steps"]
        event = next(e for e in project.events("1", "--task", task["id"]) if e["seq"] == step["event"])
        assert (step["tool"], step["event_hash"]) == ("write_file", event["hash"])
        response = json.dumps(event["payload"]["response"], sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(response.encode()).hexdigest() == step["response_sha256"]
        assert len(step["plan_hash"]) == 64
        assert [row["role"] for row in task["responses"]] == ["builder"]
    allowed = tmp_path / "allowed"
    allowed.write_text(f"me {' '.join(key.with_suffix('.pub').read_text().split()[:2])}\n")
    verify = ["ssh-keygen", "-Y", "verify", "-f", str(allowed), "-I", "me", "-n", "idumb-bundle", "-s", f"{file}.sig"]
    whole = file.read_bytes()
    assert subprocess.run(verify, input=whole, capture_output=True, check=False).returncode == 0
    changed = whole.replace(b'"completed"', b'"accepted"', 1)
    assert subprocess.run(verify, input=changed, capture_output=True, check=False).returncode != 0
    other = str(tmp_path / "other.json")
    assert project.json("audit", "bundle", "1", "--file", other, "--sign", "none").error["code"] == "audit.not-signed"
    assert not os.path.exists(other)
    refused = project.json("audit", "bundle", "1", "--file", str(file))
    assert (refused.error["code"], file.read_bytes()) == ("file.exists", whole)


def test_a_secret_that_shares_digits_with_a_commit_leaves_a_bundle_as_it_is(
    prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, file = prepared.get(doctors.create), tmp_path / "bundle.json"
    project.configure("bindings:\n  maker: {adapter: command, argv: [env], environment: [API_TOKEN]}\n")
    head = project.repo.head()
    monkeypatch.setenv("API_TOKEN", head[:8])
    assert project.json("audit", "bundle", "1", "--file", str(file)).code == 0
    assert json.loads(file.read_bytes())["run"]["head_commit"] == head


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
    project.configure("run: {max_attempts: 2}\n")  # the user agrees to another contract
    assert project.quick("approve", "1", "--hash", project.contract_hash(), "--json").code == 0
    again = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert [e["result"] for e in again.data["invariants"]] == ["failed"]
