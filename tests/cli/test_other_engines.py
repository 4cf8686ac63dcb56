"""What users of other workflow engines write and type: each example runs here, or is refused with what to do instead.

The table is in docs/workflow-format.md (R-PLAN-8).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from tests.cli.test_workflows import define, start, steps
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

PIPELINE = """---
type: workflow
name: pipeline
version: "1.0"
description: Two phases, with every kind of step.
---

## Phase 1

### step-1: Make it

```yaml step
kind: agent
agent: test-agent
timeout: 3600s
files: {create: [made.txt]}
acceptance: [{text: It is made, check: test -s made.txt}]
outputs: {summary: text}
handoff_to: ["next-agent (escalation)", "human (never)", nobody]
priority: high
notes: Review it
```

### step-2: Succeed at the second attempt

```yaml step
kind: script
run: test "$IDUMB_ATTEMPT" -gt 1
retries: 3
```

## Phase 2

### step-3: Take too long

```yaml step
kind: script
run: tail -f /dev/null
timeout: 1s
timeout_action: skip
```

### step-4: Was it too long?

```yaml step
kind: condition
if: steps.step-3.outcome == 'omitted'
then: [step-5]
```

### step-5: Continue

```yaml step
kind: script
run: echo "$SUMMARY" > second.txt
takes: {SUMMARY: step-1.summary}
files: {create: [second.txt]}
rollback: {compensatable: ["true"]}
```
"""
AGENT = """
builder: test-agent
bindings:
  test-agent: {adapter: command, argv: [sh, -c, 'echo made > made.txt; echo "{\\"summary\\": \\"all well\\"}"']}
  next-agent: {adapter: command, argv: ['true']}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run of the pipeline."""
    project = projects.create(GitSandbox.create(tmp_path_factory.mktemp("engines") / "repo"))
    project.configure(AGENT)
    define(project, PIPELINE, "pipeline")
    done = start(project, "pipeline")
    assert done.code == 0, done.out
    assert steps(project) == {"step-1": "completed", "step-2": "completed", "step-3": "omitted",
                              "step-4": "completed", "step-5": "completed"}  # fmt: skip
    assert project.read("second.txt") == "all well\n"
    return project


class Written(NamedTuple):
    """A change of the pipeline: `old` becomes `new`. `code` and `words` are of the finding, "" if it is valid."""

    old: str
    new: str
    code: str = ""
    words: str = ""


DESCRIPTION = "description: Two"
UNKNOWN = "workflow.unknown-key"

WRITTEN = [
    Written(DESCRIPTION, "phases: [{phase_id: one}]\ndescription: Two", UNKNOWN, "heading of level 2"),
    Written("name: pipeline", "name: pipeline\nworkflow_id: x", UNKNOWN, "write name:"),
    Written("agent: test-agent", "agent_id: test-agent", UNKNOWN, "write agent:"),
    Written("agent: test-agent", "agent: unknown", "task.unknown-builder", "Define it under `bindings`."),
    Written("timeout: 1s", "timeout_seconds: 1", UNKNOWN, "such as 90s"),
    Written("timeout_action: skip", "timeout_action: fail"),
    Written("timeout_action: skip", "timeout_action: ignore", "field.bad-choice"),
    Written("retries: 3", "max_retries: 3", UNKNOWN, "write retries:"),
    Written("acceptance:", "acceptance_criteria: [It is made]\nacceptance:", UNKNOWN, "write acceptance:"),
    Written("priority: high", "handoff_type: escalation", UNKNOWN, "[NAME (escalation)]"),
    Written("(escalation)", "(urgent)", "handoff.unknown-type"),
    Written("retries: 3", "retries: 3\nneeds: none"),
    Written("retries: 3", "retries: 3\nneeds: [step-5]", "plan.cycle", "Remove one of these dependencies."),
    Written("retries: 3", "for_each: [a, b]", UNKNOWN, "a step for each item, or a loop in one script"),
    Written("kind: script\nrun: test", "kind: loop\nrun: test", "workflow.bad-kind", "no kinds for loops"),
    Written('["true"]', '["echo undone"]'),
]  # fmt: skip


@pytest.mark.nightly
def test_a_definition_of_another_engine_is_valid_or_its_finding_says_what_to_write(ran: Project) -> None:
    file = ran.folder / ".idumb/workflows/pipeline.md"
    for example in WRITTEN:
        assert example.old in PIPELINE
        file.write_text(PIPELINE.replace(example.old, example.new, 1))
        findings = ran.quick("workflow", "check", "pipeline", "--json").data["findings"]
        expected = [f for f in findings if f["code"] == example.code]
        assert bool(expected) == bool(example.code), (example, findings)
        assert all(f["severity"] == "warning" for f in findings if not example.code), (example, findings)
        assert not expected or (example.words in expected[0]["fix"] and expected[0]["line"] > 1), example
    file.write_text(PIPELINE)


TYPED: list[tuple[tuple[str, ...], Callable[[Mapping[str, Any]], bool]]] = [
    (("workflow", "list"), lambda d: "pipeline" in [w["name"] for w in d["workflows"]]),
    (("workflow", "status", "W1"), lambda d: d["runs"][0]["state"] == "verified"),
    (("dlq", "list"), lambda d: d["dead_letters"] == []),
    (("dlq", "list", "--agent", "test-agent"), lambda d: d["dead_letters"] == []),
    (("dlq", "list", "--retryable"), lambda d: d["dead_letters"] == []),
    (("log", "W1", "--limit", "2"), lambda d: len(d["events"]) == 2),
    (("log", "--workflow", "pipeline"), lambda d: len(d["events"]) > 9),
    (("log", "W1", "--kind", "step_failed"), lambda d: len(d["events"]) == 2),
    (("log", "--limit", "50"), lambda d: len(d["events"]) <= 50),
    (("metrics",), lambda d: [r["phase"] for r in d["workflows"]] == ["W1"]),
    (("workflow", "status"), lambda d: [r["phase"] for r in d["runs"]] == ["W1"]),
    (("show", "TW1-02"), lambda d: "TW1-02" in str(d)),
    (("workflow", "status", "W1"), lambda d: d["runs"][0]["steps"][2]["status"] == "omitted"),
    (("show", "TW1-02", "--debug"), lambda d: d["task"]["envelope"] == []),
    (("log", "W1", "--task", "TW1-02"), lambda d: len(d["events"]) > 4),
    (("audit", "verify"), bool),
]  # fmt: skip


def test_a_command_of_another_engine_has_a_command_here(ran: Project) -> None:
    for arguments, shows in TYPED:
        answer = ran.quick(*arguments, "--json")
        assert answer.code == 0, answer.out
        assert shows(answer.data), answer.out


REFUSED = [
    (("workflow", "resume", "W3"), "idumb resume W3"),
    (("workflow", "cancel"), "idumb stop"),
    (("workflow", "dlq"), "idumb dlq list"),
    (("workflow", "events", "W3"), "idumb log W3"),
    (("workflow", "metrics", "W3"), "idumb show W3 --usage"),
    (("workflow", "dashboard"), "idumb workflow status"),
    (("workflow", "debug", "W3"), "idumb workflow status W3"),
    (("workflow", "replay", "W3"), "idumb workflow status W3"),
    (("workflow", "validate", "pipeline"), "idumb workflow check pipeline"),
    (("status", "--continuous", "--refresh", "5"), "--help"),
    (("metrics", "--workflow-id", "pipeline"), "idumb metrics --help"),
    (("dlq", "list", "--limit", "3"), "idumb dlq"),
    (("cancel", "--reason", "x"), "idumb stop"),
    (("workflow", "run", "pipeline", "--version", "1.0"), "idumb workflow"),
]


def test_a_command_that_is_not_here_is_refused_with_the_next_one(ran: Project) -> None:
    for typed, hint in REFUSED:
        answer = ran.quick(*typed, "--json")
        assert (answer.code, answer.error["code"]) == (2, "usage"), answer.out
        assert hint in answer.error["hint"]
