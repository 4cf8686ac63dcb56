"""`idumb approve`: strict plans need a valid approval, and irreversible tasks need acceptance by name."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from idumb.domain.intake import ambiguity
from tests.adapters.store.test_approvals import allow, make_key
from tests.cli.test_repository_states import at_terminal
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task, write

STRICT = (
    "mode: strict\nrequirements: {REQ-1: files}\nnon_goals: [{id: N-1, text: nothing else}]\n"
    "success_criteria: [{text: it is there, check: test -s a.txt}]\n"
)
FIELDS = "- **Requirements:** REQ-1\n- **Change:** extending\n"
CHECK = "tests/check.sh"


def strict_task(id: str, path: str, *, after: str = "none", fields: str = "", **more: Any) -> str:
    return making(id, path, after=after, fields=FIELDS + fields, **more)


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    made = projects.create(
        sandbox, files={"README.md": "# A project\n", ".gitignore": "*.log\n", CHECK: "test -s a.txt\n"}
    )
    tasks = [
        task("T1-01", files="create `a.txt`", check=f"sh {CHECK}", steps=(write("a.txt", "made\n"),), fields=FIELDS),
        strict_task("T1-02", "b.txt", after="T1-01"),
    ]
    made.plan(tasks, head=STRICT)
    return made


def contract(project: Project) -> str:
    return str(project.quick("check-plan", "1", "--json").data["contract_hash"])


def approve(project: Project, *flags: str) -> Answer:
    answer = project.quick("approve", "1", *project.answers(), "--hash", contract(project), *flags, "--json")
    assert answer.code == 0, answer
    return answer


def run(project: Project, *flags: str) -> Answer:
    return project.quick("execute-phase", "1", *flags, "--json")


def refused(answer: Answer, code: str) -> dict[str, Any]:
    """The details of a refusal with this code: what, why, evidence, and the consequence of each choice.

    A question about consent waits for an answer, and the exit code says so.
    """
    waits = 5 if "decision" in answer.error["details"] else 4
    assert (answer.code, answer.error["code"]) == (waits, code), answer
    details = dict(answer.error["details"])
    if "choices" in details:
        assert details["what"]
        assert details["why"]
        assert details["evidence"]
        assert all(choice["consequence"] for choice in details["choices"])
    return details


def test_a_strict_plan_runs_only_when_approved(project: Project) -> None:
    """R-LOCK-3, R-LOCK-4, R-PLAN-4."""
    details = refused(run(project), "approval.missing")
    assert details["choices"][0]["command"] == "idumb approve 1"
    refused(run(project, "--approve", contract(project)), "approval.missing")
    found = approve(project).data
    assert found["status"] == "approved"
    assert found["validator"].startswith("idumb ")
    assert found["scope"] == "."
    assert found["base_commit"] == project.repo.git("rev-parse", "HEAD").strip()
    answer = run(project)
    assert answer.code == 0, answer
    (started,) = project.events("1", "--kind", "run.started")
    assert started["payload"]["approval"] == found["nonce"]


def test_the_hash_of_a_phase_is_what_sha256sum_gives(project: Project) -> None:
    """R-LOCK-2."""
    project.plan([strict_task("T1-03", "c.txt")], name="02", head=STRICT)
    command = "sha256sum .planning/phases/1/*PLAN.md | sha256sum"
    told = subprocess.run(["sh", "-c", command], cwd=project.folder, capture_output=True, check=True, text=True)
    assert approve(project).data["plan_hash"] == told.stdout.split()[0]


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


@pytest.mark.parametrize(("typed", "code"), [("", 4), ("no", 4), ("yes", 0)])
def test_at_a_terminal_approve_asks_and_the_default_is_no(project: Project, typed: str, code: int) -> None:
    """R-LOCK-3, R-ASK-2."""
    ended, said = at_terminal(project, ("approve", "1"), typed)
    assert ended == code, said
    assert f"commands use {CHECK}" in said
    answer = run(project)
    assert answer.code == code, answer


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("sh {root}/tests/check.sh", CHECK),
        ('sh "$PWD/tests/check.sh"', CHECK),
        ("sh tests//check.sh", CHECK),
        ("cd tests && ./check.sh", CHECK),
        ("python3 -m mypkg", "mypkg/__main__.py"),
    ],
)
def test_a_file_is_bound_however_a_command_spells_its_path(sandbox: GitSandbox, command: str, changed: str) -> None:
    """R-LOCK-4: a command that binds no file is reported before the approval."""
    made = projects.create(sandbox, files={CHECK: "true\n", "mypkg/__main__.py": "\n", ".gitignore": "*.log\n"})
    spelled = command.format(root=made.folder)
    made.plan(
        [
            task("T1-01", files="create `a.txt`", check=spelled, steps=(write("a.txt", "made\n"),), fields=FIELDS),
            task("T1-02", files="create `b.txt`", check='sh "$A"', steps=(write("b.txt", "made\n"),), fields=FIELDS),
        ],
        head=STRICT,
    )
    found = approve(made).data
    assert list(found["bound"]["files"]["value"]) == [changed]
    told = [line for line in found["shown"] if line.startswith("command binds no file")]
    assert sorted(told) == ['command binds no file: sh "$A"', "command binds no file: test -s a.txt"]
    (made.folder / changed).write_text("exit 1\n")
    assert refused(run(made), "approval.void")["changed"] == ["files"]


def test_a_plan_with_errors_is_not_approved(project: Project) -> None:
    """R-GATE-1."""
    place = project.folder / ".planning/phases/1/01-PLAN.md"
    place.write_text(place.read_text().replace("T1-01\n- **Files", "T1-09\n- **Files"))
    answer = project.quick("approve", "1", "--hash", "0" * 64, "--json")
    assert (answer.code, answer.error["code"]) == (3, "plan.invalid")


def test_approving_changes_nothing_in_the_repository(project: Project) -> None:
    before = project.repo.git("status", "--porcelain"), project.repo.git("for-each-ref")
    approve(project)
    assert (project.repo.git("status", "--porcelain"), project.repo.git("for-each-ref")) == before


def test_an_approval_expires_at_its_end(project: Project, home: Path) -> None:
    """R-LOCK-4."""
    ends = approve(project, "--expires", "90m").data["expires"]
    (place,) = (home / "state/idumb/consent").rglob("*.json")
    place.write_text(place.read_text().replace(ends, "2020-01-01T00:00:00.000000Z"))
    details = refused(run(project), "approval.expired")
    assert "2020-01-01" in details["why"]


@pytest.mark.parametrize("text", ["soon", "2020-01-01", "0h"])
def test_an_invalid_expiry_is_a_usage_error(project: Project, text: str) -> None:
    answer = project.quick("approve", "1", *project.answers(), "--hash", contract(project), "--expires", text, "--json")
    assert (answer.code, answer.error["code"]) == (2, "usage")


def test_an_approval_can_be_revoked_and_given_again(project: Project) -> None:
    """R-LOCK-3, R-LOCK-4."""
    refused(project.quick("approve", "1", "--revoke", "--json"), "approval.none")
    approve(project)
    approve(project)
    answer = project.quick("approve", "1", "--revoke", "--json")
    assert answer.data["revoked"] == 2
    assert "was revoked by" in refused(run(project), "approval.revoked")["why"]
    approve(project)
    assert run(project).code == 0


def test_revoking_works_with_a_broken_plan(project: Project) -> None:
    approve(project)
    place = project.folder / ".planning/phases/1/01-PLAN.md"
    text = place.read_text()
    place.write_text("---\nbroken\n")
    assert project.quick("approve", "1", "--revoke", "--json").code == 0
    place.write_text(text)
    refused(run(project), "approval.revoked")


def test_a_change_voids_the_approval_and_reverting_it_restores_the_approval(project: Project) -> None:
    """R-LOCK-4."""
    approve(project)
    text = project.read(CHECK)
    project.repo.write(CHECK, text + " ")
    details = refused(run(project), "approval.void")
    assert details["changed"] == ["files"]
    assert details["parts"][0]["keys"] == [CHECK]
    assert [c["id"] for c in details["choices"]] == ["put-back", "approve", "no"]
    project.repo.write(CHECK, text)
    assert run(project).code == 0


def test_a_pinned_base_is_valid_only_for_a_run_that_starts_there(project: Project) -> None:
    """R-LOCK-4: the base is recorded, and bound only on request."""
    approve(project)
    project.repo.write("other.txt", "x\n")
    project.repo.commit("other")
    approve(project, "--pin-base")
    assert run(project, "--max-attempts", "1").code == 0  # the commits of its own tasks do not void it
    project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert project.quick("resume", "1", "--json").code == 0


def test_a_moved_base_voids_a_pinned_approval(project: Project) -> None:
    """R-LOCK-4."""
    approve(project, "--pin-base")
    project.repo.write("other.txt", "x\n")
    project.repo.commit("other")
    assert refused(run(project), "approval.void")["changed"] == ["base"]


def test_strict_mode_needs_an_approval_for_a_guided_plan_and_resume_stays_strict(project: Project) -> None:
    """R-LOCK-4."""
    project.plan([task("T1-01", files="create `a.txt`", check="test -e go.log", steps=(write("a.txt", "x"),))])
    refused(run(project, "--mode", "strict", "--approve", contract(project)), "approval.missing")
    approve(project)
    assert run(project, "--mode", "strict", "--max-attempts", "1").code == 1
    assert project.quick("approve", "1", "--revoke", "--json").code == 0
    refused(
        project.quick("resume", "1", "--retry-failed", "--approve", contract(project), "--json"), "approval.revoked"
    )


@pytest.mark.parametrize("phase", ["", " "])
def test_a_phase_without_a_name_is_refused_with_the_next_step(project: Project, phase: str) -> None:
    """R-LOCK-3."""
    answer = project.quick("approve", phase, "--json")
    assert (answer.code, answer.error["code"], answer.error["hint"]) == (3, "phase.not-found", "idumb roadmap")


def test_an_approval_is_consent_for_a_guided_plan(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")])
    approve(project)
    assert run(project).code == 0
    assert project.quick("verify-work", "1", "--json").code == 0


def test_a_guided_plan_with_a_void_approval_asks_again(project: Project) -> None:
    project.plan([task("T1-01", files="create `a.txt`", check=f"sh {CHECK}", steps=(write("a.txt", "x"),))])
    approve(project)
    project.repo.write(CHECK, "true\n")
    refused(run(project), "consent.missing")


def test_text_output_has_the_same_content_as_json(project: Project) -> None:
    answer = project.quick("approve", "1", *project.answers(), "--hash", contract(project), "--expires", "2030-01-31")
    assert answer.code == 0
    assert f"commands use {CHECK}" in answer.out
    assert "until 2030-01-31T00:00:00" in answer.out
    assert "Next: idumb execute-phase 1" in answer.out
    assert "1 approval withdrawn" in project.quick("approve", "1", "--revoke").out


OTHERS = """
bindings: {thinker: {adapter: claude, environment: [OTHER_KEY]}}
roles: {planner: {binding: thinker}, debugger: {binding: thinker, model: big}}
"""


def test_an_approval_stays_valid_if_roles_outside_the_run_are_bound(project: Project) -> None:
    """R-LOCK-4: they need their own consent; a role that is called at the end of a run voids it."""
    project.plan([strict_task("T1-01", "a.txt")], head=STRICT)
    approve(project)
    project.configure(OTHERS)
    before = contract(project)
    project.configure(OTHERS.replace("planner", "skeptic"))
    assert refused(run(project), "approval.void")["changed"] == ["configuration"]
    assert contract(project) != before
    project.configure(OTHERS)
    assert run(project).code == 0


def test_binding_another_role_does_not_stop_a_run_but_changing_its_settings_does(project: Project) -> None:
    """R-LOCK-4, R-LOG-7."""
    project.plan([making("T1-01", "a.txt"), task("T1-02", check="test -e go", after="T1-01", steps=[shell("true")])])
    assert project.execute().code == 1
    project.repo.write("go", "")
    project.repo.commit("go")
    project.configure("protected: [x]\n")
    assert project.json("resume", "1", "--retry-failed").error["code"] == "run.contract-changed"
    project.configure(OTHERS)
    assert project.json("resume", "1", "--retry-failed").code == 0


# The lock while a run goes on


CHANGES_WHILE_RUNNING = {
    "a plan": ("printf ' ' >> .planning/phases/1/01-PLAN.md", "lock.plan-changed", [".planning/phases/1/01-PLAN.md"]),
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
}


def _changing(project: Project, command: str, *, head: str = "") -> None:
    """A plan of two tasks, and a change of a locked file right after the first commit."""
    fields = FIELDS if head else ""
    project.plan(
        [making("T1-01", "a.txt", fields=fields), making("T1-02", "b.txt", after="T1-01", fields=fields)], head=head
    )
    hook = project.folder / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{command}\n")
    hook.chmod(0o755)


@pytest.mark.parametrize("mode", ["guided", "strict"])
@pytest.mark.parametrize("what", CHANGES_WHILE_RUNNING)
def test_the_lock_is_checked_before_every_task(project: Project, what: str, mode: str) -> None:
    """R-LOCK-4: the run stops before the next task and names what changed."""
    command, code, changed = CHANGES_WHILE_RUNNING[what]
    _changing(project, command, head=STRICT if mode == "strict" else "")
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
    refused(run(project), "lock.plan-changed")
    place.write_bytes(text)
    answer = project.quick("resume", "1", "--json")
    assert answer.code == 0, answer
    assert project.read("b.txt") == "made\n"


def test_a_changed_file_of_a_command_stops_a_strict_run(project: Project) -> None:
    """R-LOCK-4."""
    _changing(project, f"printf ' ' >> {CHECK}", head=STRICT)
    place = project.folder / ".planning/phases/1/01-PLAN.md"
    place.write_text(place.read_text().replace("`test -s b.txt`", f"`sh {CHECK}`"))
    approve(project)
    details = refused(run(project), "approval.void")
    assert details["changed"] == ["files"]
    assert not project.exists("b.txt")


def run_and_revoke(project: Project, folder: Path) -> Answer:
    """Run the phase while a user at another terminal revokes the approval after the first commit."""
    asked, done = folder / "asked", folder / "done"
    os.mkfifo(asked)
    os.mkfifo(done)
    hook = project.folder / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\nrm -- "$0"\n: > {shlex.quote(str(asked))}\ncat {shlex.quote(str(done))}\n')
    hook.chmod(0o755)
    with project.started("execute-phase", "1", "--json") as process:
        asked.read_bytes()
        taken_back = project.quick("approve", "1", "--revoke", "--json")
        done.write_bytes(b"")
        out, err = process.communicate(timeout=60)
    assert taken_back.code == 0, taken_back
    return Answer(process.returncode, out, err)


def test_a_revoked_approval_stops_a_strict_run_before_its_next_task(project: Project, tmp_path: Path) -> None:
    """R-LOCK-4."""
    _changing(project, "true", head=STRICT)
    approve(project)
    refused(run_and_revoke(project, tmp_path), "approval.revoked")
    assert not project.exists("b.txt")


def test_the_executed_plan_bytes_are_kept_with_the_run(project: Project) -> None:
    """R-LOCK-4: the executed plan can be shown even if the file changed."""
    approve(project)
    assert run(project).code == 0
    place = ".planning/phases/1/01-PLAN.md"
    kept = [line for line in project.repo.git("for-each-ref", "--format=%(refname)").split() if line.endswith("/plans")]
    assert project.repo.git("rev-parse", f"{kept[0]}:01-PLAN.md") == project.repo.git("hash-object", place)


# Tasks that cannot be taken back


def _irreversible(project: Project, *, head: str = "") -> None:
    fields = FIELDS if head else ""
    last = task(
        "T1-02", files="create `b.txt`", check="test -s b.txt", after="T1-01",
        steps=(write("b.txt", "x"), shell("echo told >> outside.log")),
        fields=f"{fields}- **Rollback:** irreversible: it tells the world\n",
    )  # fmt: skip
    project.plan([making("T1-01", "a.txt", fields=fields), last], head=head)


@pytest.mark.parametrize("head", ["", STRICT], ids=["guided", "strict"])
def test_an_irreversible_task_runs_only_if_that_task_was_accepted(project: Project, head: str) -> None:
    """R-LOCK-9, R-GIT-4."""
    _irreversible(project, head=head)
    answer = approve(project)
    assert any("T1-02" in warning for warning in answer.object["warnings"])
    details = refused(run(project, "--approve", contract(project)), "irreversible.not-accepted")
    assert details["tasks"] == ["T1-02"]
    assert details["choices"][0]["command"].endswith("--accept-irreversible T1-02")
    assert not project.exists("a.txt")
    approve(project, "--accept-irreversible", "T1-02")
    assert run(project).code == 0
    assert project.read("outside.log") == "told\n"


def test_accepting_one_irreversible_task_accepts_no_other(project: Project) -> None:
    """R-LOCK-9."""
    effect = "- **Rollback:** irreversible: it tells the world\n"
    project.plan([making("T1-01", "a.txt", fields=effect), making("T1-02", "b.txt", fields=effect)])
    approve(project, "--accept-irreversible", "T1-02")
    details = refused(run(project, "--approve", contract(project)), "irreversible.not-accepted")
    assert details["tasks"] == ["T1-01"]
    assert not project.exists("b.txt")


def test_the_acceptance_of_an_irreversible_task_expires_with_its_approval(project: Project) -> None:
    """R-LOCK-9."""
    _irreversible(project)
    approve(project, "--accept-irreversible", "T1-02")
    project.configure("run: {max_attempts: 2}\n")
    refused(run(project, "--approve", contract(project)), "irreversible.not-accepted")


def test_only_irreversible_tasks_can_be_accepted_and_only_by_name(project: Project) -> None:
    """R-LOCK-9."""
    _irreversible(project)
    for name in ("T1-01", "T1-09", "all"):
        answer = project.quick(
            "approve", "1", *project.answers(), "--hash", contract(project), "--accept-irreversible", name, "--json"
        )
        assert (answer.code, answer.error["code"]) == (3, "approval.not-irreversible")
        assert "T1-02" in answer.error["message"]


def test_a_completed_irreversible_task_needs_no_acceptance(project: Project) -> None:
    _irreversible(project)
    approve(project, "--accept-irreversible", "T1-02")
    assert run(project).code == 0
    project.quick("approve", "1", "--revoke", "--json")
    assert project.quick("resume", "1", "--approve", contract(project), "--json").code == 0


@pytest.mark.parametrize(("typed", "code"), [("yes", 0), ("", 4)])
def test_a_guided_run_asks_about_each_irreversible_task_at_the_terminal(
    project: Project, typed: str, code: int
) -> None:
    """R-LOCK-9, R-ASK-2."""
    _irreversible(project)
    ended, said = at_terminal(project, ("execute-phase", "1"), "run", typed)
    assert ended == code, said
    assert "it tells the world" in said
    assert project.exists("outside.log") == (code == 0)


# Signed approvals


@pytest.fixture
def key(tmp_path: Path) -> Path:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh-keygen")
    return make_key(tmp_path / "key")


def _clone(project: Project, tmp_path: Path) -> Project:
    """The same project in a fresh clone, as on an unattended machine."""
    there = GitSandbox(tmp_path / "there")
    project.repo.git("clone", "--quiet", str(project.folder), str(there.root))
    for name, value in (("user.name", "CI"), ("user.email", "ci@example.invalid")):
        there.git("config", name, value)
    return Project(there, there.root)


def test_a_signed_approval_is_valid_in_another_clone(project: Project, tmp_path: Path, key: Path) -> None:
    """R-LOCK-3: a signature, if any, is verified."""
    file = tmp_path / "approval.json"
    found = approve(project, "--sign", str(key), "--file", str(file)).data
    assert (found["signed"], found["file"]) == (True, str(file))
    there = _clone(project, tmp_path)
    refused(run(there), "approval.missing")
    refused(run(there, "--approval", str(file)), "approval.no-signers")
    allow(key)
    answer = run(there, "--approval", str(file))
    assert answer.code == 0, answer


@pytest.mark.parametrize("field", ["accepted", "expires", "by", "contract_hash"])
def test_a_signed_approval_with_one_field_changed_is_refused(
    project: Project, tmp_path: Path, key: Path, field: str
) -> None:
    """R-LOCK-3."""
    file = tmp_path / "approval.json"
    approve(project, "--sign", str(key), "--file", str(file), "--expires", "1d")
    allow(key)
    known = json.loads(file.read_text())
    known["approval"][field] = {"accepted": ["T1-01"], "expires": None, "by": "x", "contract_hash": "0" * 64}[field]
    file.write_text(json.dumps(known))
    refused(run(_clone(project, tmp_path), "--approval", str(file)), "approval.bad-signature")


def test_a_signed_approval_by_an_unknown_signer_is_refused(project: Project, tmp_path: Path, key: Path) -> None:
    """R-LOCK-3."""
    file = tmp_path / "approval.json"
    approve(project, "--sign", str(key), "--file", str(file))
    allow(make_key(tmp_path / "other"))
    refused(run(_clone(project, tmp_path), "--approval", str(file)), "approval.bad-signature")
    refused(run(project), "approval.bad-signature")  # the kept one is verified too


def test_a_signed_approval_of_other_bytes_or_of_another_history_is_void(
    project: Project, tmp_path: Path, key: Path
) -> None:
    """R-LOCK-4."""
    file = tmp_path / "approval.json"
    allow(key)
    approve(project, "--sign", str(key), "--file", str(file))
    there = _clone(project, tmp_path)
    there.repo.write(CHECK, "true\n")
    assert refused(run(there, "--approval", str(file)), "approval.void")["changed"] == ["files"]
    there.repo.git("checkout", "--quiet", "--", CHECK)
    there.repo.git("checkout", "--quiet", "--orphan", "fresh")
    there.repo.git("commit", "--quiet", "-m", "fresh")
    assert "another history" in refused(run(there, "--approval", str(file)), "approval.void")["why"]


def test_a_signed_approval_revoked_here_stays_revoked(project: Project, tmp_path: Path, key: Path) -> None:
    """R-LOCK-4: importing the file again does not undo the revocation."""
    file = tmp_path / "approval.json"
    allow(key)
    approve(project, "--sign", str(key), "--file", str(file))
    assert project.quick("approve", "1", "--revoke", "--json").code == 0
    refused(run(project, "--approval", str(file)), "approval.revoked")


def test_an_unsigned_file_and_an_invalid_key_are_refused(project: Project, tmp_path: Path) -> None:
    answer = project.quick("approve", "1", "--file", str(tmp_path / "x"), "--json")
    assert (answer.code, answer.error["code"]) == (2, "usage")
    signing = (
        "approve",
        "1",
        *project.answers(),
        "--hash",
        contract(project),
        "--sign",
        str(tmp_path / "none"),
        "--json",
    )
    refused(project.quick(*signing), "approval.not-signed")
    refused(run(project), "approval.missing")
    missing = run(project, "--approval", os.devnull)
    assert (missing.code, missing.error["code"]) == (3, "approval.unreadable")
    both = project.quick("approve", "1", "--revoke", "--hash", "0" * 64, "--json")
    assert both.code == 2


OPEN = "- **Notes:** Its colours are TBD\n"


@pytest.fixture
def worded(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A strict phase with vague words, approved before any check reported them."""
    tasks = [strict_task("T1-01", "a.txt", fields=OPEN), strict_task("T1-02", "b.txt", after="T1-01")]
    project.plan(tasks, head=STRICT)
    assert project.quick("check-plan", "1", "--json").code == 3
    with monkeypatch.context() as before:
        before.setattr(ambiguity, "PHRASES", ())
        approve(project)
    return project


def test_an_approved_plan_keeps_running_if_a_later_version_would_refuse_its_wording(worded: Project) -> None:
    """R-LOCK-4, R-LOCK-7."""
    checked = worded.quick("check-plan", "1", "--json")
    assert checked.code == 0
    assert [(f["code"], f["severity"]) for f in checked.data["findings"]] == [("text.placeholder", "warning")]
    assert run(worded).code == 0


def test_a_revoked_approval_does_not_exempt_the_plan_s_wording(worded: Project) -> None:
    """R-LOCK-7."""
    assert worded.quick("approve", "1", "--revoke", "--json").code == 0
    assert worded.quick("check-plan", "1", "--json").code == 3
    assert worded.quick("approve", "1", "--hash", "0" * 64, "--json").code == 3


def test_a_started_strict_run_keeps_its_wording_and_an_amendment_may_add_no_ambiguous_one(worded: Project) -> None:
    """R-LOCK-7, R-LOCK-8."""
    (worded.folder / "b.txt").mkdir()
    assert run(worded).code != 0
    assert worded.quick("approve", "1", "--revoke", "--json").code == 0
    assert worded.quick("check-plan", "1", "--json").code == 0
    plan = worded.folder / ".planning/phases/1/01-PLAN.md"
    text = plan.read_text(encoding="utf-8")
    plan.write_text(text + "\n" + strict_task("T1-03", "c.txt"), encoding="utf-8")
    assert worded.quick("check-plan", "1", "--json").code == 0
    plan.write_text(text + "\n" + strict_task("T1-03", "c.txt", fields=OPEN), encoding="utf-8")
    checked = worded.quick("check-plan", "1", "--json")
    assert checked.code == 3
    assert [(f["severity"], "T1-03" in f["message"]) for f in checked.data["findings"]] == [
        ("warning", False),
        ("error", True),
    ]


def test_what_approve_shows_has_the_warnings(project: Project) -> None:
    """R-ASK-1, R-LOCK-1."""
    project.plan([strict_task("T1-01", "a.txt", fields="- **Estimate:** 3h\n")], head=STRICT)
    details = refused(project.quick("approve", "1", "--json"), "approval.not-given")
    assert [line for line in details["evidence"] if line.startswith("warning ")] == [
        "warning .planning/phases/1/01-PLAN.md:25: T1-01 is estimated at 3 hours."
    ]


def open_questions(project: Project) -> list[str]:
    return [one["id"] for one in project.quick("check-plan", "1", "--json").data["open_questions"]]


def test_a_strict_plan_needs_an_answer_to_each_unjudged_question(project: Project) -> None:
    """R-LOCK-6, R-ASK-1."""
    asked = open_questions(project)
    assert asked == ["interfaces", "invariants", "design"]
    given = ("approve", "1", "--hash", contract(project))
    for some in ((), ("--answer", "design=yes")):
        details = refused(project.quick(*given, *some, "--json"), "approval.unanswered")
        assert [one["id"] for one in details["questions"]] == [one for one in asked if not (some and one == "design")]
    refused(run(project), "approval.missing")
    command = shlex.split(details["choices"][0]["command"])[1:]
    found = project.quick(*command, "--json")
    assert found.code == 0, found
    assert [(one["question"], one["answer"]) for one in found.data["answers"]] == [
        ("design", "yes"),
        ("interfaces", "yes"),
        ("invariants", "yes"),
    ]
    assert {one["by"] for one in found.data["answers"]} == {found.data["by"]}
    assert run(project).code == 0


def test_answering_no_to_a_self_check_question_approves_nothing(project: Project) -> None:
    """R-LOCK-6."""
    flags = ("--answer", "interfaces,invariants=yes", "--answer", "design=no", "--json")
    details = refused(project.quick("approve", "1", "--hash", contract(project), *flags), "approval.answered-no")
    assert details["evidence"] == ["design: Is the quality of the design acceptable? no"]
    refused(run(project), "approval.missing")


def test_an_answer_to_a_question_that_is_not_open_is_bad_input(project: Project) -> None:
    """R-LOCK-6."""
    given = ("approve", "1", "--hash", contract(project), "--json", "--answer")
    answer = project.quick(*given, "rollback=yes")
    assert (answer.code, answer.error["code"]) == (3, "approval.unknown-question")
    assert project.quick(*given, "design=maybe").code == 2


def test_an_unstated_requirement_is_answered_by_its_id(project: Project) -> None:
    """R-LOCK-6."""
    project.plan([strict_task("T1-01", "a.txt")], head=STRICT.replace("{REQ-1: files}", "[REQ-1]"))
    assert open_questions(project)[-1] == "REQ-1"
    assert "REQ-1" in [one["question"] for one in approve(project).data["answers"]]
    assert run(project).code == 0


def test_at_a_terminal_the_question_shows_what_yes_means_and_records_who_answered(project: Project) -> None:
    """R-LOCK-6."""
    ended, said = at_terminal(project, ("approve", "1"), "yes")
    assert ended == 0, said
    assert "you answer yes to design: Is the quality of the design acceptable?" in said
    assert run(project).code == 0


def test_the_question_for_consent_lists_what_is_not_judged(project: Project) -> None:
    """R-LOCK-6."""
    project.plan([making("T1-01", "a.txt", fields="- **Estimate:** 3h\n")])
    shown = refused(run(project), "consent.missing")["evidence"]
    assert any(line.startswith("not judged by idumb: ") and "design" in line for line in shown)
    assert [line for line in shown if line.startswith("warning ")] == [
        "warning .planning/phases/1/01-PLAN.md:19: T1-01 is estimated at 3 hours."
    ]


def test_approving_again_without_the_task_withdraws_its_acceptance(project: Project) -> None:
    """R-LOCK-9."""
    project.plan(
        [strict_task("T1-01", "a.txt", fields="- **Rollback:** irreversible: it mails everybody\n")], head=STRICT
    )
    approve(project, "--accept-irreversible", "T1-01")
    found = approve(project).data
    assert found["no_longer_accepted"] == ["T1-01"]
    assert "this approval ends the acceptance of T1-01" in found["shown"]
    refused(run(project), "irreversible.not-accepted")
    assert approve(project, "--accept-irreversible", "T1-01").data["no_longer_accepted"] == []
    assert run(project).code == 0
