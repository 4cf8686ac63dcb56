"""A task without attempts left asks how to continue, independent tasks continue, and answers are applied."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from idumb.cli import opened_services
from idumb.domain.action import Answer as UserAnswer
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import PLAN, run
from tests.support.prepared import Prepared, prepared_project
from tests.support.project import Project, making, shell, task

QUESTION = "T1-02.exhausted.3"
CHOICES = ["retry", "accept", "skip", "roll-back"]


def _exhausted(sandbox: GitSandbox) -> Project:
    """T1-02 left a file that its check does not accept, and T1-04 needs it."""
    project = projects.create(sandbox)
    wrong = task("T1-02", files="create `b.txt`", check="grep -q right b.txt", steps=[shell("echo w > b.txt")])
    project.plan([making("T1-01", "a.txt"), wrong, making("T1-03", "c.txt"), making("T1-04", "d.txt", after="T1-02")])
    ended = run(project)
    assert (ended.code, ended.error["details"]["decisions"]) == (1, [QUESTION])
    return project


project = prepared_project(_exhausted)


def decisions(project: Project) -> list[str]:
    return [str(row["id"]) for row in project.quick("decisions", "--json").data["decisions"]]


def decide(project: Project, *words: str) -> Answer:
    return project.quick("decide", *words, "--json")


def letters(project: Project) -> list[str]:
    return [row["task"] for row in project.quick("dlq", "list", "--json").data["dead_letters"] if row["task"]]


def status(project: Project) -> dict[str, str]:
    return {str(k): str(v) for k, v in project.quick("graph", "1", "--json").data["status"].items()}


def test_after_the_last_attempt_a_decision_waits_and_independent_tasks_continue(project: Project) -> None:
    """R-RUN-5, R-ASK-1, R-ASK-2: the task has failed as before; the question names the consequence of each way.

    It is shown at the end of the run, of a resumed one too, and by `status`, `next` and `show`.
    """
    ended = project.quick("resume", "1", "--json")
    assert (ended.code, ended.error["code"], ended.data["outcome"]) == (1, "run.failed", "partial")
    assert ended.data["counts"] == {"completed": 2, "failed": 1, "blocked": 1}
    (row,) = project.quick("decisions", "--json").data["decisions"]
    assert (row["id"], row["kind"], row["task"], row["phase"]) == (QUESTION, "stopped", "T1-02", "1")
    assert row["what"] == "T1-02 Task T1-02 failed after 3 attempts"
    assert "$ grep -q right b.txt" in row["evidence"]
    assert [choice["id"] for choice in row["choices"]] == CHOICES
    assert all(choice["consequence"] and QUESTION in choice["command"] for choice in row["choices"])
    assert ended.error["details"]["decisions"] == [QUESTION]
    following = ended.data["next"]
    assert {"idumb decisions", "idumb resume 1 --retry-failed"} <= set(following)
    for word in ("accept", "skip"):
        assert any(command.startswith(f"idumb {word} T1-02 --why") for command in following)
    rows = {row["id"]: row for row in ended.data["tasks"]}
    assert (rows["T1-02"]["attempts"], rows["T1-04"]["blocked_by"]) == (3, ["T1-02"])
    failure = ended.data["failure"]
    assert {"status", "step_id", "tool", "error", "plan_hash", "audit_trail"} <= set(failure)
    assert (failure["status"], failure["step_id"][:5]) == ("failed", "T1-02")
    assert not project.exists("b.txt")  # only the tree that `show` names has it
    shown = project.quick("resume", "1")
    assert shown.code == 1
    assert f"idumb decide {QUESTION} retry --guidance TEXT" in shown.out
    assert QUESTION in project.quick("status").out
    assert project.quick("next", "--json").data["next"]["command"] == "idumb decisions"
    assert project.quick("next", "1", "--json").data["next"][0] == "idumb decisions"
    assert QUESTION in project.quick("show", "T1-02").out
    assert "Decide what to do about tasks that have no attempts left: `idumb decisions`" in project.read(
        ".planning/phases/1/1-SUMMARY.md"
    )
    assert decisions(project) == [QUESTION]  # to resume asks nothing again


def _echoed(sandbox: GitSandbox) -> Project:
    """The builder of T1-02 records its prompt beside the repository; its check passes only with the right guidance."""
    project = projects.create(sandbox)
    argv = '[sh, -c, "cat > b.txt; echo $IDUMB_ATTEMPT >> b.txt; cp b.txt $IDUMB_REPOSITORY/../told"]'
    project.configure(f"bindings:\n  echo: {{adapter: command, argv: {argv}}}\nrun: {{max_attempts: 1}}\n")
    check = "grep -q 'use [b]lue' b.txt"
    project.plan([task("T1-02", files="create `b.txt`", check=check, fields="- **Builder:** echo\n")])
    assert run(project, "--no-verify").code == 1
    return project


def test_retry_starts_a_new_attempt_with_the_guidance_in_its_prompt(prepared: Prepared) -> None:
    """R-RUN-5, R-ASK-2: and a failure asks again."""
    project = prepared.get(_echoed)
    (question,) = decisions(project)
    answer = decide(project, question, "retry", "--guidance", "use red")
    assert (answer.code, answer.data["next"]) == (0, ["idumb resume 1"])
    assert (decisions(project), letters(project)) == ([], [])
    assert f"{question}**: retry, says " in project.read(PLAN)  # R-ASK-3
    assert project.quick("resume", "1", "--no-verify", "--json").code == 1
    assert "says: use red" in project.read("../told")
    (again,) = decisions(project)
    assert int(again.rpartition(".")[2]) > int(question.rpartition(".")[2])
    assert letters(project) == ["T1-02"]


def test_a_question_about_a_failed_task_blocks_no_other_task_which_guidance_reaches(sandbox: GitSandbox) -> None:
    """R-RUN-5: `next` names the command that runs what can run; if no task is retried, the next one gets guidance."""
    project = projects.create(sandbox)
    binding = "bindings:\n  echo: {adapter: command, argv: [sh, -c, 'cat > b.txt']}\n"
    project.configure(f"{binding}run: {{halt_after: 1, max_attempts: 1}}\n")
    first = task("T1-01", check="false", steps=[shell("true")])
    check = "grep -q 'use [b]lue' b.txt"
    guided = task("T1-02", files="create `b.txt`", check=check, fields="- **Builder:** echo\n")
    project.plan([first, guided])
    halted = run(project)
    assert (halted.error["code"], "idumb rollback 1 --to start" in halted.data["next"]) == ("run.halted", True)
    assert decisions(project) == ["T1-01.exhausted.1"]
    following = project.quick("next", "--json").data["next"]
    assert (following["command"], "idumb decisions" in following["why"]) == ("idumb resume 1", True)
    assert project.quick("resume", "1", "--guidance", "use blue", "--json").code == 1
    assert status(project) == {"T1-01": "failed", "T1-02": "completed"}


def void(project: Project) -> None:
    """Question and dead letter are gone together, and the question cannot be answered any more."""
    assert QUESTION not in decisions(project)
    assert len(decisions(project)) == len(letters(project))
    refused = decide(project, QUESTION, "accept")
    assert (refused.code, refused.error["code"]) == (4, "decision.void"), refused


@pytest.mark.parametrize(
    "words", [("decide", QUESTION, "accept", "--guidance", "by hand"), ("accept", "t1-02", "--why", "by hand")], ids=str
)
def test_accept_commits_the_work_with_its_reason_and_unblocks_its_dependents(
    project: Project, words: tuple[str, ...]
) -> None:
    """R-ASK-2, R-RUN-5, R-RUN-14: accepted by a person, with a reason, in the record; by the answer or the command."""
    answer = project.quick(*words, "--json")
    assert answer.code == 0, answer
    assert status(project)["T1-02"] == "accepted"
    assert project.repo.git("show", "HEAD:b.txt") == "w"
    assert "Accepted: by hand" in project.repo.git("log", "-3", "--format=%B")
    assert (decisions(project), letters(project)) == ([], [])
    void(project)
    if words[0] == "decide":
        return
    assert project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert status(project)["T1-04"] == "completed"
    assert "by hand" in project.read(".planning/phases/1/1-SUMMARY.md")
    assert project.quick("accept", "T1-02", "--why", "again", "--json").error["code"] == "task.already-done"


def test_an_answer_at_the_terminal_is_carried_out(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ASK-1."""
    person = Mock(interactive=True, ask=lambda asked: UserAnswer(asked.id, "accept", "pat"))
    monkeypatch.setattr(opened_services, "_asker", lambda *_, **__: person)
    assert project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert [status(project)[id] for id in ("T1-02", "T1-04")] == ["accepted", "completed"]


def test_roll_back_reverts_the_task_and_those_after_it(project: Project) -> None:
    """R-ASK-2, R-GIT-3: earlier work stays, and undo restores the work with its question."""
    answer = decide(project, QUESTION, "roll-back")
    assert answer.code == 0, answer
    (answered,) = project.events("--kind", "decision.answered")
    assert (answer.data["result"]["to"], answered["payload"]["choice"]) == ("T1-01", "roll-back")
    assert [project.exists(path) for path in ("a.txt", "b.txt", "c.txt")] == [True, False, False]
    assert status(project)["T1-02"] == "ready"
    assert (decisions(project), letters(project)) == ([], [])
    assert project.quick(*project.undoing(), "--json").code == 0
    assert project.exists("c.txt")
    assert decisions(project) == [QUESTION]
