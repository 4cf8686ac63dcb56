"""R-ASK-3: an answer that a setting can give is offered as that setting."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from idumb.cli import configuring
from idumb.domain.decision import Answer, Decision
from idumb.domain.errors import Interrupted
from idumb.views.terminal import ask
from tests.cli.test_agent_failures import Scene
from tests.cli.test_question_timeouts import STRAYING, run
from tests.support.project import Project, failing_task, making, shell
from tests.support.terminal import answering

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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


def test_an_interruption_at_the_question_counts_as_no(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has its result already."""

    def typed(self: ask.Terminal, decision: Decision) -> Answer:
        if decision.kind == "remember":
            raise Interrupted(signal.SIGINT)
        return Answer(decision.id, "keep", "me")

    project.plan([STRAYING])
    before = project.read(".idumb/config.yaml")
    answering(monkeypatch)
    monkeypatch.setattr(ask.Terminal, "ask", typed)
    ended = run(project)
    assert (ended.code, project.statuses()) == (0, {"T1-01": "completed"}), ended.err
    assert project.read(".idumb/config.yaml") == before
    assert project.events("1", "--kind", "setting.remembered") == []


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


def test_a_raised_ceiling_is_remembered_as_the_higher_one(
    project: Project, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = {"usage": {"cost_usd": 1.5}}
    Scene(project, home, {"write": "a", **used}, {"write": "done"}, settings="ceilings: {run: {cost_usd: 1.50}}\n")
    answering(monkeypatch, "raise", "yes")
    assert run(project).code == 0
    assert "ceilings: {run: {cost_usd: 3}}\n" in project.read(".idumb/config.yaml")


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
