"""What users of other workflow engines write and type: each example runs here, or is refused with what to do instead.

The table is in docs/workflow-format.md (R-PLAN-8).
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.cli.test_workflows import define
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
BINDINGS = (
    "bindings: {test-agent: {adapter: command, argv: ['true']}, next-agent: {adapter: command, argv: ['true']}}\n"
)


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
    Written("timeout_action: skip", "timeout_action: ignore", "field.bad-value"),
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
def test_a_definition_of_another_engine_is_valid_or_its_finding_says_what_to_write(project: Project) -> None:
    project.configure(BINDINGS)
    define(project, PIPELINE, "pipeline")
    file = project.folder / ".idumb/workflows/pipeline.md"
    for example in WRITTEN:
        assert example.old in PIPELINE
        file.write_text(PIPELINE.replace(example.old, example.new, 1))
        findings = project.quick("workflow", "check", "pipeline", "--json").data["findings"]
        expected = [f for f in findings if f["code"] == example.code]
        assert bool(expected) == bool(example.code), (example, findings)
        assert all(f["severity"] == "warning" for f in findings if not example.code), (example, findings)
        assert not expected or (example.words in expected[0]["fix"] and expected[0]["line"] > 1), example


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


def test_a_command_that_is_not_here_is_refused_with_the_next_one(project: Project) -> None:
    for typed, hint in REFUSED:
        answer = project.quick(*typed, "--json")
        assert (answer.code, answer.error["code"]) == (2, "usage"), answer.out
        assert hint in answer.error["hint"]
