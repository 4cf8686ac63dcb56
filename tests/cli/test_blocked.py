"""Tasks blocked by a failed or skipped task: the reason, and commands that unblock them."""

from __future__ import annotations

import json
import shlex

from tests.cli.test_editor import follows
from tests.cli.test_repository_states import at_terminal
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, shell
from tests.support.schemas import published

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


project = prepared_project(_failed)


skipped = prepared_project(_skipped)


def skip(project: Project, *flags: str) -> Answer:
    return project.quick("skip", "T1-01", "--why", "no time", *flags)


def test_dependents_of_a_skipped_task_stay_blocked_and_every_command_says_why_and_how_to_unblock_it(
    skipped: Project,
) -> None:
    """R-RUN-5, R-RUN-7: the run, `status`, `next` and `show`, as the schemas say; `resume` changes nothing."""
    project = skipped
    ended = project.quick("resume", "1", "--json")
    data = follows(ended, "run")
    assert ended.code == 1
    words = "T1-02, T1-03 stay blocked, because T1-01 was skipped: no time"
    assert (data["reason"], data["next"][:2]) == (words, [ACCEPT, DROP])
    assert [{k: v for k, v in one.items() if k != "actions"} for one in data["blocked"]] == HELD
    assert data["blocked"][0]["actions"] == [ACCEPT, DROP]
    rows = {row["id"]: row for row in data["tasks"]}
    assert rows["T1-02"]["reason"] == "waits for T1-01 (skipped: no time)"
    assert rows["T1-02"]["actions"] == [ACCEPT, DROP]
    assert rows["T1-03"]["actions"] == [ACCEPT, "idumb amend 1 --drop-dependency T1-03 T1-02"]
    assert project.events("--kind", "run.failed")[-1]["payload"]["reason"] == words
    row = follows(project.quick("status", "--json"), "status")["phases"][0]
    assert row["blocked"][0]["tasks"] == ["T1-02", "T1-03"]
    assert row["blocked"][0]["actions"] == row["others"][1]["actions"] == [ACCEPT, DROP]
    assert project.quick("next", "--json").data["next"]["command"] == ACCEPT
    mine = follows(project.quick("next", "1", "--json"), "upcoming")
    assert (mine["task"], mine["next"][:2], mine["blocked"][0]["actions"]) == (None, [ACCEPT, DROP], [ACCEPT, DROP])
    shown = follows(project.quick("show", "T1-02", "--json"), "show")
    assert (shown["status"], shown["actions"]) == ("blocked", [ACCEPT, DROP])
    assert shown["reason"] == "waits for T1-01 (skipped: no time)"
    for command in (("resume", "1"), ("status",), ("next",), ("next", "1"), ("show", "T1-02")):
        answer = project.quick(*command)
        text = f"{answer.out}{answer.err}"
        assert "skipped: no time" in text, text
        assert "no reason is recorded" not in text
        assert "Continue" not in text  # it would change nothing
        assert DROP in text, text
    for name in ("run", "status", "upcoming", "show"):
        assert '"actions"' in json.dumps(published(name))


def test_dropping_a_dependency_unblocks_the_task(skipped: Project) -> None:
    """R-RUN-5."""
    project = skipped
    assert project.quick(*shlex.split(DROP)[1:], "--yes").code == 0
    assert project.statuses() == {"T1-01": "skipped", "T1-02": "ready", "T1-03": "pending"}


def test_skip_lists_the_tasks_that_stay_blocked_before_it_acts(project: Project) -> None:
    """R-RUN-5, R-ASK-1."""
    skipped = skip(project)
    assert skipped.code == 0
    assert skipped.err.startswith("Skipping T1-01 leaves T1-02, T1-03 blocked.\n")
    assert f"Next: {ACCEPT}" in skipped.out
    held = project.quick("skip", "T1-02", "--why", "no", "--json").data["blocked"]
    assert (held[0]["by"], held[0]["tasks"]) == ("T1-02", ["T1-03"])


def test_at_a_terminal_skip_asks_before_it_blocks_other_tasks(project: Project) -> None:
    """R-ASK-1: an empty answer is a no."""
    words = ("skip", "T1-01", "--why", "no time")
    code, screen = at_terminal(project, words, "")
    assert code == 4, screen
    assert "leaves T1-02, T1-03 blocked" in screen
    assert "skip.not-confirmed" in screen
    assert project.statuses()["T1-01"] == "failed"
    assert at_terminal(project, words, "skip")[0] == 0
    assert project.statuses()["T1-01"] == "skipped"
    assert at_terminal(project, ("skip", "T1-03", "--why", "no time"))[0] == 0  # nothing depends on it
