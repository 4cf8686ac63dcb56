"""R-PLAN-2: plans of GSD run as they are, and idumb never writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

FOLDER = ".planning/phases/03-greeting"
FIRST = """---
phase: 03-greeting
plan: 01
type: execute
wave: 1
depends_on: []
files_modified: [hello.txt, bye.txt]
autonomous: true
must_haves:
  artifacts:
    - path: hello.txt
      provides: the greeting
      contains: made
---

<objective>
Greet people.
</objective>

<tasks>

<task type="auto">
  <name>Task 1: Say hello</name>
  <files>hello.txt</files>
  <action>Make hello.txt. Leave `</task>` in text alone.</action>
  <verify><automated>grep -q made hello.txt</automated></verify>
  <done>The file greets</done>
</task>

<task type="auto">
  <name>Task 2: Say goodbye</name>
  <files>bye.txt</files>
  <action>Make bye.txt</action>
  <verify>
    <automated>grep -q made bye.txt</automated>
  </verify>
  <done>The file says goodbye</done>
</task>

</tasks>
"""
SECOND = """---
phase: 03-greeting
plan: 02
type: execute
wave: 2
depends_on: []
autonomous: false
must_haves:
  truths: ["The greeting sounds friendly"]
---
<tasks>
<task type="auto">
  <name>Task 1: Say thanks</name>
  <files>thanks.txt</files>
  <action>Make thanks.txt</action>
  <verify>Read it</verify>
  <done>It sounds sincere</done>
</task>
</tasks>
"""
# Makes the files that the prompt lists as the task's own.
BUILDER = r"""grep -o 'change `[a-z.]*`' | cut -d '`' -f 2 | while read -r name; do echo made > "$name"; done"""


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.built_by(BUILDER)
    return project


def write(project: Project, **plans: str) -> None:
    folder = project.folder / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for number, text in plans.items():
        Path(folder, f"03-{number.removeprefix('p')}-PLAN.md").write_text(text, encoding="utf-8")
    project.commit_own()


def test_a_plan_of_gsd_runs_to_its_verification_and_is_never_written(project: Project) -> None:
    """R-PLAN-2, R-LOCK-1: approved by its hash, locked, executed in order, verified."""
    write(project, p01=FIRST)
    answer = project.execute(phase="3")
    assert answer.code == 0, answer
    assert project.statuses("3") == {"T03-0101": "completed", "T03-0102": "completed"}
    assert project.trailers("Idumb-Task") == ["T03-0101", "T03-0102"]
    assert answer.data["verification"]["status"] == "passed"
    assert project.read(f"{FOLDER}/03-01-PLAN.md") == FIRST


def test_the_answer_names_dialect_tasks_and_dependencies_of_every_plan(project: Project) -> None:
    write(project, p01=FIRST, p02=SECOND)
    answer = project.quick("check-plan", "3", "--json")
    first, second = answer.data["read"]
    assert (first["dialect"], first["tasks"]) == ("gsd", ["T03-0101", "T03-0102"])
    assert first["depends_on"] == {"T03-0101": [], "T03-0102": ["T03-0101"]}
    assert second["depends_on"] == {"T03-0201": ["T03-0101", "T03-0102"]}
    assert [(f["code"], f["severity"], f["line"]) for f in answer.data["findings"]] == [
        ("task.no-proof", "warning", 17)
    ]
    refused = FIRST.replace("</task>\n\n</tasks>", "\n\n</tasks>")
    write(project, p01=refused)
    answer = project.quick("check-plan", f"{FOLDER}/03-01-PLAN.md", "--json")
    assert (answer.code, [f["code"] for f in answer.data["findings"]]) == (3, ["dialect.never-closed"])
    assert [(row["path"], row["tasks"]) for row in answer.data["read"]] == [(f"{FOLDER}/03-01-PLAN.md", ["T03-0101"])]


@pytest.mark.nightly
def test_a_task_without_a_check_waits_until_its_author_adds_one_and_idumb_writes_nothing(project: Project) -> None:
    """R-RUN-3: or until a person accepts it. The amendment adopts the author's change."""
    write(project, p01=FIRST, p02=SECOND)
    answer = project.execute(phase="3")
    assert (answer.code, answer.error["code"]) == (5, "run.waiting")
    assert project.statuses("3")["T03-0201"] == "waiting"
    (decision,) = project.json("decisions").data["decisions"]
    assert "nothing proves this task" in json.dumps(decision)
    refused = project.quick("amend", "3", "--widen", "T03-0201", "modify more.txt", "--yes", "--json")
    assert (refused.code, refused.error["code"]) == (4, "amend.foreign-plan")
    proven = SECOND.replace(
        "<verify>Read it</verify>", "<verify><automated>grep -q made thanks.txt</automated></verify>"
    )
    write(project, p02=proven)
    amended = project.quick("amend", "3", "--from-file", "--yes", "--json")
    assert amended.code == 0, amended
    assert project.resume(phase="3").code in (0, 5)
    assert project.statuses("3")["T03-0201"] == "completed"
    assert project.read(f"{FOLDER}/03-02-PLAN.md") == proven
