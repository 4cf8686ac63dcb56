"""What people expect who know other workflow engines: names of events, commands, recovery, handoffs, dead letters."""

from __future__ import annotations

import re

import pytest

from idumb.cli import main
from idumb.domain.runs.event import ALIASES
from tests.cli.test_workflows import define, start, steps
from tests.docs.test_workflow_page import PAGE
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

WORKFLOW = """---
type: workflow
name: test-workflow
version: "1.0"
description: A workflow with two phases.
---

## Phase 1

### step-1: Do the first thing

```yaml step
kind: agent
agent: test-agent
files: {create: [one.txt]}
outputs: {summary: text}
handoff_to: [next-agent]
timeout: 1h
timeout_action: fail
```

## Phase 2

### step-2: Do the second thing

```yaml step
kind: agent
agent: next-agent
files: {create: [two.txt]}
retries: 0
acceptance: [{text: It is there, check: test -s two.txt}]
```
"""
AGENTS = """
bindings:
  test-agent: {adapter: command, argv: [sh, -c, "echo 1 > one.txt; echo '{\\"summary\\": \\"made one\\"}'"]}
  next-agent: {adapter: command, argv: [sh, -c, "test -e $IDUMB_REPOSITORY/allowed && echo 2 > two.txt"]}
"""


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.configure(AGENTS)
    define(project, WORKFLOW, "test-workflow")
    return project


def count(project: Project, kind: str) -> int:
    return len(project.quick("log", "W1", "--kind", kind, "--json").data["events"])


@pytest.mark.nightly
def test_a_workflow_emits_the_known_events_hands_on_fails_resumes_and_completes(project: Project) -> None:
    """R-PLAN-8, R-HAND-1, R-HAND-3, R-LOG-6: completed steps do not run again."""
    failed = start(project, "test-workflow")
    assert failed.code == 1
    assert steps(project) == {"step-1": "completed", "step-2": "failed"}
    for kind in ("workflow_started", "step_started", "step_completed", "handoff_created", "step_failed"):
        assert kind in ALIASES
        assert count(project, kind) >= 1, kind
    (handoff,) = project.quick("handoff", "list", "--json").data["handoffs"]
    assert (handoff["from_agent"], handoff["to_agent"]) == ("test-agent", "next-agent")
    assert (handoff["status"], handoff["summary"], handoff["workflow"]) == ("pending", "made one", "W1")
    assert project.exists(handoff["path"])
    letters = project.quick("dlq", "list", "--json").data["dead_letters"]
    assert {letter["kind"] for letter in letters} == {"task", "run"}
    assert count(project, "workflow_completed") == 0

    (project.folder / "allowed").write_text("")
    done = project.quick("resume", "W1", "--retry-failed", "--json")
    assert done.code == 0, done.out
    assert steps(project) == {"step-1": "completed", "step-2": "completed"}
    assert count(project, "workflow_completed") == 1
    attempts = [
        event["task"] for event in project.quick("log", "W1", "--kind", "attempt.started", "--json").data["events"]
    ]
    assert attempts.count("TW1-01") == 1
    assert not [letter for letter in project.quick("dlq", "list", "--json").data["dead_letters"] if letter["task"]]


def test_every_command_that_the_page_names_exists() -> None:
    section = PAGE.partition("## If you know other workflow engines")[2].partition("## Errors")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")]
    named = {word for row in rows for code in re.findall(r"`idumb (\w+)", row) for word in [code]}
    assert named
    assert named <= set(main.COMMANDS)
