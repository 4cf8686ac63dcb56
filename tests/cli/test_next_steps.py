"""Following a refusal's next step works: it never leads in a circle or names something that does not exist."""

from __future__ import annotations

import os
import pty
import signal

import pytest

from tests.support import ended_runs, seed
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import edit
from tests.support.prepared import Prepared, prepared_project
from tests.support.project import Project


def _create(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "# A project\n"})


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return _create(sandbox)


verified = prepared_project(ended_runs.done)


@pytest.mark.parametrize(
    "command", seed.one_on_a_push([(("rollback", "1", "--to", "start"),), (("deinit",),)], "a question")
)
def test_one_interrupt_leaves_a_question(verified: Project, command: tuple[str, ...]) -> None:
    before = verified.repo.ledger()
    master, slave = pty.openpty()
    with verified.beside(*command, terminal=os.ttyname(slave)) as process:
        output = b""
        while b"Your choice" not in output:
            output += os.read(master, 4096)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait().code == 130
    os.close(slave)
    os.close(master)
    assert verified.repo.ledger().changed_paths(before) == []
    assert verified.quick("rollback", "1", "--to", "start", "--yes").code == 0


def test_status_says_whether_the_plan_or_the_configuration_changed_since_the_run(prepared: Prepared) -> None:
    """R-PLAN-11."""
    project = prepared.get(ended_runs.failed)
    configuration = project.folder / ".idumb/config.yaml"
    before = configuration.read_text(encoding="utf-8")
    configuration.write_text(before + "\nprotected: [x.txt]\n", encoding="utf-8")
    assert "it continues with the changed configuration, at T1-0" in project.quick("status").out
    configuration.write_text(before, encoding="utf-8")
    edit(project, "Task T1-01", "Another title")
    assert "it continues with the changed plan, at T1-0" in project.quick("status").out
