"""Ctrl-C in commands without their own signal handling: exit code 130 and one line (docs/exit-codes.md)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making

# Presses Ctrl-C at the moment that a module is asked for: a place in the command that is the same each time.
WORDS = (130, "", ["idumb: interrupted [run.interrupted]", "  next: to see the state of the run: idumb status"])

PRESSING = """
import os, signal, sys
moment, sys.argv = sys.argv[1], ["idumb", *sys.argv[2:]]
class Pressing:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressing())
from idumb.__main__ import main
main()
"""


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    return project


def test_ctrl_c_during_a_command_exits_with_130_and_one_line(project: Project) -> None:
    """The handling is that of the command line; each command has it."""
    assert interrupted(project, "idumb.app.upkeep.doctor", "doctor") == WORDS


def interrupted(project: Project, moment: str, *arguments: str) -> tuple[int, str, list[str]]:
    """Return exit code, output and the visible text; a blank line only ends the one in which the terminal shows ^C."""
    process = subprocess.run(
        [sys.executable, "-c", PRESSING, moment, *arguments],
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr.lstrip("\n").splitlines()
