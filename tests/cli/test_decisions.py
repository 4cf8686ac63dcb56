"""Questions and answers: each answer is in the plan or given when that is safe, and each choice can succeed."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from idumb.domain.errors import Interrupted
from idumb.git.trees import GitTrees
from tests.support import choices, seed
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.approvals import approve
from tests.support.gitrepo import GitSandbox
from tests.support.plans import PLAN, edit, run, run_id, versions
from tests.support.prepared import Prepared, prepared_project
from tests.support.project import Project, making, shell, task, write

JUDGED = "  - [ ] there — check: `test -s a.txt`\n  - [ ] it is *liked* — human\n"
QUESTION = "T1-01.AC-2.1"


def _waiting(sandbox: GitSandbox) -> Project:
    """T1-01 waits for a person's judgement."""
    project = projects.create(sandbox)
    second = task("T1-02", after="T1-01", steps=[shell("true")])
    project.plan([making("T1-01", "a.txt", criteria=JUDGED), second])
    assert run(project).code == 5
    return project


waiting = prepared_project(_waiting)


def decide(project: Project, *arguments: str) -> Answer:
    return project.quick("decide", *arguments, "--json")


def refused(answer: Answer, code: str, exit_code: int = 4) -> None:
    assert (answer.code, answer.error["code"]) == (exit_code, code), answer


def test_an_answer_is_appended_to_the_plan_and_the_run_continues_under_the_next_version(waiting: Project) -> None:
    """R-ASK-2, R-ASK-3, R-PLAN-12."""
    before, number = waiting.read(PLAN), run_id(waiting)
    answer = decide(waiting, QUESTION, "yes", "--guidance", "# <b>fine</b> - [ ] T1-09")
    assert answer.data["version"] == 2
    who = waiting.quick("log", "1", "--kind", "decision.answered", "--json").data["events"][-1]["payload"]["by"]
    assert waiting.read(PLAN) == (
        f"{before}\n## Decisions\n\n- **{QUESTION}**: yes, says {who}, to: T1-01 AC-2: it is \\*liked\\*"
        " (\\# \\<b\\>fine\\</b\\> - \\[ \\] T1-09)\n"
    )
    assert versions(waiting)[0]["answers"] == [QUESTION]
    ended = waiting.resume("--no-verify")
    assert (ended.code, ended.data["run"]) == (0, number), ended
    assert waiting.repo.git("status", "--porcelain") == ""
    assert len(versions(waiting)) == 1


def test_reports_have_what_holds_after_an_answer_and_a_commit_of_the_user(waiting: Project) -> None:
    """R-RUN-3: not the wait for the answer, and not the result on the tree before the user's commit."""
    waiting.repo.write("README.md", "other\n")
    waiting.repo.git("commit", "-qam", "mine")
    assert decide(waiting, QUESTION, "yes").code == 0
    assert waiting.resume("--no-verify").code == 0
    checkpoint = waiting.read(".idumb/brain/execution/1/checkpoint-T1-01.md")
    assert [checkpoint.count(f"\n| AC-{number}: ") for number in (1, 2)] == [1, 1]
    assert "waits for a person" not in checkpoint
    assert "| 2 passed |" in waiting.read(".planning/phases/1/1-SUMMARY.md")


def test_an_answer_is_appended_later_if_the_plan_is_being_edited(waiting: Project) -> None:
    """R-ASK-3."""
    edit(waiting, "T1-02: Task T1-02", "T1-02: Mine")
    edited = waiting.read(PLAN)
    assert decide(waiting, QUESTION, "yes").data["version"] is None
    assert waiting.read(PLAN) == edited
    edit(waiting, "T1-02: Mine", "T1-02: Task T1-02")
    assert waiting.resume("--no-verify").code == 0
    assert f"- **{QUESTION}**: yes" in waiting.read(PLAN)


def test_a_question_that_nothing_waits_for_any_more_is_not_answered(waiting: Project) -> None:
    """R-ASK-1: after a rollback the task asks anew."""
    assert waiting.quick("rollback", "1", "--to", "start", "--yes").code == 0
    refused(decide(waiting, QUESTION, "yes"), "decision.void")
    assert waiting.resume("--no-verify").code == 5
    refused(decide(waiting, QUESTION, "yes"), "decision.void")
    assert decide(waiting, "T1-01.AC-2.2", "yes").code == 0


@pytest.mark.parametrize("command", seed.one_on_a_push(["resume", "execute-phase"], "what follows a kill"))
def test_an_answer_that_a_kill_left_in_the_plan_counts_and_is_not_written_a_second_time(
    waiting: Project, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """R-ASK-3: the run goes on; a new one would ask again."""
    with monkeypatch.context() as patched:
        patched.setattr(GitTrees, "force", Mock(side_effect=Interrupted(15)))
        assert decide(waiting, QUESTION, "yes").code == 143
    assert versions(waiting) == []
    assert waiting.json("status").data["next"]["command"] == "idumb resume 1"
    assert waiting.quick(command, "1", "--no-verify").code == 0
    assert waiting.read(PLAN).count(f"**{QUESTION}**") == 1
    assert [version["version"] for version in versions(waiting)] == [2]


def test_unsaved_edits_of_the_user_are_not_locked_with_an_answer(
    waiting: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ASK-3: saved in the very moment, even what changes no task stays theirs."""
    from idumb.app.contract import contract_versions

    inner = contract_versions._append

    def saved_meanwhile(*arguments: Any) -> Any:
        edit(waiting, "# Phase 1", "# Phase one")
        return inner(*arguments)

    monkeypatch.setattr(contract_versions, "_append", saved_meanwhile)
    assert decide(waiting, QUESTION, "yes").data["version"] is None
    assert versions(waiting) == []
    assert "## Decisions" not in waiting.read(PLAN)


def _approved(sandbox: GitSandbox) -> Project:
    """T1-01 waits for a judgement, under an approval that expires."""
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt", criteria=JUDGED)])
    approve(project, "--expires", "90m")
    assert project.quick("execute-phase", "1", "--json").code == 5
    return project


@pytest.mark.nightly
def test_an_answer_stays_only_in_the_record_if_consent_cannot_follow_it(prepared: Prepared) -> None:
    """R-ASK-3, R-LOCK-4."""
    project = prepared.get(_approved)
    assert project.quick("approve", "1", "--revoke", "--json").code == 0
    before = project.read(PLAN)
    assert decide(project, QUESTION, "yes").data["version"] is None
    assert project.read(PLAN) == before
    refused(project.quick("resume", "1", "--json"), "consent.missing", 5)


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "# A project\n", ".env": "A=1\n"})


def given(answer: Answer) -> list[dict[str, Any]]:
    return list(answer.error["details"]["choices"])


def offered(answer: Answer) -> list[str]:
    return [row["id"] for row in given(answer)]


@pytest.mark.parametrize(
    ("path", "ways"),
    seed.one_on_a_push(
        [
            (PLAN, ["look", "leave-out", "retry"]),
            (".env", ["look", "amend", "leave-out", "retry"]),
            ("stray.txt", ["look", "amend", "keep", "leave-out", "retry"]),
        ],
        "a changed path",
    ),
)
def test_after_a_task_changed_its_plan_or_a_protected_path(project: Project, path: str, ways: list[str]) -> None:
    """R-ASK-1, R-LOCK-5, R-RUN-7: no choice allows a forbidden write."""
    steps = [write("a.txt", "made\n"), shell(f"echo '# x' >> {path}")]
    project.plan([making("T1-01", "a.txt", steps=steps)])
    failed = project.execute("--on-deviation", "stop")
    assert (failed.code, failed.error["code"], offered(failed)) == (1, "run.halted", ways)
    assert project.json("decisions").data["decisions"] == []
    assert choices.refused(project, failed) == {}
    again = project.resume()
    assert given(again) == given(failed) or choices.refused(project, again) == {}
