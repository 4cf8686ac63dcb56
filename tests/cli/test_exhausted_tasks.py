"""A task without attempts left asks how to continue, independent tasks continue, and answers are applied."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from idumb.app.attempt import agent_client
from idumb.app.engine import task_failure
from tests.cli.test_caller_detection import CODE, mark
from tests.cli.test_repository_states import at_terminal
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import PLAN, edit, run, run_killed_before
from tests.support.project import Project, making, shell, task

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"
QUESTION = "T1-02.exhausted.3"
CHOICES = ["retry", "accept", "skip", "roll-back"]


def failing(path: str = "b.txt", **more: str) -> str:
    """T1-02 leaves a file that its check does not accept."""
    steps = [shell(f"echo w > {path}")]
    return task("T1-02", files=f"create `{path}`", check=f"grep -q right {path}", steps=steps, **more)


def planned(project: Project, second: str, *, head: str = "") -> Project:
    tasks = [making("T1-01", "a.txt"), second, making("T1-03", "c.txt"), making("T1-04", "d.txt", after="T1-02")]
    project.plan(tasks, head=head)
    return project


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = planned(projects.create(sandbox), failing())
    assert run(project).code == 1
    return project


def decisions(project: Project) -> list[str]:
    rows = project.quick("decisions", "--json").data["decisions"]
    for row in rows:
        jsonschema.Draft202012Validator(json.loads((SCHEMAS / "decision.json").read_text())).validate(row)
    return [str(row["id"]) for row in rows]


def decide(project: Project, *words: str) -> Answer:
    answer = project.quick("decide", *words, "--json")
    if answer.code == 0:
        jsonschema.Draft202012Validator(json.loads((SCHEMAS / "decide.json").read_text())).validate(answer.data)
    return answer


def letters(project: Project) -> list[str]:
    return [row["task"] for row in project.quick("dlq", "list", "--json").data["dead_letters"] if row["task"]]


def status(project: Project) -> dict[str, str]:
    return {str(k): str(v) for k, v in project.quick("graph", "1", "--json").data["status"].items()}


def test_after_the_last_attempt_a_decision_waits_and_independent_tasks_continue(sandbox: GitSandbox) -> None:
    """R-RUN-5, R-ASK-1: the task has failed as before; what follows is a question with the consequence of each way."""
    project = planned(projects.create(sandbox), failing())
    ended = run(project)
    assert (ended.code, ended.error["code"], ended.data["outcome"]) == (1, "run.failed", "partial")
    assert ended.data["counts"] == {"completed": 2, "failed": 1, "blocked": 1}
    (row,) = project.quick("decisions", "--json").data["decisions"]
    assert (row["id"], row["kind"], row["task"], row["phase"]) == (QUESTION, "exhausted", "T1-02", "1")
    assert row["what"] == "T1-02 Task T1-02 failed after 3 attempts"
    assert "$ grep -q right b.txt" in row["evidence"]
    assert [choice["id"] for choice in row["choices"]] == CHOICES
    assert all(choice["consequence"] and QUESTION in choice["command"] for choice in row["choices"])
    assert ended.error["details"]["decisions"] == [QUESTION]
    assert "idumb decisions" in ended.data["next"]


def test_the_question_is_shown_at_the_end_of_the_run_and_by_status_and_next(project: Project) -> None:
    """R-ASK-2."""
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


def test_a_question_about_a_failed_task_blocks_no_other_task(sandbox: GitSandbox) -> None:
    """R-RUN-5: `next` names the command that runs what can run."""
    project = projects.create(sandbox)
    project.configure("run: {halt_after: 1}\n")
    planned(project, failing())
    assert run(project).error["code"] == "run.halted"
    assert decisions(project) == [QUESTION]
    following = project.quick("next", "--json").data["next"]
    assert (following["command"], "idumb decisions" in following["why"]) == ("idumb resume 1", True)
    assert project.quick("resume", "1", "--json").code == 1
    assert status(project)["T1-03"] == "completed"


def echoing(sandbox: GitSandbox, *, fields: str = "") -> Project:
    """The builder of T1-02 records its prompt; its check passes only with the right guidance."""
    project = projects.create(sandbox)
    argv = '[sh, -c, "cat > b.txt; echo $IDUMB_ATTEMPT >> b.txt"]'
    project.configure(f"bindings:\n  echo: {{adapter: command, argv: {argv}}}\n")
    check = "grep -q 'use [b]lue' b.txt"
    return planned(project, task("T1-02", files="create `b.txt`", check=check, fields=f"- **Builder:** echo\n{fields}"))


def test_retry_starts_a_new_attempt_with_the_guidance_in_its_prompt(sandbox: GitSandbox) -> None:
    """R-RUN-5, R-ASK-2."""
    project = echoing(sandbox)
    assert run(project).code == 1
    (question,) = decisions(project)
    answer = decide(project, question, "retry", "--guidance", "use blue")
    assert (answer.code, answer.data["next"]) == (0, ["idumb resume 1"])
    assert (decisions(project), letters(project)) == ([], [])
    assert f"{question}**: retry, says " in project.read(PLAN)  # R-ASK-3
    ended = project.quick("resume", "1", "--json")
    assert ended.code == 0, ended
    assert "says: use blue" in project.read("b.txt")


def test_guidance_stays_in_the_prompts_until_the_task_is_completed(sandbox: GitSandbox) -> None:
    """R-RUN-5: it is not lost with the attempt that was given it."""
    project = echoing(sandbox)
    assert run(project).code == 1
    assert decide(project, decisions(project)[0], "retry", "--guidance", "use red").code == 0
    assert project.quick("resume", "1", "--json").code == 1
    assert "says: use red" in project.read("b.txt")
    (again,) = decisions(project)
    assert int(again.rpartition(".")[2]) > int(QUESTION.rpartition(".")[2])
    assert letters(project) == ["T1-02"]


@pytest.mark.parametrize("flags", [(), ("--retry-failed",)])
def test_resume_passes_guidance_to_the_following_attempts(sandbox: GitSandbox, flags: tuple[str, ...]) -> None:
    """R-RUN-5: for retried tasks; nothing is printed if no attempt follows."""
    project = echoing(sandbox)
    assert run(project).code == 1
    before = len(project.events())
    ended = project.quick("resume", "1", *flags, "--guidance", "use blue", "--json")
    if flags:
        assert ended.code == 0, ended
        return
    assert (ended.code, ended.error["code"]) == (4, "resume.no-attempt")
    assert ended.error["hint"] == "idumb resume 1 --retry-failed --guidance 'use blue'"
    assert len(project.events()) == before


def test_guidance_reaches_an_interrupted_task(sandbox: GitSandbox) -> None:
    """R-RUN-5, R-RUN-9: its next attempt gets the guidance."""
    project = echoing(sandbox)
    run_killed_before(project, agent_client.ask, "execute-phase", "1", "--approve", project.approval())
    project.quick("resume", "1", "--max-attempts", "1", "--guidance", "use blue", "--json")
    guided = [e["task"] for e in project.events("--kind", "task.guided")]
    assert guided == ["T1-01"]  # the steps of the first task were cut short, and nothing else is tried again


def test_guidance_to_a_task_with_undeclared_changes_reaches_its_next_attempt(sandbox: GitSandbox) -> None:
    """R-RUN-5: whatever the question was, after which it is tried again."""
    project = projects.create(sandbox)
    argv = "[sh, -c, 'cat > b.txt; grep -q blu[e] b.txt || touch stray.txt']"
    project.configure(f"bindings:\n  echo: {{adapter: command, argv: {argv}}}\n")
    project.plan([task("T1-01", files="create `b.txt`", check="test -s b.txt", fields="- **Builder:** echo\n")])
    assert run(project).code == 5
    (question,) = decisions(project)
    (project.folder / "stray.txt").unlink()
    assert decide(project, question, "retry", "--guidance", "use blue").code == 0
    assert project.quick("resume", "1", "--json").code == 0
    assert "says: use blue" in project.read("b.txt")


def test_guidance_reaches_a_task_without_attempts(sandbox: GitSandbox) -> None:
    """R-RUN-5: if no task is retried, the next one gets the guidance."""
    project = projects.create(sandbox)
    project.configure("bindings:\n  echo: {adapter: command, argv: [sh, -c, 'cat > b.txt']}\nrun: {halt_after: 1}\n")
    first = task("T1-01", check="false", steps=[shell("true")])
    guided_task = task(
        "T1-02", files="create `b.txt`", check="grep -q 'use [b]lue' b.txt", fields="- **Builder:** echo\n"
    )
    project.plan([first, guided_task])
    assert run(project, "--max-attempts", "1").error["code"] == "run.halted"
    assert project.quick("resume", "1", "--guidance", "use blue", "--json").code == 1
    assert status(project) == {"T1-01": "failed", "T1-02": "completed"}


def test_an_agent_cannot_give_guidance_in_a_person_s_name(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ASK-2."""
    mark(monkeypatch, project.folder)
    refused = project.quick("resume", "1", "--retry-failed", "--guidance", "pass", "--json")
    assert (refused.code, refused.error["code"]) == (4, CODE)


def test_accept_commits_the_work_and_unblocks_its_dependents(project: Project) -> None:
    """R-ASK-2: the answer is carried out by decide itself."""
    answer = decide(project, QUESTION, "accept", "--guidance", "by hand")
    assert (answer.code, answer.data["result"]["task"]["status"]) == (0, "accepted"), answer
    assert project.repo.git("show", "HEAD:b.txt") == "w"
    assert "Accepted: by hand" in project.repo.git("log", "-3", "--format=%B")
    assert (decisions(project), letters(project)) == ([], [])
    assert project.quick("resume", "1", "--json").code == 0
    assert status(project)["T1-04"] == "completed"


def test_skip_omits_the_task_and_its_dependents_stay_blocked(project: Project) -> None:
    """R-ASK-2."""
    answer = decide(project, QUESTION, "skip")
    assert (answer.code, answer.data["result"]["blocked"][0]["tasks"]) == (0, ["T1-04"]), answer
    assert status(project) == {"T1-01": "completed", "T1-02": "skipped", "T1-03": "completed", "T1-04": "blocked"}
    assert (decisions(project), letters(project)) == ([], [])
    assert f"answered skip to {QUESTION}" in project.quick("show", "T1-04").out


def test_roll_back_reverts_the_task_and_those_after_it(project: Project) -> None:
    """R-ASK-2, R-GIT-3: earlier work stays, and undo restores the work with its question."""
    answer = decide(project, QUESTION, "roll-back")
    assert answer.code == 0, answer
    assert answer.data["result"]["to"] == "T1-01"
    assert [project.exists(path) for path in ("a.txt", "b.txt", "c.txt")] == [True, False, False]
    assert status(project)["T1-02"] == "ready"
    assert (decisions(project), letters(project)) == ([], [])
    assert project.quick("undo", "--yes", "--json").code == 0
    assert project.exists("b.txt")
    assert decisions(project) == [QUESTION]


def test_the_log_shows_what_was_decided_in_words(project: Project) -> None:
    assert decide(project, QUESTION, "retry").code == 0
    shown = project.quick("log", "1", "--limit", "500").out
    assert f"answer to {QUESTION}: retry" in shown
    assert "['" not in shown


def test_a_refused_answer_leaves_the_question_open(project: Project) -> None:
    """R-ASK-2: a rollback over a user's change does nothing, and the answer is not recorded."""
    (project.folder / "b.txt").write_text("mine\n", encoding="utf-8")
    refused = decide(project, QUESTION, "roll-back")
    assert (refused.code, refused.error["code"]) == (4, "rollback.conflict")
    assert decisions(project) == [QUESTION]
    assert project.read("b.txt") == "mine\n"


@pytest.mark.parametrize(
    "words",
    [
        ("accept", "T1-02", "--why", "good"),
        ("skip", "T1-02", "--why", "no", "--yes"),
        ("rollback", "1", "--to", "T1-01", "--yes"),
        ("dlq", "remove", "T1-02", "--why", "known"),
        ("dlq", "retry", "T1-02"),
        ("resume", "1", "--retry-failed"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_any_command_on_the_task_settles_the_question(project: Project, words: tuple[str, ...]) -> None:
    """R-HAND-3, R-ASK-2: question and dead letter never contradict each other."""
    assert letters(project) == ["T1-02"]
    project.quick(*words, "--json")
    assert QUESTION not in decisions(project)
    assert len(decisions(project)) == len(letters(project))
    void = decide(project, QUESTION, "accept")
    assert (void.code, void.error["code"]) == (4, "decision.void"), void


def test_a_dead_letter_names_its_pending_decision(project: Project) -> None:
    """R-HAND-3."""
    (row,) = [one for one in project.quick("dlq", "list", "--json").data["dead_letters"] if one["task"]]
    assert (row["decision"], "idumb decisions" in row["next"]) == (QUESTION, True)
    assert project.quick("dlq", "remove", "T1-02", "--json").data["dead_letter"]["decision"] is None


def test_an_unknown_choice_and_saving_this_answer_are_refused(project: Project) -> None:
    """R-ASK-3: a judgement of work is never remembered."""
    assert decide(project, QUESTION, "perhaps").error["code"] == "decision.bad-choice"
    refused = decide(project, QUESTION, "accept", "--remember", "--yes")
    assert refused.error["code"] == "decision.not-remembered"
    assert decisions(project) == [QUESTION]


@pytest.mark.parametrize("policy", ["block", "ask"])
def test_a_plan_that_defines_on_failure_asks_nothing(sandbox: GitSandbox, policy: str) -> None:
    """R-RUN-5: `block` leaves it failed, `ask` asks after each attempt."""
    project = planned(projects.create(sandbox), failing(fields=f"- **On failure:** {policy}\n"))
    run(project)
    assert decisions(project) == ([] if policy == "block" else ["T1-02.failure.1"])


def test_strict_mode_halts_at_the_first_failure_and_asks_nothing(sandbox: GitSandbox) -> None:
    """R-RUN-5, R-RUN-7: one attempt; the structured failure names the ways on."""
    project = projects.create(sandbox)
    head = (
        "mode: strict\nrequirements: {REQ-1: files}\nnon_goals: [{id: N-1, text: nothing else}]\n"
        "success_criteria: [{text: it is there, check: test -s a.txt}]\n"
    )
    fails = making(
        "T1-01", "a.txt", steps=[shell("false")], fields="- **Requirements:** REQ-1\n- **Change:** extending\n"
    )
    project.plan([fails], head=head)
    assert project.quick("approve", "1", "--hash", project.approval(), *project.answers(), "--json").code == 0
    ended = project.quick("execute-phase", "1", "--json")
    assert (ended.code, ended.error["code"]) == (1, "run.halted")
    assert [choice["id"] for choice in ended.error["details"]["choices"]] == ["retry", "roll-back", "look"]
    assert decisions(project) == []


def test_a_dry_run_names_no_question_that_disappears_with_it(sandbox: GitSandbox) -> None:
    """R-RUN-11."""
    project = planned(projects.create(sandbox), failing())
    ended = run(project, "--dry-run")
    assert (ended.code, ended.error["code"]) == (1, "dry-run.failed")
    assert "exhausted" not in ended.out
    assert decisions(project) == []


def test_the_next_command_asks_about_a_failure_recorded_before_a_kill(sandbox: GitSandbox) -> None:
    """R-RUN-5, R-RUN-9."""
    project = planned(projects.create(sandbox), failing())
    run_killed_before(project, task_failure.for_good, "execute-phase", "1", "--approve", project.approval())
    assert decisions(project) == []
    assert project.quick("resume", "1", "--json").code == 1
    assert decisions(project) == [QUESTION]


def test_guidance_typed_at_the_terminal_reaches_the_next_attempt(sandbox: GitSandbox) -> None:
    """R-RUN-5, R-ASK-2: typed after the choice; the prompt of the builder holds them."""
    project = echoing(sandbox, fields="- **On failure:** ask\n")
    words = ("execute-phase", "1", "--approve", project.approval())
    code, screen = at_terminal(project, words, "retry\nuse blue")
    assert code == 0, screen
    assert "Instructions for the next attempt (empty: none)" in screen
    assert "says: use blue" in project.read("b.txt")


def test_an_edited_plan_keeps_the_question_and_refuses_impossible_choices(project: Project) -> None:
    """R-ASK-2."""
    edit(project, "T1-03: Task T1-03", "T1-03: Mine")
    refused = decide(project, QUESTION, "accept", "--guidance", "good")
    assert (refused.code, refused.error["code"]) == (4, "run.contract-changed")
    assert decisions(project) == [QUESTION]


@pytest.mark.parametrize(("answer", "remaining"), [("retry\nuse blue", []), ("skip", []), ("", [QUESTION])])
def test_at_a_terminal_the_question_comes_after_all_other_tasks(
    sandbox: GitSandbox, answer: str, remaining: list[str]
) -> None:
    """R-ASK-2, R-RUN-5: the run continues with the answer; without one the question waits."""
    project = echoing(sandbox)
    code, screen = at_terminal(project, ("execute-phase", "1", "--approve", project.approval()), answer)
    assert (code == 0) == answer.startswith("retry"), screen
    assert screen.index("Your choice") > screen.index("T1-03")
    assert decisions(project) == remaining
    assert status(project)["T1-03"] == "completed"


def test_work_rolled_back_at_the_terminal_is_not_run_again(sandbox: GitSandbox) -> None:
    """R-ASK-2."""
    project = echoing(sandbox)
    code, screen = at_terminal(project, ("execute-phase", "1", "--approve", project.approval()), "roll-back")
    assert code == 1, screen
    assert not project.exists("c.txt")
    assert status(project)["T1-02"] == "ready"


def test_a_retry_next_to_a_rollback_does_not_run_rolled_back_work_again(sandbox: GitSandbox) -> None:
    """R-ASK-2: the task that is to be tried again waits for `idumb resume`."""
    project = projects.create(sandbox)
    project.plan([dead("T1-01", "a.txt"), dead("T1-02", "b.txt")])
    words = ("execute-phase", "1", "--max-attempts", "1", "--approve", project.approval())
    code, screen = at_terminal(project, words, "retry\nuse blue", "roll-back")
    assert code == 1, screen
    assert not project.exists("b.txt")
    assert status(project) == {"T1-01": "ready", "T1-02": "ready"}


def dead(id: str, path: str) -> str:
    return task(id, files=f"create `{path}`", check="false", steps=[shell(f"echo w > {path}")])
