"""What every run has, a run of a workflow has too: where it runs, who commits, rollback, undo, proof and reports."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_workflows import define, start, steps
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project
from tests.support.seed import one_on_a_push

BRANCHES = """---
type: workflow
name: w
version: 1.0.0
description: An agent, a branch, and a step after it.
inputs: {word: text}
---

## All

### make: Make it

```yaml step
kind: agent
files: {create: [a.txt]}
acceptance: [{text: It is there, check: 'grep -q "$INPUT_WORD" a.txt'}]
outputs: {word: {type: text, file: a.txt}, size: integer}
```

### is-more: More?

```yaml step
kind: condition
if: steps.make.size > 3 and steps.make.word != ''
then: [more]
else: [less]
```

### more: Add more

```yaml step
kind: script
run: echo "$WORD" >> a.txt; echo 2
takes: {WORD: make.word}
files: {modify: [a.txt]}
outputs: {lines: integer}
```

### less: Remove it

```yaml step
kind: script
run: rm a.txt
files: {delete: [a.txt]}
```

### last: Use the number

```yaml step
kind: script
run: echo "$LINES" > sub.txt
takes: {LINES: {from: more.lines, default: 0}}
files: {create: [sub.txt]}
```
"""
AGENT = 'echo "$INPUT_WORD" > a.txt; echo \'{"size": 5}\''
STATUSES = {"make": "completed", "is-more": "completed", "more": "completed", "less": "omitted", "last": "completed"}


def workflow_project(sandbox: GitSandbox, settings: str = "") -> Project:
    project = projects.create(sandbox)
    argv = json.dumps(["sh", "-c", AGENT])
    project.configure(f"builder: b\nbindings:\n  b: {{adapter: command, argv: {argv}}}\n{settings}")
    define(project, BRANCHES, "w")
    project.repo.write("mine.txt", "never committed\n")
    return project


def reported(project: Project) -> None:
    """What is shown of a run names the branch that it took; its checks see the inputs when they run again."""
    assert project.quick("prove", "W1").code == 0
    graph = project.quick("graph", "W1").out
    assert "(true: TW1-03, false: TW1-04)" in graph
    assert "omitted    TW1-04" in graph
    calls = project.quick("show", "W1", "--usage", "--json").data["calls"]
    assert {row["task"] for row in calls} == {"TW1-01", "TW1-02", "TW1-03", "TW1-05"}
    assert project.quick("audit", "verify").code == 0
    assert project.quick("audit", "workspace", "W1").code == 0
    assert "n1 -->|false| n3" in project.read(".planning/workflows/001-w/001-w-SUMMARY.md")


@pytest.mark.nightly
@pytest.mark.parametrize("settings", one_on_a_push(["", "git: {commit: none}\n"], "commits of workflows"))
def test_a_workflow_is_proven_rolled_back_repeated_and_undone(sandbox: GitSandbox, settings: str) -> None:
    """R-PLAN-8: under each policy of commits; the branch is chosen again the same."""
    project = workflow_project(sandbox, settings)
    refused = project.quick("workflow", "run", "w", "--input", "word=good", "--json")
    consent = ("--approve", refused.error["details"]["consent_hash"])
    if not settings:
        rehearsed = project.json("workflow", "run", "w", "--input", "word=good", "--dry-run", *consent)
        would = {row["task"] for row in rehearsed.data["dry_run"]["would_commit"]}
        assert would == {"TW1-01", "TW1-03", "TW1-05"}, rehearsed.out
    done = project.json("workflow", "run", "w", "--input", "word=good", *consent)
    assert done.code == 0, done.out
    assert steps(project) == STATUSES
    committed = project.repo.git("log", "--format=%s").splitlines()
    subjects = [] if settings else ["Use the number", "Add more", "Make it"]
    assert [s for s in committed if s in {"Make it", "Add more", "Use the number"}] == subjects
    if not settings:
        reported(project)

    assert project.json("rollback", "W1", "--to", "TW1-01", "--yes").code == 0
    assert (project.read("a.txt"), project.exists("sub.txt")) == ("good\n", False)
    assert steps(project) == {"make": "completed", "is-more": "ready", "more": "pending", "less": "pending",
                              "last": "pending"}  # fmt: skip
    again = project.json("resume", "W1", "--deterministic")
    assert again.code == 0, again.out
    assert (project.read("a.txt"), project.read("sub.txt")) == ("good\ngood\n", "2\n")
    assert steps(project) == STATUSES

    if not settings:
        assert project.json(*project.undoing()).code == 0
    assert project.json("rollback", "W1", "--to", "start", "--yes").code == 0
    assert (project.exists("a.txt"), project.exists("sub.txt")) == (False, False)
    assert project.read("mine.txt") == "never committed\n"


def test_a_failed_workflow_is_a_dead_letter_and_resumes_at_the_failed_step(sandbox: GitSandbox) -> None:
    """Completed steps are not repeated; later ones wait."""
    project = workflow_project(sandbox)
    allowed = project.folder.parent / "allowed"
    define(project, BRANCHES.replace('run: echo "$LINES"', f'retries: 0\nrun: test -e {allowed} && echo "$LINES"'), "w")
    failed = start(project, "w", "--input", "word=good")
    assert failed.code == 1
    letters = project.quick("dlq", "list", "--json").data["dead_letters"]
    assert ("TW1-05", "permanent") in [(letter["task"], letter["class"]) for letter in letters]
    assert len(project.quick("log", "W1", "--kind", "workflow_failed", "--json").data["events"]) == 1
    allowed.touch()
    assert project.quick("dlq", "retry", "TW1-05").code == 0
    assert steps(project) == STATUSES
    started = project.quick("log", "W1", "--kind", "step_started", "--json").data["events"]
    assert sorted(event["task"] for event in started) == ["TW1-01", "TW1-02", "TW1-03", "TW1-05", "TW1-05"]
    assert project.quick("dlq", "list", "--json").data["dead_letters"] == []
