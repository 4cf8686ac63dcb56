"""Every next step that an answer names can be taken: of each state, each command is tried as a user would paste it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support import choices, ended_runs, seed
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import edit, run
from tests.support.prepared import Prepared
from tests.support.project import Project, failing_task, making, shell, task, write

EDITOR = "builder: editor\n"


def planned(sandbox: GitSandbox, *tasks: str, head: str = "", tail: str = "", settings: str = "") -> Project:
    project = projects.create(sandbox)
    if settings:
        project.configure(settings)
    project.plan([*tasks], head=head, tail=tail)
    return project


def ran(sandbox: GitSandbox, *tasks: str, head: str = "", tail: str = "", settings: str = "") -> Project:
    project = planned(sandbox, *tasks, head=head, tail=tail, settings=settings)
    assert run(project).code in (0, 1, 5)
    return project


def two(**more: Any) -> tuple[str, str]:
    return making("T1-01", "a.txt"), task("T1-02", files="create `b.txt`", check="test -s b.txt", after="T1-01", **more)


def nothing_planned(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


def not_set_up(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    assert project.quick("deinit", "--yes").code == 0
    return project


def not_started(sandbox: GitSandbox) -> Project:
    return planned(sandbox, making("T1-01", "a.txt"))


def wrong_plan(sandbox: GitSandbox) -> Project:
    return planned(sandbox, making("T1-01", "a.txt"), making("T1-01", "b.txt"))


def strict_not_approved(sandbox: GitSandbox) -> Project:
    return planned(sandbox, making("T1-01", "a.txt"), head="mode: strict\n")


def consent_waits(sandbox: GitSandbox) -> Project:
    project = planned(sandbox, making("T1-01", "a.txt"))
    assert project.quick("execute-phase", "1").code == 5
    return project


def failed_and_asks(sandbox: GitSandbox) -> Project:
    tasks = failing_task("T1-01", "a.txt", fields="- **On failure:** ask\n"), making("T1-02", "b.txt", after="T1-01")
    return ran(sandbox, *tasks)


def failed_for_good(sandbox: GitSandbox) -> Project:
    return ran(sandbox, failing_task("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01"))


def undeclared(sandbox: GitSandbox) -> Project:
    return ran(sandbox, *two(steps=[shell("echo b > b.txt; echo c > c.txt")]))


def skipped_and_blocked(sandbox: GitSandbox) -> Project:
    project = failed_for_good(sandbox)
    assert project.quick("skip", "T1-01", "--why", "no time", "--yes").code == 0
    return project


def paused(sandbox: GitSandbox) -> Project:
    project = planned(sandbox, *two(steps=[write("b.txt", "made\n")]))
    with project.running("execute-phase", "1", "--approve", project.approval()) as running:
        running.wait_for("attempt.started", "T1-01")
        project.quick("stop", "--after-task")
        running.end()
    return project


def killed(sandbox: GitSandbox) -> Project:
    project = planned(sandbox, making("T1-01", "a.txt"), task("T1-02", after="T1-01", steps=[shell("sleep 2")]))
    with project.running("execute-phase", "1", "--approve", project.approval()) as running:
        running.wait_for("attempt.started", "T1-02")
        os.kill(running.pid, signal.SIGKILL)
        running.end()
    return project


def editor_ready(sandbox: GitSandbox) -> Project:
    made = task("T1-01", files="create `a.txt`", check="test -s a.txt")
    return planned(sandbox, made, two()[1], head=EDITOR)


def editor_open(sandbox: GitSandbox) -> Project:
    project = editor_ready(sandbox)
    assert project.quick("start", "T1-01", "--approve", project.approval()).code == 0
    return project


def unproven_criterion(sandbox: GitSandbox) -> Project:
    return ran(sandbox, making("T1-01", "a.txt"), tail="\n## Success Criteria\n\n- [ ] It is fast\n")


def not_verified(sandbox: GitSandbox) -> Project:
    project = planned(sandbox, making("T1-01", "a.txt"))
    assert run(project, "--no-verify").code == 0
    return project


def your_own_change_since(sandbox: GitSandbox) -> Project:
    project = ended_runs.done(sandbox)
    project.repo.commit_with({"a.txt": "mine\n"}, "mine", "a.txt")
    project.quick("verify-work", "1")
    return project


def dropped(sandbox: GitSandbox) -> Project:
    project = failed_for_good(sandbox)
    assert project.quick("drop", "1", "--why", "not needed").code == 0
    return project


def plan_gone(sandbox: GitSandbox) -> Project:
    project = ended_runs.failed(sandbox)
    project.repo.remove(".planning/phases/1/01-PLAN.md")
    return project


def plan_changed(sandbox: GitSandbox) -> Project:
    project = ended_runs.failed(sandbox)
    edit(project, "grep -q good a.txt", "grep -q bad a.txt")
    project.repo.commit("the check was wrong")
    return project


def another_branch(sandbox: GitSandbox) -> Project:
    project = ended_runs.failed(sandbox)
    project.repo.git("checkout", "-q", "-b", "elsewhere")
    return project


def commits_gone(sandbox: GitSandbox) -> Project:
    project = ran(sandbox, making("T1-01", "a.txt"), failing_task("T1-02", "b.txt", after="T1-01"))
    project.repo.git("reset", "-q", "--hard", "HEAD~2")
    return project


def archived(sandbox: GitSandbox) -> Project:
    project = ended_runs.done(sandbox)
    assert project.quick("archive").code == 0
    return project


STATES: tuple[Callable[[GitSandbox], Project], ...] = (
    nothing_planned,
    not_set_up,
    not_started,
    wrong_plan,
    strict_not_approved,
    consent_waits,
    failed_and_asks,
    failed_for_good,
    undeclared,
    skipped_and_blocked,
    paused,
    killed,
    editor_ready,
    editor_open,
    unproven_criterion,
    not_verified,
    your_own_change_since,
    dropped,
    plan_gone,
    plan_changed,
    another_branch,
    commits_gone,
    archived,
    ended_runs.done,
    ended_runs.failed,
    ended_runs.replaced,
)


def offered(project: Project) -> Iterator[str]:
    """Yield the commands of each answer about the state."""
    phase = project.json("status").data["next"].get("phase", "1")
    for words in (["status"], ["next"], ["next", phase], ["decisions"], ["resume", phase], ["verify-work", phase]):
        if words[0] not in ("resume", "verify-work"):
            answers = [project.json(*words)]
        else:
            with choices.put_back(project.folder, choices.state()):
                answers = [project.json(*words)]
        for answer in answers:
            yield from (way["command"] for way in answer.object["ways"])


@pytest.mark.parametrize("state", seed.one_on_a_push(STATES, "a state of a phase"))
def test_no_offered_command_is_refused(prepared: Prepared, state: Callable[[GitSandbox], Project]) -> None:
    """R-ASK-1, R-RUN-7: in this state."""
    project = prepared.get(state)
    commands = list(dict.fromkeys(offered(project)))
    assert {command: why for command in commands if (why := choices.refusal_of(project, command))} == {}
