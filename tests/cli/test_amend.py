"""`idumb amend` and `check-plan --diff`: the user changes a locked plan, and the same run continues under it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from idumb.app.contract import contract_versions
from idumb.domain.errors import Interrupted
from idumb.git.trees import GitTrees
from tests.support import choices
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.approvals import FIELDS, STRICT, approve
from tests.support.gitrepo import GitSandbox
from tests.support.plans import FOURTH, PLAN, amend, edit, halted, run, run_id, versions
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, shell, task


def _halted(sandbox: GitSandbox) -> Project:
    return halted(projects.create(sandbox))


def _verified(sandbox: GitSandbox) -> Project:
    """A phase of one task that adds a line to a file."""
    project = projects.create(sandbox, files={"a.txt": "one\n"})
    project.plan([task("T1-01", files="modify `a.txt`", check="test -s a.txt", steps=[shell("echo x >> a.txt")])])
    assert run(project).code == 0
    return project


project = prepared_project(_halted)


verified = prepared_project(_verified)


def refused(answer: Answer, code: str, exit_code: int = 4) -> dict[str, Any]:
    assert (answer.code, answer.error["code"]) == (exit_code, code), answer
    return dict(answer.error["details"])


def task_file(project: Project, text: str) -> str:
    place = project.folder.parent / "task.md"
    place.write_text(text, encoding="utf-8")
    return str(place)


def test_an_added_task_comes_last_and_runs_in_the_same_run(project: Project) -> None:
    """R-LOCK-8."""
    before, run_before = project.read(PLAN), run_id(project)
    given = task_file(project, FOURTH)
    answer = amend(
        project, "--add-task", given, "--accept-deviation", "T1-02", "c.txt", "--why", "c is needed", "--yes"
    )
    assert answer.code == 0, answer
    assert (answer.data["version"], answer.data["run"]) == (2, run_before)
    after = project.read(PLAN)
    widened = before.replace("create `b.txt`", "create `b.txt`, create `c.txt`")
    text = widened.rstrip("\n")
    assert after == f"{text}\n\n{FOURTH.strip(chr(10))}{widened[len(text) :]}"
    ended = project.quick("resume", "1", "--json")
    assert (ended.code, ended.data["run"]) == (0, run_before), ended
    assert project.read("e.txt") == "made\n"
    assert project.repo.git("status", "--porcelain") == ""
    (version,) = versions(project)
    assert (version["from"], version["to"]) == (answer.data["from"], answer.data["contract_hash"])
    assert version["why"] == "c is needed"
    assert project.quick("audit", "verify", "--json").code == 0


def test_files_are_added_and_a_dependency_is_removed_in_place(project: Project) -> None:
    """R-LOCK-8, R-PLAN-1: every other byte of the plan stays."""
    before = project.read(PLAN)
    assert amend(project, "--widen", "T1-03", "modify a.txt", "--yes").code == 0
    assert amend(project, "--drop-dependency", "T1-03", "T1-02", "--yes").code == 0
    expected = before.replace("create `d.txt`", "create `d.txt`, modify `a.txt`").replace("T1-01, T1-02", "T1-01")
    assert project.read(PLAN) == expected
    assert [v["version"] for v in versions(project)] == [2, 3]


def test_a_decision_is_appended_and_changes_no_task(project: Project) -> None:
    """R-LOCK-8, R-ASK-3."""
    before = project.read(PLAN)
    answer = amend(project, "--decision", "# no *markup*\n- [ ] T1-09 and no task", "--yes")
    assert answer.data["reset"] == []
    assert versions(project)[0]["tasks"] is None
    assert project.read(PLAN) == (
        before + "\n## Decisions\n\n- **Decided**: \\# no \\*markup\\* - \\[ \\] T1-09 and no task\n"
    )


def test_completed_or_invalid_changes_are_refused_and_nothing_is_written(project: Project) -> None:
    """R-LOCK-8, R-GATE-6."""
    before = project.read(PLAN)
    for flags, code, exit_code in (
        (("--widen", "T1-01", "modify README.md"), "amend.done", 4),
        (("--drop-dependency", "T1-02", "T1-03"), "amend.no-dependency", 3),
        (("--widen", "T1-09", "modify README.md"), "task.unknown", 3),
        (("--widen", "T1-03", "README.md"), "amend.bad-claim", 3),
        (("--widen", "T1-03", "modify ../else"), "plan.invalid", 3),
        (("--accept-deviation", "T1-02", "README.md"), "amend.no-deviation", 3),
        (("--add-task", "no-such-file"), "file.unreadable", 3),
        (("--plan", "07", "--decision", "x"), "plan.unknown", 3),
        (("--from-file",), "amend.nothing", 4),
        ((), "amend.nothing", 3),
        (("--decision", ""), "usage", 2),
        (("--decision", "words", "--decision", " \n"), "usage", 2),
    ):
        refused(amend(project, *flags, "--yes"), code, exit_code)
    invalid = amend(project, "--widen", "T1-03", "modify ../else", "--yes").error
    commands = [choice["command"] for choice in invalid["details"]["choices"]]
    assert commands == ["idumb amend 1 --from-file"], "check-plan does not show the errors of what was not written"
    for text in (
        making("T1-03", "an-id-that-is-used.txt"),
        making("T1-04", "needs-what-is-not-there.txt", after="T1-09"),
        "no task at all\n",
    ):
        assert amend(project, "--add-task", task_file(project, text), "--yes").code == 3
    assert project.read(PLAN) == before
    assert versions(project) == []


def test_an_added_task_that_conflicts_with_completed_work_is_refused(project: Project) -> None:
    """R-PLAN-10: the added task would create a file that a completed task left."""
    text = making("T1-04", "a.txt", after="T1-03")
    before = project.read(PLAN)
    details = refused(amend(project, "--add-task", task_file(project, text), "--yes"), "amend.against-done")
    assert details["tasks"] == ["T1-04"]
    assert project.read(PLAN) == before
    (project.folder / PLAN).write_text(f"{before}\n{text}", encoding="utf-8")
    answer = amend(project, "--from-file", "--yes")
    refused(answer, "amend.against-done")
    assert answer.error["message"] == "T1-04 would create a.txt, which already exists because T1-01 is completed."
    assert versions(project) == []


def test_an_added_task_that_changes_completed_work_is_shown_with_that_task(project: Project) -> None:
    """R-PLAN-10."""
    text = task("T1-04", files="modify `a.txt`, create `e.txt`", check="true", after="T1-03", steps=[shell("true")])
    title = re.search(r"T1-01: (.+)", project.read(PLAN))
    assert title is not None
    text = re.sub(r"T1-04: .+", f"T1-04: {title[1].upper()}", text)
    given = task_file(project, text)
    words = "T1-04 would modify a.txt, which the completed task T1-01 produced"
    assert words in refused(amend(project, "--add-task", given), "amend.not-confirmed")["evidence"]
    answer = amend(project, "--add-task", given, "--yes")
    rows = [(row["task"], row["verb"], row["path"], row["of"]) for row in answer.data["completed_work"]]
    assert rows == [("T1-04", "repeat", None, "T1-01"), ("T1-04", "modify", "a.txt", "T1-01")]
    assert "T1-04 has the same title as T1-01, which is completed" in [
        row["words"] for row in answer.data["completed_work"]
    ]


def test_without_consent_the_difference_is_shown_and_its_hash_consents_to_it_alone(project: Project) -> None:
    """R-ASK-1, R-ASK-2, R-LOCK-8, R-GATE-6."""
    before = project.read(PLAN)
    details = refused(amend(project, "--widen", "T1-03", "create c.md"), "amend.not-confirmed")
    assert details["lines"] == ["T1-03: files + create c.md"]
    assert project.read(PLAN) == before
    refused(amend(project, "--widen", "T1-03", "create other.md", "--hash", details["contract_hash"]),
            "amend.other-contract")  # fmt: skip
    assert project.read(PLAN) == before
    answer = amend(project, "--widen", "T1-03", "create c.md", "--hash", details["contract_hash"])
    assert answer.data["contract_hash"] == details["contract_hash"]
    assert project.quick("check-plan", "1", "--json").data["contract_hash"] == details["contract_hash"]


def test_a_hand_edited_plan_stops_resume_and_each_choice_is_a_command(project: Project) -> None:
    """R-LOG-7, R-ASK-1."""
    before = project.read(PLAN)
    edit(project, "T1-03: Task T1-03", "T1-03: Another title")
    details = refused(project.quick("resume", "1", "--json"), "run.contract-changed")
    commands = {choice["id"]: choice["command"] for choice in details["choices"]}
    assert list(commands) == ["look", "amend", "put-back", "go-back", "start-fresh"]
    assert commands["go-back"] == "idumb rollback 1 --to T1-01"
    shown = project.quick(*commands["look"].split()[1:], "--json")
    assert shown.data["lines"] == ["T1-03: title: Task T1-03 -> Another title"]
    subprocess.run(commands["put-back"], shell=True, cwd=project.folder, check=True)
    assert project.read(PLAN) == before
    assert project.quick("check-plan", "1", "--diff", "--json").data["same"]
    assert project.quick("resume", "1", "--json").code == 5  # it goes on, and the task still waits for an answer


def test_a_changed_configuration_stops_resume_and_each_choice_is_accepted(project: Project) -> None:
    """R-LOG-7: continue, restore it, go back to the last checkpoint, start fresh."""
    project.configure("protected: [x]\n")
    answer = project.quick("resume", "1", "--json")
    details = refused(answer, "run.contract-changed")
    commands = {choice["id"]: choice["command"] for choice in details["choices"]}
    assert list(commands) == ["look", "amend", "put-back", "go-back", "start-fresh"]
    assert choices.refused(project, answer) == {}
    assert project.quick(*commands["go-back"].split()[1:], "--yes").code == 0


@pytest.mark.nightly
def test_nothing_leads_back_to_a_checkpoint_that_is_the_newest_work(verified: Project) -> None:
    """R-LOG-7."""
    edit(verified, "T1-01: Task T1-01", "T1-01: Another title")
    details = refused(verified.quick("resume", "1", "--json"), "run.contract-changed")
    assert [choice["id"] for choice in details["choices"]] == ["look", "put-back", "start-fresh"], "nor to an amendment"


def test_a_hand_edit_cannot_amend_completed_work_or_assumptions(project: Project) -> None:
    """R-LOCK-8."""
    for old, new, code in (
        ("T1-01: Task T1-01", "T1-01: Another title", "amend.done"),
        ("goal: Files are there\n", "goal: Files are there\nassumptions: [the sun shines]\n", "amend.assumptions"),
        ("create `a.txt`", "create `a.txt`, create `z.txt`", "amend.done"),
    ):
        edit(project, old, new)
        ways = refused(amend(project, "--from-file", "--yes"), code)["choices"]
        back = [row["command"] for row in ways if row["id"] == "back"]
        assert back == (["idumb rollback 1 --to start"] if code == "amend.done" else [])
        edit(project, new, old)
    assert versions(project) == []


def linked(project: Project) -> Path:
    """Replace the plan by a symbolic link; return its target."""
    place, real = project.folder / PLAN, project.folder / ".planning/the-plan.md"
    place.rename(real)
    place.symlink_to("../../the-plan.md")
    return real


def test_a_plan_that_is_a_link_stays_a_link_and_nothing_is_written(project: Project) -> None:
    """R-LOCK-8."""
    real = linked(project)
    before = real.read_bytes()
    answer = amend(project, "--widen", "T1-03", "create c.md", "--yes")
    details = refused(answer, "amend.link")
    assert (details["link"], details["leads_to"]) == (PLAN, ".planning/the-plan.md")
    assert all(details[name] in answer.error["message"] for name in ("link", "leads_to"))
    assert "--from-file" in answer.error["hint"]
    assert (project.folder / PLAN).is_symlink()
    assert real.read_bytes() == before
    assert versions(project) == []
    real.write_bytes(before.replace(b"create `d.txt`", b"create `d.txt`, create `c.md`"))
    assert amend(project, "--from-file", "--yes").code == 0
    assert (project.folder / PLAN).is_symlink()


def test_a_user_who_saves_the_plan_during_an_amendment_keeps_that_edit(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = contract_versions._write

    def saved_meanwhile(*arguments: Any) -> None:
        edit(project, "T1-03: Task T1-03", "T1-03: Mine")
        inner(*arguments)

    monkeypatch.setattr(contract_versions, "_write", saved_meanwhile)
    refused(amend(project, "--widen", "T1-03", "create c.md", "--yes"), "amend.changed-meanwhile")
    assert "T1-03: Mine" in project.read(PLAN)
    assert versions(project) == []


def test_an_amendment_killed_after_the_plan_was_written_is_taken_over_by_resume(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(GitTrees, "force", Mock(side_effect=Interrupted(15)))
        assert amend(project, "--widen", "T1-03", "create c.md", "--yes").code == 143
    assert versions(project) == []
    assert project.quick("resume", "1", "--json").error["code"] == "run.waiting"
    assert versions(project)[0]["version"] == 2


@pytest.mark.nightly
def test_undo_does_not_complete_a_task_whose_text_was_amended_since(verified: Project) -> None:
    assert verified.quick("rollback", "1", "--to", "start", "--yes").code == 0
    edit(verified, "T1-01: Task T1-01", "T1-01: Another title")
    assert amend(verified, "--from-file", "--yes").code == 0
    refused(verified.quick(*verified.undoing(), "--json"), "undo.amended")
    assert verified.resume("--no-verify").code == 0


def strict(project: Project) -> Project:
    """The first of two strict tasks is done, the second failed."""
    bad = [shell("echo b > b.txt; echo more >> a.txt")]
    tasks = [
        making("T1-01", "a.txt", fields=FIELDS),
        making("T1-02", "b.txt", after="T1-01", fields=FIELDS, steps=bad),
    ]
    project.plan(tasks, head=STRICT)
    approve(project)
    assert project.quick("execute-phase", "1", "--json").code == 1
    return project


def test_a_strict_plan_can_only_be_amended_as_approved(sandbox: GitSandbox) -> None:
    """R-LOCK-8, R-LOCK-4."""
    project = strict(projects.create(sandbox))
    refused(amend(project, "--widen", "T1-02", "modify a.txt", "--yes"), "amend.strict")
    edit(project, "create `b.txt`", "create `b.txt`, modify `a.txt`")
    assert project.quick("resume", "1", "--json").error["code"] == "run.contract-changed"
    before = project.quick("amend", "1", "--from-file", "--yes", "--json")
    assert (before.code, before.error["code"]) == (4, "approval.void")
    approve(project)
    answer = amend(project, "--from-file", "--yes")
    assert answer.data["version"] == 2
    assert answer.data["reset"] == ["T1-02"]
    assert not project.quick("check-plan", "1", "--json").data["consent"]  # it ends with the approval
    assert project.resume("--no-verify").code == 0
