"""Questions at a terminal that time out: those of a run stay pending, those before a command end it."""

from __future__ import annotations

import io

from tests.cli.test_repository_states import at_terminal
from tests.support import ended_runs
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.prepared import Prepared
from tests.support.project import Project, making, shell

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
