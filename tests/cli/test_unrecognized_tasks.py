"""R-PLAN-5: a task that is not recognized is an error, which stops no plan approved before that rule."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import PLAN, edit
from tests.support.project import Project, making, task

LOST = "### Add the thing\n\n- **Depends on:** none\n- **Files:** create `x.txt`\n- **Verify:** `false`\n\n"
CHOICE = "- **Kind:** decision\n- **Options:**\n  - one: the first\n  - two: the second\n"
_EARLIER = """
import sys

from idumb.cli import main
from idumb.markdown.plans import plan_parser

whole = plan_parser.parse
plan_parser.parse = lambda data, path, *others, **flags: whole(data, path, *others, **flags).as_agreed
sys.exit(main.run(sys.argv[1:]))
"""


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


def plan(project: Project, *tasks: str) -> None:
    project.plan(list(tasks))
    edit(project, "### T1-", LOST + "### T1-")


def by_an_earlier_version(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command under the rules that came before, which read such headings as text."""
    command = [sys.executable, "-c", _EARLIER, *arguments]
    return subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["check-plan", "execute-phase"])
def test_a_heading_with_fields_and_no_id_stops_the_plan_at_its_line(project: Project, command: str) -> None:
    plan(project, making("T1-02", "a.txt"))
    line = (project.folder / PLAN).read_text(encoding="utf-8").split("\n").index("### Add the thing") + 1
    answer = project.quick(command, "1", "--json")
    assert (answer.code, answer.error["code"]) == (3, "plan.invalid")
    findings = answer.data["findings"] if command == "check-plan" else answer.error["details"]["findings"]
    assert [(f["code"], f["line"]) for f in findings if f["severity"] == "error"] == [("task.heading-without-id", line)]
    text_answer = project.quick(command, "1")
    assert f"{PLAN}:{line}" in text_answer.out + text_answer.err
    assert "This heading has no task id" in text_answer.out + text_answer.err


def test_a_started_plan_continues_under_the_rules_of_its_lock(project: Project) -> None:
    """Questions, answers, amendment and resume, each under the approved contract."""
    plan(project, making("T1-01", "a.txt"), task("T1-02", after="T1-01", fields=CHOICE))
    shown = by_an_earlier_version(project, "check-plan", "1", "--json")
    hash = json.loads(shown.stdout)["data"]["contract_hash"]
    begun = by_an_earlier_version(project, "execute-phase", "1", "--approve", hash, "--json")
    assert begun.returncode == 5, begun
    assert project.quick("status").code == 0
    assert project.quick("next").code == 0
    checked = project.quick("check-plan", "1", "--json")
    assert (checked.code, checked.data["contract_hash"]) == (0, hash)
    assert [f["code"] for f in checked.data["findings"] if "no task id" in f["message"]] == ["task.heading-without-id"]
    waiting = project.quick("decisions", "--json").data["decisions"]
    assert waiting
    assert project.quick("amend", "1", "--decision", "all the same", "--yes", "--json").code == 0
    assert project.quick("decide", waiting[0]["id"], "one", "--json").code == 0
    ended = project.quick("resume", "1", "--json")
    assert ended.code == 0, ended
    assert Path(project.folder, "a.txt").is_file()
