"""`idumb approve`: strict plans run only under a valid approval of exactly their bytes, signed or not."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from tests.support import approvals, seed
from tests.support.approvals import CHECK, FIELDS, STRICT, approve, contract, may_start, refused, run
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, shell, task, write
from tests.support.ssh_keys import allow, make_key
from tests.support.terminal import answering

project = prepared_project(approvals.create)


def test_a_strict_plan_runs_only_when_approved(project: Project) -> None:
    """R-LOCK-3, R-LOCK-4, R-PLAN-4: the plan that ran can be shown even if the file changed."""
    details = refused(run(project), "approval.missing")
    assert details["choices"][0]["command"] == "idumb approve 1"
    refused(run(project, "--approve", contract(project)), "approval.missing")
    refused(project.quick("accept", "T1-01", "--why", "it is there", "--json"), "approval.missing")
    approval = approve(project).data
    assert approval["status"] == "approved"
    assert approval["validator"].startswith("idumb ")
    assert approval["scope"] == "."
    assert approval["base_commit"] == project.repo.git("rev-parse", "HEAD").strip()
    answer = run(project)
    assert answer.code == 0, answer
    (started,) = project.events("1", "--kind", "run.started")
    assert started["payload"]["approval"] == approval["nonce"]
    kept = [oid for name, oid in project.repo.kept().items() if name.endswith("/plans")]
    plan = project.repo.git("hash-object", ".planning/phases/1/01-PLAN.md")
    assert project.repo.git("rev-parse", f"{kept[0]}:01-PLAN.md") == plan


def test_a_wrong_hash_approves_nothing(project: Project) -> None:
    """R-LOCK-2: an expected hash is enforced."""
    details = refused(project.quick("approve", "1", "--hash", "0" * 64, "--json"), "approval.other-contract")
    assert details["contract_hash"] == contract(project)
    refused(run(project), "approval.missing")


def test_without_terminal_and_hash_everything_is_shown_and_nothing_approved(project: Project) -> None:
    """R-ASK-2."""
    details = refused(project.quick("approve", "1", "--json"), "approval.not-given")
    shown = "\n".join(details["evidence"])
    for words in (f"sh {CHECK}", f"commands use {CHECK}", "writes a.txt", "tools of steps: write_file", "limits: "):
        assert words in shown
    refused(run(project), "approval.missing")


@pytest.mark.parametrize(("typed", "code"), [("", 4), ("yes", 0)])
def test_at_a_terminal_approve_asks_and_the_default_is_no(
    project: Project, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    """R-LOCK-3, R-ASK-2."""
    screen = answering(monkeypatch, typed)
    answered = project.quick("approve", "1")
    assert answered.code == code
    assert f"commands use {CHECK}" in screen.getvalue()
    assert CHECK not in answered.err, "the question has shown it"
    assert project.json("approve", "1", "--revoke").code == code


def test_a_plan_with_errors_is_not_approved(project: Project) -> None:
    """R-GATE-1."""
    place = project.folder / ".planning/phases/1/01-PLAN.md"
    place.write_text(place.read_text().replace("none\n- **Files", "T1-09\n- **Files"))
    answer = project.quick("approve", "1", "--hash", "0" * 64, "--json")
    assert (answer.code, answer.error["code"]) == (3, "plan.invalid")


def test_an_approval_expires_at_its_end(project: Project, home: Path) -> None:
    """R-LOCK-4."""
    ends = approve(project, "--expires", "90m").data["expires"]
    (place,) = (home / "state/idumb/consent").rglob("*.json")
    place.write_text(place.read_text().replace(ends, "2020-01-01T00:00:00.000000Z"))
    details = refused(run(project), "approval.expired")
    assert "2020-01-01" in details["why"]


def test_an_approval_can_be_revoked_and_given_again(project: Project) -> None:
    """R-LOCK-3, R-LOCK-4."""
    refused(project.quick("approve", "1", "--revoke", "--json"), "approval.none")
    approve(project)
    approve(project)
    answer = project.quick("approve", "1", "--revoke", "--json")
    assert answer.data["revoked"] == 2
    assert "was revoked by" in refused(run(project), "approval.revoked")["why"]
    approve(project)
    may_start(project)


@pytest.mark.nightly
def test_a_pinned_base_is_valid_only_for_a_run_that_starts_there(project: Project) -> None:
    """R-LOCK-4: the base is recorded, and bound only on request; commits of the run's own tasks do not void it."""
    approve(project, "--pin-base")
    project.repo.commit_with({"other.txt": "x\n"}, "other")
    assert refused(run(project), "approval.void")["changed"] == ["base"]
    approve(project, "--pin-base")
    assert run(project, "--no-verify").code == 0
    project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert project.resume("--no-verify").code == 0


@pytest.mark.nightly
def test_strict_mode_needs_an_approval_for_a_guided_plan_and_resume_stays_strict(project: Project) -> None:
    """R-LOCK-4."""
    steps = (write("a.py", "def load(path):\n    return path\n"),)
    failing = task("T1-01", files="create `a.py`", check="test -e go.log", steps=steps)
    project.plan([failing, task("T1-02", files="create `b.txt`", check="test -e b.txt", steps=(write("b.txt", "x"),))])
    refused(run(project, "--mode", "strict", "--approve", contract(project)), "approval.missing")
    approve(project)
    halted = run(project, "--mode", "strict")  # at the first failure, although the plan is guided
    assert [(row["status"], row["attempts"]) for row in halted.data["tasks"]] == [("failed", 1), ("ready", 0)]
    judged = project.json("show", "T1-01").data["attempts"][0]["evidence"]
    assert [row["subject"] for row in judged] == ["AC-1", "gate specification"]
    assert project.quick("approve", "1", "--revoke", "--json").code == 0
    refused(
        project.quick("resume", "1", "--retry-failed", "--approve", contract(project), "--json"), "approval.revoked"
    )


OTHERS = """
bindings: {thinker: {adapter: claude, environment: [OTHER_KEY]}}
roles: {planner: {binding: thinker}, debugger: {binding: thinker, model: big}}
"""


def test_binding_another_role_does_not_stop_a_run_but_changing_its_settings_does(project: Project) -> None:
    """R-LOCK-4, R-LOG-7."""
    project.plan([task("T1-01", check="test -e go", steps=[shell("true")])])
    assert project.execute("--max-attempts", "1").code == 1
    project.repo.commit_with({"go": ""}, "go")
    project.configure("protected: [x]\n")
    assert project.json("resume", "1", "--retry-failed").error["code"] == "run.contract-changed"
    project.configure(OTHERS)
    assert project.resume("--retry-failed", "--no-verify").code == 0


# The lock while a run goes on


CHANGES_WHILE_RUNNING = {
    "a plan more": (
        "cp .planning/phases/1/01-PLAN.md .planning/phases/1/02-PLAN.md",
        "lock.plan-changed",
        [".planning/phases/1/02-PLAN.md"],
    ),
    "no plan": ("rm .planning/phases/1/01-PLAN.md", "lock.plan-changed", [".planning/phases/1/01-PLAN.md"]),
    "the configuration": (
        "printf 'run: {max_attempts: 2}\\n' > .idumb/config.yaml",
        "lock.configuration-changed",
        [".idumb/config.yaml"],
    ),
    "the policy": (
        "mkdir -p .idumb/policy && printf 'allow: [run, write_file]\\n' > .idumb/policy/tools.yaml",
        "lock.policy-changed",
        None,
    ),
    "a file of a command": (f"printf ' ' >> {CHECK}", "approval.void", ["files"]),
}


def _changing(project: Project, command: str, *, head: str = "") -> None:
    """A plan of two tasks, and a change of a locked file in the user's tree right after the first commit."""
    fields = FIELDS if head else ""
    project.plan(
        [making("T1-01", "a.txt", fields=fields), making("T1-02", "b.txt", after="T1-01", fields=fields)], head=head
    )
    script = f"#!/bin/sh\ncd {shlex.quote(str(project.folder))}\n{command}\n"
    project.repo.write(".git/hooks/post-commit", script, mode=0o755)


@pytest.mark.parametrize("change", seed.one_on_a_push([*CHANGES_WHILE_RUNNING], "what changes during a run"))
def test_the_lock_is_checked_before_every_task(project: Project, change: str) -> None:
    """R-LOCK-4: the run stops before the next task and names what changed."""
    command, code, changed = CHANGES_WHILE_RUNNING[change]
    _changing(project, command, head=STRICT if change in ("a plan more", "no plan", "a file of a command") else "")
    if change == "a file of a command":
        place = project.folder / ".planning/phases/1/01-PLAN.md"
        place.write_text(place.read_text().replace("`test -s b.txt`", f"`sh {CHECK}`"))
    approve(project)
    details = refused(run(project), code)
    assert changed is None or details["changed"] == changed
    assert not project.exists("b.txt")
    assert [e["task"] for e in project.events("1", "--kind", "attempt.started")] == ["T1-01"]
    assert project.events("1", "--kind", "run.halted")


def test_a_run_continues_after_the_plan_is_reverted(project: Project) -> None:
    """R-LOCK-4."""
    place = project.folder / ".planning/phases/1/01-PLAN.md"
    _changing(project, f"printf ' ' >> {place.relative_to(project.folder)}", head=STRICT)
    text = place.read_bytes()
    approve(project)
    assert refused(run(project), "lock.plan-changed")["changed"] == [str(place.relative_to(project.folder))]
    assert not project.exists("b.txt")
    place.write_bytes(text)
    answer = project.resume("--no-verify")
    assert answer.code == 0, answer
    assert project.read("b.txt") == "made\n"


def test_a_revoked_approval_stops_a_strict_run_before_its_next_task(project: Project, tmp_path: Path) -> None:
    """R-LOCK-4: a user at another terminal revokes it after the first commit."""
    started, done = tmp_path / "asked", tmp_path / "done"
    os.mkfifo(started)
    os.mkfifo(done)
    _changing(project, f": > {shlex.quote(str(started))}\ncat {shlex.quote(str(done))}", head=STRICT)
    approve(project)
    with project.beside("execute-phase", "1", "--json") as process:
        started.read_bytes()
        assert project.json("approve", "1", "--revoke").code == 0
        done.write_bytes(b"")
        answer = process.wait()
    refused(answer, "approval.revoked")
    assert not project.exists("b.txt")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return make_key(tmp_path / "key")


def test_a_signed_approval_is_valid_in_another_clone(project: Project, tmp_path: Path, key: Path) -> None:
    """R-LOCK-3: a signature, if any, is verified."""
    file = tmp_path / "approval.json"
    approval = approve(project, "--sign", str(key), "--file", str(file)).data
    assert (approval["signed"], approval["file"]) == (True, str(file))
    clone = project.clone(tmp_path / "there")
    refused(run(clone), "approval.missing")
    refused(run(clone, "--approval", str(file)), "approval.no-signers")
    allow(key)
    clone.repo.write("a.txt", "mine\n")
    refused(run(clone, "--approval", str(file)), "task.dirty-path")


def test_a_signed_approval_with_one_field_changed_or_by_an_unknown_signer_is_refused(
    project: Project, tmp_path: Path, key: Path
) -> None:
    """R-LOCK-3."""
    file = tmp_path / "approval.json"
    approve(project, "--sign", str(key), "--file", str(file), "--expires", "1d")
    allow(key)
    whole, clone = json.loads(file.read_text()), project.clone(tmp_path / "there")
    for field, value in {"base_commit": None, "expires": None, "by": "x", "need": "0" * 64}.items():
        file.write_text(json.dumps({**whole, "grant": {**whole["grant"], field: value}}))
        refused(run(clone, "--approval", str(file)), "approval.bad-signature")
    file.write_text(json.dumps(whole))
    allow(make_key(tmp_path / "other"))
    refused(run(clone, "--approval", str(file)), "approval.bad-signature")
    refused(run(project), "approval.bad-signature")  # the kept one is verified too


def test_a_signed_approval_revoked_here_stays_revoked(project: Project, tmp_path: Path, key: Path) -> None:
    """R-LOCK-4: importing the file again does not undo the revocation."""
    file = tmp_path / "approval.json"
    allow(key)
    approve(project, "--sign", str(key), "--file", str(file))
    assert project.quick("approve", "1", "--revoke", "--json").code == 0
    refused(run(project, "--approval", str(file)), "approval.revoked")


def test_an_unsigned_file_and_an_invalid_key_are_refused(project: Project, tmp_path: Path) -> None:
    refused(project.json(*project.approving(), "--sign", str(tmp_path / "none")), "approval.not-signed")
    refused(run(project), "approval.missing")
    missing = run(project, "--approval", os.devnull)
    assert (missing.code, missing.error["code"]) == (3, "approval.unreadable")
