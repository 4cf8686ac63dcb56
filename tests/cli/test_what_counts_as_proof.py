"""Nothing counts as proof by default: what nobody proved makes the end partial, and a person decides (R-RUN-3)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from idumb.app.attempt.attempt_events import call_id
from idumb.app.core.run_context import RunContext
from idumb.app.engine import runner
from idumb.app.engine.moves import Ending
from tests.support import plans
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import amend, run, versions
from tests.support.project import Project, create, failing_task, making, shell, task, write
from tests.support.schemas import validator


def ended(answer: Answer, reason: str) -> str:
    """Return the id of the question whether the phase counts as verified."""
    assert (answer.code, answer.error["code"]) == (1, "verification.partial"), answer.out
    assert reason in answer.data["verification"]["reason"]
    return str(answer.data["verification"]["decision"])


def test_an_unproven_criterion_or_requirement_leaves_the_phase_partial_until_a_person_decides(
    sandbox: GitSandbox,
) -> None:
    """R-RUN-13: a requirement is met by a task that is done."""
    project = create(sandbox)
    criteria = "  - [ ] it is there — check: `test -s a.txt`\n  - [ ] it is nice\n"
    head = "requirements:\n  REQ-1: A\n  REQ-2: B\n"
    project.plan([making("T1-01", "a.txt", criteria=criteria, fields="- **Requirements:** REQ-1\n")], head=head)
    partial = plans.run(project)
    question = ended(partial, "T1-01 AC-2 has no proof")
    assert "REQ-2 is not met: no task names it" in partial.data["verification"]["reason"]
    assert question in project.quick("decisions").out
    assert project.quick("decide", question, "yes").code == 0
    assert "Phase 1 The first step: verified" in " ".join(project.quick("status").out.split())


IMPORTED = "- **x-source-done:** yes\n- **x-source-digest:** 00\n"


def test_a_task_imported_as_done_is_listed_as_done_before_idumb_and_leaves_nothing_partial(sandbox: GitSandbox) -> None:
    project = create(sandbox)
    old = task("T1-01", criteria="  - [ ] it was built\n", fields=f"- **Requirements:** REQ-1\n{IMPORTED}")
    new = making("T1-02", "b.txt", after="T1-01", fields="- **Requirements:** REQ-2\n")
    project.plan([old, new], head="requirements:\n  REQ-1: A\n  REQ-2: B\n")
    answer = plans.run(project)
    assert (answer.code, answer.data["verification"]["status"]) == (0, "passed")
    report = project.read(".planning/phases/1/1-VERIFICATION.md")
    assert "| T1-01 | AC-1: it was built | unproven | done before idumb |" in report
    assert "| REQ-1: A | yes | T1-01 (done before idumb)" in report
    assert "Gaps" not in report or "None" in report.partition("## Gaps")[2]
    assert "**Done before idumb:** 1" in project.read(".planning/phases/1/1-SUMMARY.md")
    assert "done before idumb" in project.quick("show", "T1-01").out


@pytest.mark.nightly
@pytest.mark.parametrize("builder", ["steps", "agent"])
def test_a_check_that_passed_before_the_work_is_named_for_the_fastest_builder(
    sandbox: GitSandbox, builder: str
) -> None:
    project = create(sandbox)
    steps = [write("a.txt", "made\n")] if builder == "steps" else []
    if not steps:
        project.built_by("echo made > a.txt")
    boxes = "  - [ ] a — check: `test -s a.txt`\n  - [ ] readme — check: `test -s README.md`\n"
    project.plan([task("T1-01", files="create `a.txt`", criteria=boxes, steps=steps)])
    answer = project.quick("execute-phase", "1", "--approve", project.approval())
    (attempt,) = project.json("show", "T1-01").data["attempts"]
    controls = {row["subject"]: row["control"] for row in attempt["evidence"] if "control" in row}
    assert (answer.code, controls) == (0, {"AC-1": "failed", "AC-2": "passed"}), answer
    for text in (answer.err, project.quick("show", "T1-01").out):
        named = [line for line in text.splitlines() if "passed before the work too" in line]
        assert ["AC-2" in line for line in named] == [True], text
    summary = project.read(".planning/phases/1/1-SUMMARY.md")
    assert "Passed before the work, and so does not show that the work was done: AC-2" in summary


def test_a_bare_pass_leaves_the_decision_to_the_other_proofs(project: Project, home: Path) -> None:
    """R-RUN-3, R-RUN-4: a validator with a user's template is asked for evidence too; this one answers nothing."""
    argv = json.dumps(["sh", "-c", f"cat > {home}/judged"])
    project.configure(f"validator: judge\nbindings:\n  judge: {{adapter: command, argv: {argv}}}\n")
    project.plan([making("T1-01", "a.txt")])
    project.repo.write(".idumb/prompts/validator.md", "Judge $id.\n")
    answer = run(project)
    evidence = [event["payload"] for event in project.events("--kind", "evidence.recorded")]
    last = [each for each in evidence if each["subject"] == "validator judge"][-1]
    validator("evidence").validate(last)
    assert (answer.code, last["result"]) == (0, "opinion"), answer
    assert "every check passed" not in answer.out
    prompt = (home / "judged").read_text(encoding="utf-8")
    assert prompt.startswith("Judge T1-01.\n")
    assert '"evidence": [{"criterion": "AC-1", "file": "path", "line": 1}]' in prompt


def workspace(project: Project) -> dict[str, object]:
    return dict(project.events("--kind", "run.completed")[-1]["payload"]["workspace"])


def session(project: Project) -> str:
    return str(project.quick("status", "--json").data["phases"][0]["session"])


def test_a_file_that_differs_from_its_task_s_result_is_reported(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-RUN-2, R-RUN-13: its mode or its bytes. What the user did not commit is named. Ids of calls are not random.

    An ignored file counts if a task declares it. The session is active until the run ends. A completed phase is
    verified by `execute-phase` too, which starts no run, and leaves no report uncommitted.
    """
    steps = [write("a.txt", "a\n"), write("tool.sh", "#!/bin/sh\n"), write("seen.log", "x\n")]
    project.plan([task("T1-01", files="create `a.txt`, create `tool.sh`, create `seen.log`", steps=steps)])
    between, sessions = runner._paused, set()

    def looked(context: RunContext) -> Ending | None:
        sessions.add(session(project))
        return between(context)

    monkeypatch.setattr(runner, "_paused", looked)
    done = run(project, "--no-verify")
    assert (done.code, done.data["session"], sessions, session(project)) == (0, "closed", {"active"}, "closed")
    assert workspace(project) == {"wrong": [], "changed": []}
    calls = project.events("--kind", "step.finished")
    run_id = str(calls[0]["run"])
    assert [e["payload"]["call"] for e in calls] == [call_id(run_id, "T1-01", 1, index) for index in range(3)]
    assert len({e["payload"]["call"] for e in calls}) == 3
    again = run(project)
    assert (again.code, again.data["run"], project.repo.status()) == (0, run_id, [])
    words = "only by the tasks' own checks; the phase itself declares no check"
    assert (again.data["verification"]["status"], again.data["verification"]["reason"]) == ("passed", words)
    assert project.quick("verify-work", "1", "--json").data["mismatches"] == []
    changed = "a.txt is not as T1-01 left it"
    (project.folder / "a.txt").write_text("else\n")
    answer = project.quick("verify-work", "1", "--json")
    assert (answer.code, answer.data["workspace"]["wrong"], answer.data["workspace"]["changed"]) == (0, [], ["a.txt"])
    (project.folder / "tool.sh").chmod(0o755)
    project.repo.commit("mine", "a.txt", "tool.sh")
    answer = project.quick("verify-work", "1", "--json")
    wrong = [changed, "tool.sh has mode 100755, and T1-01 left it with 100644"]
    assert (answer.code, answer.data["workspace"]["wrong"]) == (1, wrong)
    assert changed in answer.data["mismatches"]


def test_a_check_that_changes_what_an_earlier_run_made_proves_nothing(project: Project) -> None:
    """No command of the check names the file, and the new run starts with it."""
    first = making("T1-01", "a.txt")
    project.plan([first])
    assert run(project).code == 0
    check = "find . -name 'a.t*' -exec cp b.txt {} ';'"
    project.plan([first, task("T1-02", files="create `b.txt`", check=check, steps=[write("b.txt", "b\n")])])
    run(project, "--max-attempts", "1", "--no-verify")
    assert project.statuses() == {"T1-01": "completed", "T1-02": "failed"}
    assert project.json("show", "T1-01").data["run"] != project.json("show", "T1-02").data["run"]


def test_the_log_names_the_amendment_that_added_an_invariant(project: Project) -> None:
    """R-GATE-3, R-LOCK-8."""
    tasks = [making("T1-01", "a.txt"), failing_task("T1-02", "b.txt", after="T1-01")]
    project.plan(tasks)
    run(project, "--max-attempts", "1", "--no-verify")
    head = "invariants: [{id: INV-1, text: it holds, check: test ! -e secret.txt}]\n"
    project.plan([tasks[0], making("T1-02", "b.txt", after="T1-01")], head=head, commit=False)
    assert amend(project, "--from-file", "--yes", "--why", "no secrets").code == 0
    (version,) = versions(project)
    assert (version["version"], version["why"]) == (2, "no secrets")
    assert [line for line in version["what"] if ": invariants + " in line and "INV-1" in line], version["what"]


def test_a_criterion_for_a_person_waits_and_the_answer_completes_the_task(project: Project) -> None:
    """R-ASK-1, R-ASK-2, R-ASK-3, R-PLAN-12, R-RUN-3: pending, exit 5, answered later, in the record."""
    criteria = "  - [ ] it is there — check: `test -s a.txt`\n  - [ ] it reads well — human\n    - Read it aloud\n"
    project.plan([making("T1-01", "a.txt", criteria=criteria), making("T1-02", "b.txt", after="T1-01")])
    answer = project.execute()
    assert (answer.code, answer.error["code"]) == (5, "run.waiting")
    (decision,) = project.json("decisions").data["decisions"]
    assert "Read it aloud" in decision["evidence"]
    assert [choice["id"] for choice in decision["choices"]] == ["yes", "no"]
    assert all(choice["consequence"] for choice in decision["choices"])
    assert decision["why"]
    assert project.json("status").data["next"]["command"] == "idumb decisions"
    assert decision["id"] in project.quick("decisions").out
    assert project.trailers("Idumb-Task") == []
    assert project.resume().code == 5  # no answer means no
    assert "## Decisions" not in project.read(".planning/phases/1/01-PLAN.md")
    wrong = project.json("decide", decision["id"], "perhaps")
    assert (wrong.code, wrong.error["code"]) == (3, "decision.bad-choice")
    assert project.json("decide", "T9-99.x", "yes").error["code"] == "decision.unknown"
    decided = project.json("decide", decision["id"], "yes", "--guidance", "reads like a song")
    assert decided.code == 0
    assert "idumb resume 1" in decided.data["next"]
    assert project.json("decide", decision["id"], "no").error["code"] == "decision.answered"
    assert project.resume("--no-verify").code == 0
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]
    assert project.json("decisions").data["decisions"] == []
    assert "reads like a song" in json.dumps(project.json("show", "T1-01").data)


def test_tasks_for_a_person_wait_while_others_continue(project: Project) -> None:
    """R-PLAN-12, R-ASK-2: human-verify, decision and human-action; a denied criterion fails the attempt."""
    project.plan(
        [
            task("T1-01", criteria="  - [ ] it is so — human\n", fields="- **Kind:** human-action\n"),
            task(
                "T1-02",
                criteria="  - [ ] chosen — human\n",
                fields="- **Kind:** decision\n- **Options:**\n  - red: the warm one\n  - blue: the cold one\n",
            ),
            task(
                "T1-03", criteria="  - [ ] it looks right — human\n", fields="- **Kind:** human-verify\n", after="T1-04"
            ),
            task("T1-04", steps=[shell("true")]),
            task("T1-05", after="T1-01, T1-02, T1-03", steps=[shell("true")]),
            making("T1-06", "c.txt", criteria="  - [ ] it reads well — human\n"),
        ]
    )
    answer = project.execute()
    assert answer.code == 5
    assert project.statuses()["T1-04"] == "completed"
    decisions = {row["task"]: row for row in project.json("decisions").data["decisions"]}
    assert set(decisions) == {"T1-01", "T1-02", "T1-03", "T1-06"}
    assert [choice["id"] for choice in decisions["T1-02"]["choices"]] == ["red", "blue"]
    for id, choice in (("T1-01", "done"), ("T1-02", "blue"), ("T1-03", "yes"), ("T1-06", "no")):
        assert project.quick("decide", decisions[id]["id"], choice).code == 0
    assert project.resume("--max-attempts", "1").code == 1
    status = project.statuses()
    assert status.pop("T1-06") == "failed"
    assert set(status.values()) == {"completed"}
    assert "blue" in json.dumps(project.json("show", "T1-02").data)


def test_what_a_person_made_is_committed_if_it_is_not_yet(project: Project) -> None:
    """R-PLAN-12, R-RUN-3: what proves the task is in the commit."""
    by_hand = "- **Kind:** human-action\n"
    project.plan(
        [
            task("T1-01", files="create `a.txt`", check="test -s a.txt", fields=by_hand),
            task("T1-02", files="create `b.txt`", check="test -s b.txt", fields=by_hand, after="T1-01"),
            making("T1-03", "c.txt", after="T1-02"),
        ]
    )
    assert project.execute().code == 5
    project.repo.write("a.txt", "mine\n")
    assert project.quick("decide", "T1-01.work.1", "done").code == 0
    assert project.resume().code == 5
    project.repo.commit_with({"b.txt": "mine\n"}, "by hand", "b.txt")
    assert project.quick("decide", "T1-02.work.1", "done").code == 0
    assert project.resume().code == 0
    assert [word for word in project.subjects() if word != "plan"][-4:-1] == ["Task T1-01", "by hand", "Task T1-03"]
    assert project.json("prove", "1").code == 0
