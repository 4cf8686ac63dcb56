"""Tasks that are blocked or dropped: the reason, and commands that unblock them or take them up again (R-RUN-5)."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess

import pytest

from tests.cli.test_repository_states import at_terminal
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, failing_task, making, shell
from tests.support.schemas import published


def dropped(project: Project, *words: str) -> Answer:
    return project.json("drop", *words, "--why", "not wanted")


def _stopped(sandbox: GitSandbox) -> Project:
    """T1-01 is done, T1-02 failed, T1-03 depends on it, T1-04 on nothing; phase 2 has not begun."""
    project = projects.create(sandbox)
    last = making("T1-04", "d.txt")
    project.plan(
        [making("T1-01", "a.txt"), failing_task("T1-02", "b.txt"), making("T1-03", "c.txt", after="T1-02"), last]
    )
    project.plan([making("T2-01", "e.txt")], phase="2")
    assert project.execute("--max-attempts", "1").code == 1
    return project


stopped = prepared_project(_stopped)


@pytest.mark.nightly
def test_a_dropped_task_takes_along_what_depends_on_it_and_the_phase_can_end(stopped: Project) -> None:
    before = stopped.statuses()
    answer = dropped(stopped, "T1-02")
    assert (answer.code, answer.data["tasks"], answer.data["next"][0]) == (0, ["T1-02", "T1-03"], "idumb resume 1")
    assert stopped.json("show", "T1-03").data["reason"] == "dropped: not wanted"
    ended = stopped.resume()
    assert (ended.code, ended.data["verification"]["skipped"]) == (0, ["T1-02", "T1-03"])
    assert stopped.json("status").data["phases"][0]["state"] == "verified"
    assert stopped.json("undo", "--yes", "--operation", answer.data["operation"]).code == 0
    assert stopped.statuses() == before


def test_a_phase_whose_plan_was_removed_can_be_dropped_or_its_plan_restored(stopped: Project) -> None:
    """R-LOG-6: as by a person who moves plans away. The commands that the refusal offers work."""
    shutil.rmtree(stopped.folder / ".planning/phases/1")
    refused = stopped.json("resume", "1")
    offered = {choice["id"]: choice["command"] for choice in refused.error["details"]["choices"]}
    assert offered["drop"] == "idumb drop 1 --why REASON"
    subprocess.run(["sh", "-c", offered["bring-back"]], cwd=stopped.folder, check=True)
    assert stopped.json("status").data["phases"][0]["state"] == "failed"
    shutil.rmtree(stopped.folder / ".planning/phases/1")
    assert dropped(stopped, "1").data["tasks"] == ["T1-02", "T1-03"]
    row = stopped.json("status").data["phases"][0]
    assert (row["state"], row["tasks"]["completed"], row["reason"]) == ("dropped", 2, "its plan was removed since")


def test_a_phase_in_a_renamed_folder_is_dropped_there(stopped: Project) -> None:
    """As by a person who adds a name to the folder: its plan is not gone, and no second folder of the phase appears."""
    folder = stopped.folder / ".planning/phases/1"
    folder.rename(folder.with_name("1-auth"))
    assert dropped(stopped, "1").code == 0
    assert not folder.exists()


@pytest.mark.nightly
def test_a_dropped_phase_is_not_what_comes_next_and_undo_takes_it_up_again(stopped: Project) -> None:
    before = stopped.statuses()
    answer = dropped(stopped, "1")
    assert (answer.code, answer.data["tasks"], answer.data["phase"]) == (0, ["T1-02", "T1-03"], "1")
    row, _ = stopped.json("status").data["phases"]
    assert (row["state"], row["reason"], row["decisions"]) == ("dropped", "not wanted", [])
    assert stopped.json("next").data["next"]["command"] == "idumb execute-phase 2"
    for words in (["execute-phase", "1"], ["resume", "1"], ["verify-work", "1"], ["accept", "T1-02", "--why", "good"]):
        refused = stopped.json(*words)
        assert (refused.code, refused.error["code"]) == (4, "phase.dropped"), words
    assert stopped.json("prove", "1").data["proven"]
    assert stopped.json(*shlex.split(refused.error["hint"])[1:]).code == 0
    assert stopped.statuses() == before
    assert stopped.json("next").data["next"]["command"] == "idumb decisions"
    assert stopped.json(*stopped.undoing()).code == 0
    assert stopped.json("status").data["phases"][0]["state"] == "dropped"


def test_a_phase_that_never_ran_asks_nothing_once_dropped_and_is_not_active_after_an_undo(stopped: Project) -> None:
    operation = dropped(stopped, "2").data["operation"]
    assert stopped.json("execute-phase", "2").error["code"] == "phase.dropped"
    assert stopped.json("undo", "--yes", "--operation", operation).code == 0
    assert stopped.json("status").data["phases"][1]["state"] == "halted"


def test_an_unwanted_quick_task_can_be_dropped_and_next_forgets_it(project: Project) -> None:
    words = ("quick", "Fix it", "--files", "README.md", "--check", "false", "--builder", "human")
    consent = project.json(*words).error["details"]["consent_hash"]
    assert project.json(*words, "--approve", consent).code == 5
    assert project.json("next").data["next"]["phase"] == "Q1"
    assert dropped(project, "q1").code == 0
    assert project.json("next").data["next"].get("phase") != "Q1"
    assert project.quick("decisions").out.strip() == "No questions are waiting for an answer."


@pytest.mark.nightly
def test_what_is_done_cannot_be_dropped(stopped: Project) -> None:
    assert dropped(stopped, "T1-01").error["code"] == "drop.nothing-left"
    assert stopped.json("execute-phase", "2", "--approve", stopped.approval("2")).code == 0
    refused = dropped(stopped, "2")
    assert (refused.code, refused.error["code"]) == (4, "drop.nothing-left")
    assert stopped.json("drop", "1", "--why", " ").error["code"] == "task.no-reason"


ACCEPT, DROP = "idumb accept T1-01 --why REASON", "idumb amend 1 --drop-dependency T1-02 T1-01"
HELD = [{"by": "T1-01", "status": "skipped", "reason": "no time", "tasks": ["T1-02", "T1-03"]}]


def _failed(sandbox: GitSandbox) -> Project:
    """T1-02 needs T1-01, and T1-03 needs T1-02; T1-01 fails."""
    project = projects.create(sandbox)
    tasks = [
        making("T1-01", "a.txt", steps=[shell("false")], fields="- **On failure:** block\n"),
        making("T1-02", "b.txt", after="T1-01"),
        making("T1-03", "c.txt", after="T1-02"),
    ]
    project.plan(tasks)
    assert run(project).code == 1
    return project


def _skipped(sandbox: GitSandbox) -> Project:
    project = _failed(sandbox)
    assert skip(project).code == 0
    return project


halting = prepared_project(_failed)
skipped = prepared_project(_skipped)


def skip(project: Project) -> Answer:
    return project.quick("skip", "T1-01", "--why", "no time")


def test_dependents_of_a_skipped_task_stay_blocked_and_every_command_says_why_and_how_to_unblock_it(
    skipped: Project,
) -> None:
    """R-RUN-5, R-RUN-7: the run, `status`, `next` and `show`, as the schemas say; `resume` changes nothing."""
    ended = skipped.quick("resume", "1", "--json")
    data = ended.data
    assert ended.code == 1
    words = "T1-02, T1-03 stay blocked, because T1-01 was skipped: no time"
    assert (data["reason"], data["next"][:2]) == (words, [ACCEPT, DROP])
    assert [{k: v for k, v in one.items() if k != "actions"} for one in data["blocked"]] == HELD
    assert data["blocked"][0]["actions"] == [ACCEPT, DROP]
    rows = {row["id"]: row for row in data["tasks"]}
    assert rows["T1-02"]["reason"] == "waits for T1-01 (skipped: no time)"
    assert rows["T1-02"]["actions"] == [ACCEPT, DROP]
    assert rows["T1-03"]["actions"] == [ACCEPT, "idumb amend 1 --drop-dependency T1-03 T1-02"]
    assert skipped.events("--kind", "run.failed")[-1]["payload"]["reason"] == words
    row = skipped.quick("status", "--json").data["phases"][0]
    assert row["blocked"][0]["tasks"] == ["T1-02", "T1-03"]
    assert row["blocked"][0]["actions"] == row["others"][1]["actions"] == [ACCEPT, DROP]
    assert skipped.quick("next", "--json").data["next"]["command"] == ACCEPT
    mine = skipped.quick("next", "1", "--json").data
    assert (mine["task"], mine["next"][:2], mine["blocked"][0]["actions"]) == (None, [ACCEPT, DROP], [ACCEPT, DROP])
    shown = skipped.quick("show", "T1-02", "--json").data
    assert (shown["status"], shown["actions"]) == ("blocked", [ACCEPT, DROP])
    assert shown["reason"] == "waits for T1-01 (skipped: no time)"
    for command in (("resume", "1"), ("status",), ("next",), ("next", "1"), ("show", "T1-02")):
        answer = skipped.quick(*command)
        text = f"{answer.out}{answer.err}"
        assert "skipped: no time" in text, text
        assert "no reason is recorded" not in text
        assert "Continue" not in text  # it would change nothing
        assert DROP in text, text
    for name in ("run", "status", "upcoming", "show"):
        assert any(word in json.dumps(published(name)) for word in ('"actions"', '"blocked.json"'))


def test_dropping_a_dependency_unblocks_the_task(skipped: Project) -> None:
    """R-RUN-5."""
    assert skipped.quick(*shlex.split(DROP)[1:], "--yes").code == 0
    assert skipped.statuses() == {"T1-01": "skipped", "T1-02": "ready", "T1-03": "pending"}


def test_what_stopped_a_run_is_past_once_a_person_settled_it(skipped: Project) -> None:
    assert skipped.quick("resume", "1").code == 1
    assert dropped(skipped, "T1-02").code == 0
    assert skipped.json("status").data["next"]["why"] == "its run is not finished"


def test_skip_lists_the_tasks_that_stay_blocked_before_it_acts(halting: Project) -> None:
    """R-RUN-5, R-ASK-1."""
    skipped = skip(halting)
    assert skipped.code == 0
    assert skipped.err.startswith("Skipping T1-01 leaves T1-02, T1-03 blocked.\n")
    assert f"Next: {ACCEPT}" in skipped.out
    held = halting.quick("skip", "T1-02", "--why", "no", "--json").data["blocked"]
    assert (held[0]["by"], held[0]["tasks"]) == ("T1-02", ["T1-03"])


@pytest.mark.nightly
def test_at_a_terminal_skip_asks_before_it_blocks_other_tasks(halting: Project) -> None:
    """R-ASK-1: an empty answer is a no."""
    words = ("skip", "T1-01", "--why", "no time")
    code, screen = at_terminal(halting, words, "")
    assert code == 4, screen
    assert "leaves T1-02, T1-03 blocked" in screen
    assert "skip.not-confirmed" in screen
    assert halting.statuses()["T1-01"] == "failed"
    assert at_terminal(halting, words, "skip")[0] == 0
    assert halting.statuses()["T1-01"] == "skipped"
    assert at_terminal(halting, ("skip", "T1-03", "--why", "no time"))[0] == 0  # nothing depends on it
