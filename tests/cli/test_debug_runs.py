"""`idumb debug`: the state of a run at an event, its times, two runs side by side, and its integrity (R-OPS-1)."""

from __future__ import annotations

import shutil
import sqlite3

import pytest

from idumb.domain.runs.event import NewEvent
from idumb.store.connection import Database
from idumb.store.event_log import SqliteEventLog
from idumb.system import user_folders
from idumb.system.clock import SystemClock
from tests.cli.test_report_page import reviewed
from tests.support import doctor as doctors
from tests.support.prepared import Prepared
from tests.support.project import Project, failing_task, making

pytestmark = pytest.mark.usefixtures("home")


def recorded(project: Project, event: NewEvent) -> int:
    """Append an event that idumb would never write there, as its process could; return its number."""
    folder = project.repo.common_dir / "idumb"
    with sqlite3.connect(folder / "store.db") as db:
        ((fence,),) = db.execute("SELECT fence FROM owners").fetchall()
    db.close()
    log = SqliteEventLog(Database(str(project.repo.common_dir)), "main", SystemClock())
    return log.append([event], operation="by-hand", fence=fence)[0].seq


def test_the_state_of_a_run_at_an_event_is_rebuilt_from_the_events_before_it(prepared: Prepared) -> None:
    project = prepared.get(reviewed)
    now = project.json("debug", "inspect", "1").data
    assert [(row["id"], row["status"]) for row in now["tasks"]] == [("T1-01", "completed"), ("T1-02", "waiting")]
    assert (now["state"], now["contract"]["version"], now["spent"]["cost_usd"]) == ("halted", 2, 0.5)
    asked = next(event for event in project.events("1") if event["kind"] == "decision.asked")
    then = project.json("debug", "inspect", now["run"][:6], "--at", str(asked["seq"])).data
    assert [row["status"] for row in then["tasks"]] == ["running", "pending"]
    assert [row["id"] for row in then["waiting"]] == ["T1-01.deviation.2"]
    assert (then["state"], then["contract"]["version"], then["event"]["kind"]) == ("active", 1, "decision.asked")
    assert "after event" in project.quick("debug", "inspect", "1").out
    early = project.json("debug", "inspect", "1", "--at", "1").error
    assert (early["code"], early["hint"]) == ("run.later", "idumb debug inspect 1 --at 2")


def test_the_stages_of_each_attempt_are_shown_with_their_times(prepared: Prepared) -> None:
    project = prepared.get(reviewed)
    shown = project.json("debug", "trace", "T1-01").data
    first, second = shown["attempts"]
    assert [stage["name"] for stage in first["stages"]] == ["built", "judged"]
    assert first["stages"][1]["facts"] == {"outcome": "failed", "reason": "AC-1 failed"}
    assert [stage["name"] for stage in second["stages"]] == ["built", "judged", "waited", "judged", "delivered"]
    built, _, waited, _, delivered = (stage["facts"] for stage in second["stages"])
    assert (built["binding"], built["model"], built["cost_usd"]) == ("coder", "middle", 0.25)
    assert (waited["decision"], waited["choice"]) == ("T1-01.deviation.2", "keep")
    assert delivered["commit"] == project.json("debug", "inspect", "1").data["tasks"][0]["commit"]
    stages = [stage for attempt in shown["attempts"] for stage in attempt["stages"]]
    assert all(stage["start"] <= stage["end"] and not stage["is_open"] for stage in stages)
    assert shown["waited_seconds"] == pytest.approx(second["stages"][2]["seconds"], abs=0.001)
    judged = project.json("debug", "trace", "T1-02").data["attempts"][0]["stages"]
    assert [(stage["name"], stage["is_open"]) for stage in judged][-1] == ("waited", True)
    assert "T1-01.deviation.2: keep, by" in project.quick("debug", "trace", "T1-01").out


def test_two_runs_are_shown_side_by_side_with_what_differs(project: Project) -> None:
    project.plan([making("T1-01", "a.txt"), failing_task("T1-02", "b.txt", after="T1-01")])
    assert project.execute("--max-attempts", "2", "--no-verify").code == 1
    first = project.json("debug", "inspect", "1").data["run"]
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")])
    assert project.execute("--no-verify").code == 0
    shown = project.json("debug", "compare", first, "1").data
    assert (shown["first"]["state"], shown["second"]["state"]) == ("failed", "completed")
    last = shown["tasks"][1]
    assert (last["first"]["status"], last["first"]["attempts"]) == ("failed", 2)
    assert (last["second"]["status"], last["second"]["attempts"]) == ("completed", 1)
    names = [row["name"] for row in shown["differences"]]
    assert {"contract", "text of T1-02", "base commit"} <= {*names}
    assert not {"mode", "text of T1-01"} & {*names}
    text = project.quick("debug", "compare", first, "1").out
    assert "attempt 2" in text
    assert all(len(line) <= 80 for line in text.splitlines()), text


def test_the_events_of_a_run_are_valid_until_an_object_that_they_name_is_gone(prepared: Prepared) -> None:
    project = prepared.get(doctors.create)
    valid = project.json("debug", "validate", "1")
    assert (valid.code, valid.data["faults"]) == (0, [])
    assert max(map(len, project.quick("debug", "validate", "1").out.splitlines())) <= 80
    assert project.json("debug", "replay", "1").code == 0
    for ref in project.repo.refs("refs/idumb/worktrees/main/done/"):
        project.repo.git("update-ref", "-d", ref)
    broken = project.json("debug", "validate", "1")
    assert (broken.code, broken.error["code"]) == (1, "audit.run-invalid")
    assert any("the plans of the run" in fault["why"] for fault in broken.data["faults"])


def test_an_event_that_may_not_follow_or_cannot_be_read_makes_a_run_invalid(prepared: Prepared) -> None:
    project = prepared.get(doctors.create)
    run = project.json("debug", "inspect", "1").data["run"]
    again = recorded(project, NewEvent("task.failed", {"reason": "", "attempts": 1}, run, "T1-01", 1))
    answered = {"decision": "T1-01.stop.1", "choice": "keep", "by": "me", "guidance": ""}
    unasked = recorded(project, NewEvent("decision.answered", answered, run, "T1-01"))
    unreadable = recorded(project, NewEvent("attempt.finished", {"outcome": "failed"}, run, "T1-02", 1))
    answer = project.json("debug", "validate", "1")
    assert answer.code == 1
    assert [(fault["event"], fault["why"]) for fault in answer.data["faults"]][:-1] == [
        (again, "T1-01 is completed"),
        (unasked, "T1-01.stop.1 was never asked"),
        (unreadable, "attempt 1 of T1-02 had ended"),
    ]
    assert answer.data["faults"][-1]["why"].startswith("its payload cannot be read: it lacks ")
    assert f"event {again}" in answer.error["message"]


def test_a_recorded_value_that_the_events_do_not_give_is_named_with_its_first_event(prepared: Prepared) -> None:
    project = prepared.get(doctors.create)
    run = project.json("debug", "inspect", "1").data["run"]
    wrong = recorded(project, NewEvent("task.failed", {"reason": "", "attempts": 7}, run, "T1-02", 1))
    answer = project.json("debug", "replay", "1")
    assert (answer.code, answer.error["code"]) == (1, "audit.differs")
    (first, *_) = answer.data["differences"]
    assert (first["event"], first["recorded"], first["rebuilt"]) == (wrong, 7, 1)


def test_a_run_whose_events_cannot_be_read_is_a_damaged_log(prepared: Prepared) -> None:
    project = prepared.get(doctors.create)
    run = project.json("debug", "inspect", "1").data["run"]
    seq = recorded(project, NewEvent("attempt.finished", {"outcome": "failed"}, run, "T1-02", 1))
    for command in ("inspect 1", "compare 1 1", "trace T1-01", "export 1", "replay 1", f"inspect {run}"):
        answer = project.json("debug", *command.split())
        assert (answer.code, answer.error["code"]) == (4, "store.corrupt"), command
        assert f"event {seq}, attempt.finished, cannot be read: it lacks 'reason'" in answer.error["message"]
        assert answer.error["hint"] == f"idumb debug validate {run}"
    assert project.json("status").error["code"] == "store.corrupt"


def test_a_run_without_events_is_a_damaged_log_and_no_name_names_no_run(prepared: Prepared) -> None:
    project = prepared.get(doctors.create)
    assert project.json("debug", "inspect", "").error["code"] == "phase.not-found"
    run = project.json("debug", "inspect", "1").data["run"]
    shutil.rmtree(user_folders.path())  # it knows the newest event, so that its absence would be found first
    with sqlite3.connect(project.repo.common_dir / "idumb" / "store.db") as db:
        for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {trigger}")
        db.execute("DELETE FROM events WHERE run = ?", (run,))
    db.close()
    answer = project.json("debug", "inspect", "1")
    assert (answer.error["code"], answer.error["hint"]) == ("store.corrupt", f"idumb debug validate {run}")
    invalid = project.quick("debug", "validate", run)
    assert f"Run {run} is not valid:\n  it has no event\n" in invalid.out
    assert "are not valid: it has no event [audit.run-invalid]" in invalid.err
