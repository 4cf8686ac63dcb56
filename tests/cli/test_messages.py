"""Messages for a new user: no line repeats another, and the next command works as printed."""

from __future__ import annotations

import hashlib
import re
import subprocess

import pytest

from idumb.domain.runs.event import ALIASES
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task

ASKED = "success_criteria:\n  - {text: It looks right, human: Look at it}\n"
CHOICE = (
    "### T1-02: Which colour?\n\n- **Kind:** decision\n- **Depends on:** T1-01\n- **Options:**\n"
    "  - light: dark on white\n  - dark: white on dark\n\n"
)


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


def words(project: Project, command: str) -> str:
    answer = project.idumb(command, "1", "--approve", project.approval())
    return answer.out + answer.err


def test_idumb_alone_prints_its_help(project: Project) -> None:
    answer = project.quick()
    assert answer.code == 0
    assert answer.out.startswith("Usage: idumb")
    assert "  execute-phase " in answer.out


def test_a_phase_that_waits_for_a_person_shows_the_question_first(project: Project) -> None:
    """R-ASK-1: the first next command lists the question; one criterion is not called criteria."""
    project.plan([making("T1-01", "a.txt")], head=ASKED)
    ended = project.execute()
    assert ended.code == 5
    assert ended.error["hint"] == "idumb decisions"
    assert "1 criterion waits for your answer" in ended.error["message"]
    decision = project.json("decisions").data["decisions"][0]
    assert project.json("next").data["next"]["command"] == "idumb decisions"
    assert project.json("decide", decision["id"], "yes").code == 0
    assert project.json("next").data["next"]["command"] == "idumb verify-work 1"
    assert project.json("verify-work", "1").code == 0


def test_execute_phase_of_a_completed_unverified_phase_verifies_it_and_starts_no_run(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")])
    first = project.execute("--no-verify")
    again = project.execute()
    assert again.code == 0
    assert again.data["run"] == first.data["run"]
    assert again.data["verification"]["status"] == "passed"


def test_verify_work_leaves_no_report_uncommitted(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")])
    assert project.execute("--no-verify").code == 0
    assert project.json("verify-work", "1").code == 0
    assert project.repo.git("status", "--porcelain") == ""


def test_a_phase_without_its_own_checks_is_not_said_to_have_passed_them(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")])
    verification = project.execute().data["verification"]
    assert verification["status"] == "passed"
    assert verification["reason"] == "only by the tasks' own checks; the phase itself declares no check"


def test_a_waiting_task_is_reported_in_one_line(project: Project) -> None:
    project.plan([making("T1-01", "a.txt"), CHOICE])
    output = words(project, "execute-phase")
    assert "waiting: waiting" not in output
    assert output.count("    waiting for a decision: T1-02: Which colour?\n") == 1
    status = project.idumb("status").out
    assert status.count("Which colour?") == 1
    assert "resumed: resume" not in words(project, "resume")


def test_consent_lists_the_tasks_that_ask_a_person(project: Project) -> None:
    """R-ASK-1: the question for consent describes a task for a person too."""
    project.plan([making("T1-01", "a.txt"), CHOICE])
    refused = project.json("execute-phase", "1")
    assert refused.code == 5
    assert "  asks   a person (decision)" in refused.error["details"]["evidence"]


def test_show_of_a_carried_task_shows_the_attempt_of_the_run_that_made_it(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt")])
    assert project.execute().code == 0
    shown = project.json("show", "T1-01").data
    assert [a["outcome"] for a in shown["attempts"]] == ["completed"]
    assert "passed AC-1" in project.idumb("show", "T1-01").out


def test_undo_of_a_run_keeps_the_work_of_an_earlier_run(project: Project) -> None:
    """R-GIT-3: undo returns to the start of the newest run, not of the phase."""
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")])
    assert project.execute().code == 0
    undone = project.json("undo", "--yes")
    assert undone.code == 0, undone.out
    assert undone.data["tasks"] == ["T1-02"]
    assert project.exists("a.txt")
    assert not project.exists("b.txt")


def test_the_commit_of_an_undo_says_undo_once(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    assert project.json("undo", "--yes").code == 0
    assert "Undo: rollback of phase 1 to start" in project.subjects()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--since", "yesterday"), "'yesterday' is not a time"),
        (("--kind", "task.complete"), "Did you mean task.completed?"),
    ],
)
def test_log_refuses_a_filter_that_no_event_can_match(project: Project, flags: tuple[str, ...], message: str) -> None:
    answer = project.quick("log", *flags)
    assert answer.code == 2
    assert message in answer.err


def test_log_accepts_the_event_names_of_workflow_engines(project: Project) -> None:
    """R-LOG-1: the events that they select are ours, in order, and no more than asked for."""
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", steps=[shell("exit 1")])])
    assert project.execute("--max-attempts", "2").code == 1
    kinds = {name: [e["kind"] for e in project.events("1", "--kind", name)] for name in ALIASES}
    assert kinds["workflow_started"] == kinds["phase_started"] == ["run.started"]
    assert kinds["workflow_failed"] == kinds["phase_failed"] == ["run.failed"]
    assert kinds["step_started"] == kinds["agent_execution_started"] == ["attempt.started"] * 3
    assert (kinds["step_completed"], kinds["step_failed"]) == (["task.completed"], ["attempt.finished"] * 2)
    assert kinds["agent_execution_completed"] == ["attempt.finished"] * 3
    rest = ("workflow_completed", "workflow_cancelled", "phase_completed", "handoff_created", "handoff_completed")
    assert [kinds[name] for name in rest] == [[]] * 5
    newest = project.json("log", "--kind", "step_failed", "--limit", "1").data["events"]
    assert [(e["task"], e["attempt"]) for e in newest] == [("T1-02", 2)]
    assert "attempt.finished" in project.quick("log", "1", "--kind", "step_failed").out


def test_several_kinds_of_one_alias_are_printed_in_log_order(project: Project) -> None:
    """R-LOG-1."""
    project.plan([making("T1-01", "a.txt")], head="success_criteria:\n  - {text: It is right, check: test -e b.txt}\n")
    assert project.execute().code == 1
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", steps=[shell("exit 1")])])
    assert project.execute().code == 1
    events = project.events("--kind", "phase_failed")
    assert [event["kind"] for event in events] == ["verification.recorded", "run.failed"]


def test_an_unknown_kind_gets_the_known_names(project: Project) -> None:
    """R-LOG-1."""
    answer = project.quick("log", "--kind", "step_complete", "--json")
    assert (answer.code, answer.error["code"]) == (2, "log.unknown-kind")
    assert "Did you mean step_completed?" in answer.error["message"]
    for name in ALIASES:
        assert name in answer.error["hint"]
        assert name in project.quick("log", "--kind", "nonsense").err


def test_log_accepts_a_day_as_a_time(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    assert project.events("--since", "2000-01-01")
    assert project.events("--until", "2000-01-01") == []


def test_show_of_a_failed_task_lists_the_next_actions(project: Project) -> None:
    """R-RUN-5: the first command that a halted run names shows how to continue, also after an undeclared change."""
    project.plan([making("T1-01", "a.txt", steps=[shell("echo x > a.txt; echo y > stray.txt")])])
    ended = project.idumb("execute-phase", "1", "--approve", project.approval())
    assert ended.code == 5
    assert ended.err.count("changed outside its declared files") == 4  # the attempt, the task, the run, the error
    shown = project.idumb("show", "T1-01").out
    assert "After you fix the cause: " in shown
    for command in ("resume 1 --retry-failed", "resume 1 --on-deviation accept", "accept T1-01 --why REASON"):
        assert f"idumb {command}\n" in shown
    accepted = project.idumb("resume", "1", "--on-deviation", "accept")
    assert accepted.code == 0, accepted.err
    assert "After you fix the cause" not in project.idumb("show", "T1-01").out


def test_show_has_a_restore_command_for_every_undeclared_change(project: Project) -> None:
    """They may be the user's own edits, so none of them is omitted."""
    names = [f"own {i}.txt" for i in range(7)]
    project.repo.write_all({name: f"{name}\n" for name in names})
    project.plan([making("T1-01", "a.txt", steps=[shell('echo x > a.txt; for f in own*; do echo y > "$f"; done')])])
    assert project.execute().code == 5
    back = project.quick("show", "T1-01", "--json").data["attempts"][-1]["bring_back"]
    output = project.quick("show", "T1-01").out
    assert "may be your own" in output
    assert all(command in output for command in back)
    subprocess.run(["sh", "-ec", "\n".join(back)], cwd=project.folder, check=True)
    assert [project.read(name) for name in names] == [f"{name}\n" for name in names]


def test_guidance_to_a_failed_task_reaches_the_next_attempt(project: Project) -> None:
    """R-RUN-5: the builder records its prompt; its check passes only with the person's guidance."""
    project.configure('builder: echo\nbindings:\n  echo: {adapter: command, argv: [sh, -c, "cat > a.txt"]}\n')
    asks = task("T1-01", files="create `a.txt`", check="grep -q 'use [b]lue' a.txt", fields="- **On failure:** ask\n")
    project.plan([asks])
    assert project.execute().code == 5
    decision = project.json("decisions").data["decisions"][0]["id"]
    assert project.json("decide", decision, "retry", "--guidance", "use blue").code == 0
    assert project.resume().code == 0


def test_a_verified_phase_is_refused_with_the_command_that_runs_it_again(project: Project) -> None:
    """R-RUN-1."""
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    before = project.subjects()
    refused = project.execute()
    assert (refused.code, refused.error["code"]) == (4, "phase.verified")
    assert "idumb execute-phase 1 --force" in refused.error["hint"]
    assert project.subjects() == before


def test_a_phase_that_creates_files_is_rolled_back_before_it_is_forced(project: Project) -> None:
    """R-RUN-1: `--force` fails over an existing created file; the message names the first step, and it works."""
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    assert "--force fails: a task creates a.txt" in project.execute().error["hint"]
    forced = project.execute("--force")
    assert (forced.code, forced.error["code"]) == (4, "phase.created")
    assert "First idumb rollback 1 --to start" in forced.error["hint"]
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    assert project.execute("--force").code == 0


def test_a_failure_names_step_tool_error_plan_and_trail(project: Project) -> None:
    """R-RUN-7: each of the six fields has its documented content."""
    place = project.plan([task("T1-01", files="create `a.txt`", steps=[shell("echo x > a.txt"), shell("exit 3")])])
    failure = project.execute().data["failure"]
    assert failure["status"] == "failed"
    assert failure["step_id"] == "T1-01.1"  # steps are counted from 0
    assert failure["tool"] == "run"
    assert "exit" in failure["error"]
    assert failure["plan_hash"] == hashlib.sha256(place.read_bytes()).hexdigest()
    kind_of = {event["seq"]: event["kind"] for event in project.events("1", "--task", "T1-01")}
    assert {line["seq"]: line["kind"] for line in failure["audit_trail"]} == kind_of


def test_a_file_that_differs_from_its_task_s_result_fails_the_verification(project: Project) -> None:
    """R-RUN-13: the final state is compared with the proven one, even without a check of the file."""
    project.plan([making("T1-01", "a.txt")])
    assert project.execute("--no-verify").code == 0
    (project.folder / "a.txt").write_text("something else\n", encoding="utf-8")
    judged = project.json("verify-work", "1")
    assert judged.code == 1
    assert judged.data["mismatches"] == ["a.txt is not as T1-01 left it"]


def test_an_interrupted_phase_names_the_signal(project: Project) -> None:
    project.plan([task("T1-01", steps=[shell("kill -TERM $(ps -o ppid= -p $PPID); sleep 30")])])
    answer = project.idumb("execute-phase", "1", "--approve", project.approval())
    assert answer.code == 143
    assert "stopped by SIGTERM" in project.idumb("status").out


def test_a_phase_numbered_between_two_others_is_listed_there_and_runs(project: Project) -> None:
    """R-PLAN-11: a folder named 1.1 is enough; its status comes from the log."""
    for phase in ("2", "1.1", "1"):
        project.plan([making(f"T{phase}-01", f"{phase}.txt")], phase=phase)
    assert project.execute(phase="1.1").code == 0
    listed = [line.split()[0] for line in project.idumb("roadmap").out.splitlines() if line[:1].isdigit()]
    assert listed == ["1", "1.1", "2"]
    states = {row["phase"]: row["state"] for row in project.json("roadmap").data["phases"]}
    assert (states["1"], states["1.1"], states["2"]) == ("ready", "verified", "ready")


def test_the_counts_of_a_run_include_waiting_and_unstarted_tasks(project: Project) -> None:
    """R-RUN-6, R-OPS-2: at the terminal and in the summary; a waiting task is not completed, failed or blocked."""
    late = making("T1-03", "c.txt", after="T1-02")
    project.plan([making("T1-01", "a.txt"), CHOICE, late, making("T1-04", "d.txt")])
    out = project.idumb("execute-phase", "1", "--approve", project.approval()).out
    counted = dict(re.findall(r"^- ([A-Z][a-z ]+): ([0-9]+) task", out, re.MULTILINE))
    assert counted == {"Completed": "2", "Failed": "0", "Blocked": "0", "Waiting": "1", "Not run yet": "1"}
    summary = project.read(".planning/phases/1/1-SUMMARY.md")
    front = {name: int(n) for name, n in re.findall(r"^tasks_([a-z]+): ([0-9]+)$", summary, re.MULTILINE)}
    assert front.pop("accepted") == 0
    assert front.pop("total") == sum(front.values()) == 4
    assert (front["waiting"], front["pending"]) == (1, 1)
    in_summary = {
        name: int(n) for name, n in re.findall(r"^- \*\*([A-Z][a-z ]+):\*\* ([0-9]+)$", summary, re.MULTILINE)
    }
    assert (sum(in_summary.values()), in_summary["Waiting"], in_summary["Not run yet"]) == (4, 1, 1)
    counts = project.json("status").data["phases"][0]["tasks"]
    assert counts.pop("total") == sum(counts.values())


@pytest.mark.parametrize("folder", ["phase-1", "phase_01", "Phase 1", "01.name", "Phase-01-auth"])
def test_a_phase_runs_in_a_folder_with_an_unusual_name(project: Project, folder: str) -> None:
    """R-PLAN-11."""
    project.plan([making("T1-01", "a.txt")], folder=folder)
    (row,) = project.quick("status", "--json").data["phases"]
    assert (row["phase"], row["state"], row["folder"]) == ("1", "ready", f".planning/phases/{folder}")
    hash = project.quick("check-plan", "1", "--json").data["contract_hash"]
    assert project.quick("execute-phase", "1", "--approve", hash, "--json").code == 0
    (row,) = project.quick("roadmap", "--json").data["phases"]
    assert row["state"] == "verified"
    assert project.quick("rollback", "1", "--to", "start", "--yes", "--json").code == 0


def test_two_folders_with_unusual_names_are_both_named_and_a_usual_one_wins(project: Project) -> None:
    """R-PLAN-11."""
    for folder in ("phase-1", "Phase 1"):
        project.plan([making("T1-01", "a.txt")], folder=folder, commit=False)
    answer = project.quick("check-plan", "1", "--json")
    assert (answer.code, answer.error["code"]) == (3, "phase.ambiguous")
    assert all(f".planning/phases/{folder}" in answer.error["message"] for folder in ("phase-1", "Phase 1"))
    (row,) = project.quick("status", "--json").data["phases"]
    assert row["state"] == "invalid"
    project.plan([making("T1-01", "b.txt")], folder="01-usual", commit=False)
    assert project.quick("check-plan", "1", "--json").data["folder"] == ".planning/phases/01-usual"
    assert [row["state"] for row in project.quick("status", "--json").data["phases"]] == ["ready"]


def test_a_started_plan_continues_under_its_unusual_folder_name(project: Project) -> None:
    """R-PLAN-11: its ids have the whole name, which was the only way before."""
    project.plan([making("Tphase-1-01", "a.txt")], phase="phase-1", folder="phase-1")
    hash = project.quick("check-plan", "phase-1", "--json").data["contract_hash"]
    assert project.quick("execute-phase", "phase-1", "--approve", hash, "--json").code == 0
    (row,) = project.quick("status", "--json").data["phases"]
    assert (row["phase"], row["state"]) == ("phase-1", "verified")
    assert project.quick("verify-work", "phase-1", "--json").code == 0


@pytest.mark.parametrize("wrong", ["- **Builder:** nobody\n", "- **Builde:** x\n", "- **Depends on:** T1-09\n"])
def test_a_phase_whose_plan_has_errors_is_not_ready(project: Project, wrong: str) -> None:
    """R-PLAN-11, R-OPS-2: whether its format, its graph or a check says so."""
    project.plan(["### T1-01: A\n\n" + wrong + "- **Acceptance:**\n  - [ ] Done — check: `true`\n"])
    checked = project.quick("check-plan", "1", "--json")
    assert (checked.code, checked.data["errors"]) == (3, 1)
    for command in ("status", "next", "roadmap"):
        answer = project.quick(command, "--json")
        (row,) = answer.data["phases"]
        assert (row["state"], row["errors"]) == ("invalid", 1), command
        assert answer.data["next"]["command"] == "idumb check-plan 1"
        assert "ready" not in project.quick(command).out.split("\n")[0]
