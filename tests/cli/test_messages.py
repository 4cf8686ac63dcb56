"""Messages for a new user: no line repeats another, and what they name works as printed."""

from __future__ import annotations

import hashlib
import os
import pty
import re
import signal

import pytest

from idumb.domain.runs.event import ALIASES
from tests.support import ended_runs, seed
from tests.support import project as projects
from tests.support.plans import edit
from tests.support.prepared import Prepared, prepared_project
from tests.support.project import Project, making, shell, task

CHOICE = (
    "### T1-02: Which colour?\n\n- **Kind:** decision\n- **Depends on:** T1-01\n- **Options:**\n"
    "  - light: dark on white\n  - dark: white on dark\n\n"
)


@pytest.mark.nightly
def test_log_accepts_the_event_names_of_workflow_engines(project: Project) -> None:
    """R-LOG-1: the events that they select are ours, in order also if of several kinds, and no more than asked for."""
    project.plan([making("T1-01", "a.txt")], head="success_criteria:\n  - {text: It is right, check: test -e b.txt}\n")
    assert project.execute().code == 1
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", steps=[shell("exit 1")])])
    assert project.execute("--max-attempts", "2").code == 1
    kinds = {name: [e["kind"] for e in project.events("--kind", name)] for name in ALIASES}
    assert kinds["workflow_started"] == kinds["phase_started"] == ["run.started"] * 2
    assert (kinds["workflow_completed"], kinds["workflow_failed"]) == (["run.completed"], ["run.failed"])
    assert kinds["phase_failed"] == ["verification.recorded", "run.failed"]
    assert kinds["step_started"] == kinds["agent_execution_started"] == ["attempt.started"] * 3
    assert (kinds["step_completed"], kinds["step_failed"]) == (["task.completed"], ["attempt.finished"] * 2)
    assert kinds["agent_execution_completed"] == ["attempt.finished"] * 3
    rest = ("workflow_cancelled", "phase_completed", "handoff_created", "handoff_completed")
    assert [kinds[name] for name in rest] == [[]] * 4
    newest = project.quick("log", "--kind", "step_failed", "--limit", "1", "--json").data["events"]
    assert [(e["task"], e["attempt"]) for e in newest] == [("T1-02", 2)]
    assert "attempt.finished" in project.quick("log", "1", "--kind", "step_failed").out
    assert project.events("--since", "2000-01-01")
    assert project.events("--since", "2100-01-01") == []


def test_an_unknown_kind_gets_the_known_names(project: Project) -> None:
    """R-LOG-1."""
    answer = project.quick("log", "--kind", "step_complete", "--json")
    assert (answer.code, answer.error["code"]) == (2, "log.unknown-kind")
    assert "Did you mean step_completed?" in answer.error["message"]
    words = project.quick("log", "--kind", "nonsense").err
    assert [name for name in ALIASES if name not in words] == []
    assert "Did you mean task.completed?" in project.quick("log", "--kind", "task.complete").err
    assert project.json("log", "--run", "nonsense").error["code"] == "run.unknown"
    assert project.json("log", "--limit", "9" * 20).error["code"] == "usage"
    for time in ("yesterday", "0001-01-01T00:00+01"):
        assert f"'{time}' is not a time" in project.quick("log", "--since", time).err


def test_a_phase_that_creates_files_is_rolled_back_before_it_is_forced(prepared: Prepared) -> None:
    """R-RUN-1: `--force` fails over an existing created file; the message names the first step, and it works."""
    project = prepared.get(ended_runs.done)
    forced = project.execute("--force")
    assert (forced.code, forced.error["code"]) == (4, "phase.created")
    assert "First idumb rollback 1 --to start" in forced.error["hint"]
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert project.execute("--force", "--no-verify").code == 0


def test_a_failure_names_step_tool_error_plan_and_trail(project: Project) -> None:
    """R-RUN-7: each of the six fields has its documented content."""
    place = project.plan([task("T1-01", files="create `a.txt`", steps=[shell("echo x > a.txt"), shell("exit 3")])])
    failure = project.execute("--max-attempts", "1").data["failure"]
    assert failure["status"] == "failed"
    assert failure["step_id"] == "T1-01.1"  # steps are counted from 0
    assert failure["tool"] == "run"
    assert "exit" in failure["error"]
    assert failure["plan_hash"] == hashlib.sha256(place.read_bytes()).hexdigest()
    kind_of = {event["seq"]: event["kind"] for event in project.events("1", "--task", "T1-01")}
    assert {line["seq"]: line["kind"] for line in failure["audit_trail"]} == kind_of


def test_a_phase_numbered_between_two_others_is_listed_there_and_runs(project: Project) -> None:
    """R-PLAN-11: a folder named 1.1 is enough; its status comes from the log."""
    for phase in ("2", "1.1", "1"):
        project.plan([making(f"T{phase}-01", f"{phase}.txt")], phase=phase, commit=phase == "1")
    assert project.execute(phase="1.1").code == 0
    listed = [line.split()[0] for line in project.quick("roadmap").out.splitlines() if line[:1].isdigit()]
    assert listed == ["1", "1.1", "2"]
    states = {row["phase"]: row["state"] for row in project.quick("roadmap", "--json").data["phases"]}
    assert (states["1"], states["1.1"], states["2"]) == ("ready", "verified", "ready")


def test_the_counts_of_a_run_include_waiting_and_unstarted_tasks(project: Project) -> None:
    """R-RUN-6, R-OPS-2: at the terminal and in the summary; a waiting task is not completed, failed or blocked.

    R-ASK-1: a waiting task has one line, and the question for consent lists it.
    """
    late = making("T1-03", "c.txt", after="T1-02")
    project.plan([making("T1-01", "a.txt"), CHOICE, late, making("T1-04", "d.txt")])
    refused = project.quick("execute-phase", "1", "--json")
    assert (refused.code, "  asks   a person (decision)" in refused.error["details"]["evidence"]) == (5, True)
    ended = project.quick("execute-phase", "1", "--approve", project.approval())
    out = ended.out
    assert "waiting: waiting" not in out + ended.err
    assert (out + ended.err).count("    waiting for a decision: T1-02: Which colour?\n") == 0
    assert project.quick("status").out.count("Which colour?") == 1
    counted = dict(re.findall(r"^- ([A-Z][a-z ]+): ([0-9]+) task", out, re.MULTILINE))
    assert counted == {"Completed": "2", "Failed": "0", "Blocked": "0", "Waiting": "1", "Not run yet": "1"}
    summary = project.read(".planning/phases/1/1-SUMMARY.md")
    front = {name: int(n) for name, n in re.findall(r"^tasks_([a-z]+): ([0-9]+)$", summary, re.MULTILINE)}
    assert front.pop("accepted") == 0
    assert front.pop("total") == sum(front.values()) == 4
    assert (front["waiting"], front["pending"]) == (1, 1)
    again = project.quick("resume", "1")
    assert "resumed: resume" not in again.out + again.err


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


def test_another_name_with_the_number_of_a_phase_never_says_that_its_plan_is_missing(project: Project) -> None:
    """The command that restores a missing plan would replace the present one."""
    project.plan([making("T1-01", "a.txt")], folder="01-usual")
    assert project.execute().code == 0
    for name in ("1 ", "01-older-name"):
        assert project.quick("check-plan", name, "--json").data["folder"] == ".planning/phases/01-usual"
        assert project.quick("next", name, "--json").data["phase"] == "1"


def test_a_phase_whose_plan_has_errors_is_not_ready(project: Project) -> None:
    """R-PLAN-11, R-OPS-2: whether its format, its graph or a check says so."""
    for wrong in ("- **Builder:** nobody\n", "- **Builde:** x\n", "- **Depends on:** T1-09\n"):
        project.plan(["### T1-01: A\n\n" + wrong + "- **Acceptance:**\n  - [ ] Done — check: `true`\n"], commit=False)
        checked = project.quick("check-plan", "1", "--json")
        assert (checked.code, checked.data["errors"]) == (3, 1)
        for command in ("status", "next", "roadmap"):
            answer = project.quick(command, "--json")
            (row,) = answer.data["phases"]
            assert (row["state"], row["errors"]) == ("invalid", 1), command
            assert answer.data["next"]["command"] == "idumb check-plan 1"
            assert "ready" not in project.quick(command).out.split("\n")[0]


done = prepared_project(ended_runs.done)


def test_a_word_of_another_program_is_answered_with_the_command(done: Project) -> None:
    """R-ASK-1."""
    assert "next: idumb execute-phase 1\n" in done.quick("run", "1").err
    assert done.quick("pause", "--json").error["hint"] == "idumb stop --after-task"


def test_an_option_is_not_the_value_of_another(done: Project) -> None:
    refused = done.json("accept", "T1-01", "--why", "--json")
    assert (refused.code, refused.error["message"]) == (2, "Option '--why' requires an argument.")


def test_a_plan_without_frontmatter_is_not_in_the_way_of_the_next_command(done: Project) -> None:
    done.repo.write(".planning/phases/7/01-PLAN.md", "# Plan\n")
    refused = done.json("check-plan", "7")
    assert (refused.error["code"], refused.error["hint"]) == ("phase.no-plan", "idumb help plan-format")


def test_a_missing_program_of_an_agent_is_an_error_before_a_run(project: Project) -> None:
    """R-ADAPT-1, R-PLAN-5, R-RUN-1: of `check-plan` and of `doctor`."""
    project.configure("builder: gone\nbindings:\n  gone: {adapter: command, argv: [/no/such/program]}\n")
    project.plan([task("T1-01", files="create `a.txt`")])
    assert [row["code"] for row in project.json("check-plan", "1").data["findings"] if row["severity"] == "error"] == [
        "agent.not-found"
    ]
    checks = {row["code"]: row["symptoms"] for row in project.json("doctor").data["checks"]}
    assert [symptom["state"] for symptom in checks["agents.bindings"]] == ["problem"]


def test_status_shows_a_workflow_that_a_pull_brought(done: Project) -> None:
    """R-OPS-1: the view that is kept watches their folder, too."""
    assert done.json("status").data["next"]["command"] is None
    plan = projects.plan_text([making("TW1-01", "w.txt")], phase="W1")
    done.repo.write(".planning/workflows/001-more/PLAN.md", plan)
    assert "W1" in done.quick("status").out


@pytest.mark.parametrize(
    "command", seed.one_on_a_push([(("rollback", "1", "--to", "start"),), (("deinit",),)], "a question")
)
def test_one_interrupt_leaves_a_question(done: Project, command: tuple[str, ...]) -> None:
    before = done.repo.ledger()
    master, slave = pty.openpty()
    with done.beside(*command, terminal=os.ttyname(slave)) as process:
        output = b""
        while b"Your choice" not in output:
            output += os.read(master, 4096)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait().code == 130
    os.close(slave)
    os.close(master)
    assert done.repo.ledger().changed_paths(before) == []
    assert done.quick("rollback", "1", "--to", "start", "--yes").code == 0


def test_status_says_whether_the_plan_or_the_configuration_changed_since_the_run(prepared: Prepared) -> None:
    """R-PLAN-11."""
    planned = prepared.get(ended_runs.failed)
    configuration = planned.folder / ".idumb/config.yaml"
    before = configuration.read_text(encoding="utf-8")
    configuration.write_text(before + "\nprotected: [x.txt]\n", encoding="utf-8")
    assert "it continues with the changed configuration, at T1-0" in planned.quick("status").out
    configuration.write_text(before, encoding="utf-8")
    edit(planned, "Task T1-01", "Another title")
    assert "it continues with the changed plan, at T1-0" in planned.quick("status").out
    done = prepared.get(ended_runs.done)
    edit(done, "goal: ", "goal: All of ")
    assert "(it continues with the changed plan)" in done.quick("status").out
