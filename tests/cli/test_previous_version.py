"""A repository and user state of an earlier version: everything works after the update."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from idumb.system.files import user_folders
from tests.fixtures.previous_version import make
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, user_bytes

NAMES = ("editor", "phases", "strict")
ANSWERED, FAILED = "T4-01.AC-2.1", "T3-01.exhausted.1"
LOOKS = (
    ("status",),
    ("next",),
    ("roadmap",),
    ("log", "1"),
    ("show", "T1-01"),
    ("graph", "1"),
    ("metrics", "1"),
    ("envelope", "show", "T1-01"),
    ("decisions",),
    ("handoff", "list"),
    ("handoff", "stats"),
    ("dlq", "list"),
    ("plan-diff", "1"),
    ("check-plan", "1"),
    ("audit", "verify"),
)
MACHINE = {"tools", "checks"}
"""Parts of an envelope that belong to the machine on which the archive was made."""


@pytest.fixture
def unpacked(home: Path, tmp_path: Path) -> dict[str, Project]:
    """The repositories by name, with the state of their user in this test's home."""
    folder = tmp_path / "unpacked"
    with tarfile.open(make.ARCHIVE) as archive:
        archive.extractall(folder, filter="tar")  # keeps the modes of folders; `data` does not
    (folder / "home/state").rename(home / "state")
    ids: dict[str, str] = json.loads((folder / "manifest.json").read_text())["ids"]
    for name, identity in ids.items():
        _keep_identity(home / "state/idumb", identity, folder / name)
    return {name: Project(GitSandbox(folder / name), folder / name) for name in ids}


def _keep_identity(state: Path, identity: str, root: Path) -> None:
    """Name the state of a repository after the folder where it is unpacked.

    Path, device and inode of its git folder identify a repository, and no archive can keep them. Nothing else changes.
    """
    now = user_folders.repository_id(str(root / ".git"))
    for kind in ("consent", "events"):
        (state / kind / identity).rename(state / kind / now)
    for record in (state / "consent" / now).iterdir():
        record.write_text(record.read_text().replace(identity, now))


@pytest.fixture
def phases(unpacked: dict[str, Project]) -> Project:
    return unpacked["phases"]


@pytest.fixture
def strict(unpacked: dict[str, Project]) -> Project:
    return unpacked["strict"]


@pytest.fixture
def editor(unpacked: dict[str, Project]) -> Project:
    return unpacked["editor"]


def _resume(project: Project) -> Answer:
    """Resume phase 1. If git or Python differs from the archive's machine, accept only that."""
    answer = project.resume()
    if not answer.object["ok"] and answer.error["code"] == "envelope.changed":
        assert set(answer.error["details"]["parts"]) <= MACHINE, answer
        answer = project.resume("--accept-changed", "envelope")
    return answer


def _quiet(answer: Answer) -> dict[str, Any]:
    """The data of an answer without warnings or other output."""
    assert (answer.code, answer.err, answer.object["warnings"]) == (0, "", []), answer
    return answer.data


def _examined(project: Project) -> dict[str, str]:
    checks = project.quick("doctor", "--json").data["checks"]
    return {str(check["code"]): str(check["state"]) for check in checks}


@pytest.mark.parametrize("name", NAMES)
def test_every_read_only_command_reads_it_and_changes_nothing(unpacked: dict[str, Project], name: str) -> None:
    project = unpacked[name]
    before = project.repo.ledger()
    for command in LOOKS:
        _quiet(project.quick(*command, "--json"))
        assert project.quick(*command).err == ""
    if name != "editor":
        assert _quiet(project.quick("diff", "T1-01", "--json"))
    assert user_bytes(before, project.repo.ledger()) == []
    assert project.repo.ledger().refs == before.refs


@pytest.mark.parametrize("name", NAMES)
def test_doctor_reports_the_same_as_for_a_fresh_repository(
    unpacked: dict[str, Project], name: str, tmp_path: Path
) -> None:
    fresh = projects.create(GitSandbox.create(tmp_path / "fresh"))
    fresh.plan([making("T1-01", "a.txt")])
    assert fresh.execute().code == 0
    expected = _examined(fresh) | ({"run.open": "warn"} if name == "editor" else {})
    assert _examined(unpacked[name]) == expected


def test_its_data_is_reported_as_by_the_earlier_version(phases: Project) -> None:
    status = {row["phase"]: row["state"] for row in phases.json("status").data["phases"]}
    assert status == {"1": "verified", "2": "halted", "3": "failed", "4": "halted"}
    assert phases.json("next").data["next"]["command"] == "idumb resume 2"
    assert [row["id"] for row in phases.json("decisions").data["decisions"]] == [FAILED, ANSWERED]
    parked = phases.json("dlq", "list").data["dead_letters"]
    assert [(row["kind"], row["task"], row["class"]) for row in parked] == [
        ("task", "T3-01", "permanent"),
        ("run", None, "permanent"),
    ]
    (passed_on,) = phases.json("handoff", "list").data["handoffs"]
    assert (passed_on["task"], passed_on["to_agent"], passed_on["handoff_type"]) == ("T1-01", "human", "escalation")
    shown = phases.json("show", "T1-01").data
    assert shown["status"] == "completed"
    _quiet(phases.json("audit", "verify"))
    assert [event["seq"] for event in phases.events()] == list(range(1, len(phases.events()) + 1))


def test_a_paused_strict_run_completes_under_its_existing_approval(strict: Project) -> None:
    """R-LOCK-4: builder and validator had bound templates; the answer to the earlier question counts."""
    make.answer_build(strict.folder, "T1-02", "b.txt")
    assert _resume(strict).code == 5
    make.answer_verdict(strict.folder, "T1-02", "b.txt")
    assert strict.resume().code == 5
    make.answer_verdict(strict.folder, "T1-03", "c.txt")
    ended = strict.resume()
    assert (ended.code, ended.data["outcome"], ended.data["verification"]["status"]) == (0, "complete", "passed")
    assert strict.statuses() == dict.fromkeys(("T1-01", "T1-02", "T1-03"), "completed")
    assert len(strict.events("--kind", "run.started")) == 1
    assert strict.read("b.txt") == "T1-02\n"
    _quiet(strict.json("audit", "verify"))


def test_an_answer_to_its_question_lets_the_run_complete(phases: Project) -> None:
    assert phases.json("decide", ANSWERED, "yes").code == 0
    assert phases.resume(phase="4").code == 0
    assert phases.statuses("4") == {"T4-01": "completed", "T4-02": "completed"}


def test_a_dead_letter_can_be_retried(phases: Project) -> None:
    phases.repo.write("ready", "")
    phases.repo.commit("ready")
    assert phases.json("dlq", "retry", "T3-01").code == 0
    assert phases.json("dlq", "list").data["dead_letters"] == []


def test_a_handoff_is_updated(phases: Project) -> None:
    (row,) = phases.json("handoff", "list").data["handoffs"]
    assert phases.json("handoff", "update", row["handoff_id"], "complete", "--why", "read").code == 0
    assert phases.json("handoff", "list").data["handoffs"][0]["status"] == "complete"


def test_work_on_its_open_attempt_can_be_submitted(editor: Project) -> None:
    submitted = editor.json("submit", "T1-01")
    assert (submitted.code, submitted.data["accepted"]) == (0, True)
    assert editor.json("start", "T1-02").code == 0
    editor.repo.write("b.txt", "b\n")
    assert editor.json("submit", "T1-02").data["ended"]["outcome"] == "complete"


def test_its_open_attempt_can_be_abandoned_and_the_work_is_kept(editor: Project) -> None:
    assert editor.json("give-up", "T1-01", "--why", "another way").code == 0
    assert not editor.exists("a.txt")
    assert editor.json("start", "T1-01").code == 0


def test_a_finished_phase_can_be_rolled_back_and_restored(phases: Project) -> None:
    assert phases.json("rollback", "1", "--to", "T1-01", "--yes").code == 0
    assert (phases.exists("a.txt"), phases.exists("b.txt")) == (True, False)
    assert phases.json("undo", "--yes").code == 0
    assert phases.read("b.txt") == "T1-02\n"
    assert phases.repo.status() == ["?? f.txt"]  # its task waits for a judgement
    _quiet(phases.json("audit", "verify"))


def test_its_rollback_can_be_undone(phases: Project) -> None:
    (operation,) = [e["operation"] for e in phases.events("2", "--kind", "rollback.completed")]
    assert not phases.exists("c.txt")
    assert phases.json("undo", "--operation", operation, "--yes").code == 0
    assert (phases.read("c.txt"), phases.read("d.txt")) == ("T2-01\n", "T2-02\n")


def test_a_rolled_back_run_runs_again_under_the_earlier_consent(phases: Project) -> None:
    assert phases.resume(phase="2").code == 0
    assert (phases.read("c.txt"), phases.read("d.txt")) == ("T2-01\n", "T2-02\n")


def test_a_new_phase_runs_next_to_the_existing_ones(phases: Project) -> None:
    before = phases.events()
    phases.plan([making("T5-01", "h.txt")], phase="5")
    assert phases.execute(phase="5").code == 0
    assert phases.events()[: len(before)] == before
    _quiet(phases.json("audit", "verify"))
