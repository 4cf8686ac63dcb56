"""Questions at a terminal (R-ASK-3): one that times out stays pending or ends the command.

An answer that a setting can give is offered as that setting.
"""

from __future__ import annotations

import io
import signal
from pathlib import Path

import pytest

from idumb.cli import configuring
from idumb.domain import action
from idumb.domain.errors import Interrupted
from idumb.views.terminal import ask
from tests.cli.test_agent_failures import Scene
from tests.cli.test_repository_states import at_terminal
from tests.support import ended_runs
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.prepared import Prepared
from tests.support.project import Project, failing_task, making, shell
from tests.support.terminal import answering

STRAYING = making("T1-01", "a.txt", steps=[shell("echo a > a.txt; echo b > b.txt")])


def waiting(project: Project) -> list[str]:
    return [d["id"] for d in project.json("decisions").data["decisions"]]


def run(project: Project, *flags: str) -> Answer:
    return project.quick("execute-phase", "1", "--approve", project.approval(), *flags)


def test_the_configuration_sets_how_long_a_question_waits(project: Project) -> None:
    """R-ASK-3: no key is pressed, and the run's question becomes a pending decision."""
    project.configure("ask: {timeout: 1s}\n")
    project.plan([STRAYING])
    code, shown = at_terminal(project, ("execute-phase", "1", "--approve", project.approval()))
    assert code == 5, shown
    assert "No answer within 1.0s: no answer." in shown
    assert waiting(project) == ["T1-01.deviation.1"]
    assert project.json("status").data["owner"] is None


def test_a_timed_out_question_before_a_command_ends_it(prepared: Prepared, screen: io.StringIO) -> None:
    """R-ASK-3: a missing answer means no, and nothing was done."""
    project = prepared.get(ended_runs.done)
    before = project.repo.ledger()
    for number, command in enumerate(("rollback 1 --to start", "deinit", "approve 1", "undo"), 1):
        ended = project.quick(*command.split())
        assert ended.code == 4, ended
        assert screen.getvalue().count("No answer within") == number
    assert projects.user_bytes(before, project.repo.ledger()) == []
    assert waiting(project) == []


STRAYS_AGAIN = making("T2-01", "c.txt", steps=[shell("echo c > c.txt; echo d > d.txt")])


def test_an_answer_is_remembered_after_a_yes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.plan([STRAYING])
    project.plan([STRAYS_AGAIN], phase="2")
    before = project.read(".idumb/config.yaml")
    screen = answering(monkeypatch, "keep", "yes")
    assert run(project).code == 0
    assert "Remember this? It would set `run.on_deviation: keep` in .idumb/config.yaml" in screen.getvalue()
    assert project.read(".idumb/config.yaml") == f"{before}run:\n  on_deviation: keep\n"
    (remembered,) = project.events("1", "--kind", "setting.remembered")
    assert remembered["payload"] == {"setting": "run.on_deviation", "value": "keep"}
    screen = answering(monkeypatch)
    assert project.quick("execute-phase", "2", "--approve", project.approval("2")).code == 0
    assert (screen.getvalue(), project.read("d.txt")) == ("", "d\n")


def test_nothing_is_written_without_a_yes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor while a run would lose its configuration: then the command is named at the end."""
    project.plan([STRAYING])
    before = project.read(".idumb/config.yaml")
    screen = answering(monkeypatch, "keep", "no")
    assert run(project).code == 0
    assert "Remember this?" in screen.getvalue()
    project.plan([STRAYS_AGAIN, failing_task("T2-02", "e.txt")], phase="2")
    screen = answering(monkeypatch, "leave-out")
    ended = project.quick("execute-phase", "2", "--approve", project.approval("2"))
    assert ended.code == 1
    assert "idumb config set run.on_deviation leave-out makes an answer permanent" in ended.err
    assert "Remember this?" not in screen.getvalue()
    assert project.read(".idumb/config.yaml") == before


@pytest.mark.nightly
def test_an_interruption_at_the_question_counts_as_no(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has its result already."""

    def typed(_: ask.Terminal, asked: action.Decision) -> action.Answer:
        if asked.kind == "remember":
            raise Interrupted(signal.SIGINT)
        return action.Answer(asked.id, "keep", "me")

    project.plan([STRAYING])
    before, _ = project.read(".idumb/config.yaml"), answering(monkeypatch)
    monkeypatch.setattr(ask.Terminal, "ask", typed)
    ended = run(project)
    assert (ended.code, project.statuses()) == (0, {"T1-01": "completed"}), ended.err
    assert project.read(".idumb/config.yaml") == before
    assert project.events("1", "--kind", "setting.remembered") == []


@pytest.mark.nightly
def test_a_setting_that_cannot_be_written_is_named_and_fails_no_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(configuring, "change", fail)
    project.plan([STRAYING])
    answering(monkeypatch, "keep", "yes")
    ended = run(project)
    assert (ended.code, "idumb config set run.on_deviation keep does it later" in ended.err) == (0, True)
    assert project.events("1", "--kind", "setting.remembered") == []


@pytest.mark.nightly
def test_a_raised_ceiling_is_remembered_as_the_higher_one(
    project: Project, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = {"usage": {"cost_usd": 1.5}}
    Scene(project, home, {"write": "a", **used}, {"write": "done"}, settings="ceilings: {run: {cost_usd: 1.50}}\n")
    answering(monkeypatch, "raise", "yes")
    assert run(project).code == 0
    assert "ceilings: {run: {cost_usd: 3}}\n" in project.read(".idumb/config.yaml")


@pytest.mark.nightly
def test_an_answer_that_its_own_effect_forgot_is_no_setting(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed verification forgets the answers about the phase, and work that is reset those about the task."""
    project.plan([making("T1-01", "a.txt")], head="success_criteria: ['It looks good — human']\n")
    answering(monkeypatch, "no")
    assert "All tasks of phase 1 are done, but verify-work says failed" in run(project).err
    project.plan([making("T2-01", "b.txt"), failing_task("T2-02", "e.txt")], phase="2")
    approved = ("--approve", project.approval("2"))
    assert project.quick("execute-phase", "2", *approved).code == 1
    project.repo.git("reset", "-q", "--hard", "HEAD~1")
    answering(monkeypatch, "again")
    ended = project.quick("resume", "2", "--retry-failed")
    assert (ended.code, project.read("b.txt")) == (1, "made\n"), ended
