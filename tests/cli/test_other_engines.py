"""What users of other workflow engines write and type: each example runs here, or is refused with what to do instead.

Every example names its row of the table in docs/workflow-format.md (R-PLAN-8, R-HAND-1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from tests.cli.test_workflows import define, start, steps
from tests.meta import source
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

PAGE = (source.ROOT / "docs/workflow-format.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## If you know other workflow engines")[2].partition("\n## ")[0]
ROWS = dict(re.findall(r"^\| (.+?) \| (.+) \|$", TABLE, flags=re.MULTILINE)[1:])

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

    row: str
    old: str
    new: str
    code: str = ""
    words: str = ""


YAML = "phases and steps as YAML lists, with `phase_id`, `step_id` and `type`"
NAMES = "`workflow_id`, `metadata: {version: …}`"
AGENTS = "`agent_id: NAME`"
SECONDS = "`timeout_seconds: 60`, and 3600 seconds by default"
ACTIONS = "`timeout_action: fail`, `skip` or `retry`"
RETRIES = "`max_retries: 3`"
CRITERIA = "`acceptance_criteria: [TEXT]`"
HANDOFFS = "`handoff_to`, `handoff_type: escalation`"
ORDER = "phases run one after the other"
LOOPS = "a loop over items"
DESCRIPTION = "description: Two"
UNKNOWN = "workflow.unknown-key"

WRITTEN = [
    Written(YAML, DESCRIPTION, "phases: [{phase_id: one}]\ndescription: Two", UNKNOWN, "heading of level 2"),
    Written(NAMES, "name: pipeline", "name: pipeline\nworkflow_id: x", UNKNOWN, "write name:"),
    Written(AGENTS, "agent: test-agent", "agent_id: test-agent", UNKNOWN, "write agent:"),
    Written(AGENTS, "agent: test-agent", "agent: unknown", "task.unknown-builder", "Define it under `bindings`."),
    Written(SECONDS, "timeout: 1s", "timeout_seconds: 1", UNKNOWN, "such as 90s"),
    Written(ACTIONS, "timeout_action: skip", "timeout_action: fail"),
    Written(ACTIONS, "timeout_action: skip", "timeout_action: ignore", "field.bad-choice"),
    Written(RETRIES, "retries: 3", "max_retries: 3", UNKNOWN, "write retries:"),
    Written(CRITERIA, "acceptance:", "acceptance_criteria: [It is made]\nacceptance:", UNKNOWN, "write acceptance:"),
    Written(HANDOFFS, "priority: high", "handoff_type: escalation", UNKNOWN, "[NAME (escalation)]"),
    Written(HANDOFFS, "(escalation)", "(urgent)", "handoff.unknown-type"),
    Written(ORDER, "retries: 3", "retries: 3\nneeds: none"),
    Written(ORDER, "retries: 3", "retries: 3\nneeds: [step-5]", "plan.cycle", "Remove one of these dependencies."),
    Written(LOOPS, "retries: 3", "for_each: [a, b]", UNKNOWN, "a step for each item, or a loop in one script"),
    Written(LOOPS, "kind: script\nrun: test", "kind: loop\nrun: test", "workflow.bad-kind", "no kinds for loops"),
    Written("compensation", '["true"]', '["echo undone"]'),
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


class Typed(NamedTuple):
    """A command of another engine, and the arguments here; `shows` is whether the answer is right."""

    row: str
    there: str
    here: tuple[str, ...]
    shows: Callable[[Mapping[str, Any]], bool]


RUNS = "`list`, `run`, `status`"
OTHERS = "`resume`, `cancel`, `dlq`"
WATCH = "`events --type T --limit N`, `metrics`, `dashboard`"
DEBUG = "`debug inspect`, `replay`, `compare`, `trace`, `validate`"

TYPED = [
    Typed(RUNS, "list", ("workflow", "list"), lambda d: "pipeline" in [w["name"] for w in d["workflows"]]),
    Typed(RUNS, "status ID", ("workflow", "status", "W1"), lambda d: d["runs"][0]["state"] == "verified"),
    Typed(OTHERS, "dlq", ("dlq", "list"), lambda d: d["dead_letters"] == []),
    Typed(OTHERS, "dlq --agent A", ("dlq", "list", "--agent", "test-agent"), lambda d: d["dead_letters"] == []),
    Typed(OTHERS, "dlq --retryable", ("dlq", "list", "--retryable"), lambda d: d["dead_letters"] == []),
    Typed(WATCH, "events --limit 2", ("log", "W1", "--limit", "2"), lambda d: len(d["events"]) == 2),
    Typed(WATCH, "events of a workflow", ("log", "--workflow", "pipeline"), lambda d: len(d["events"]) > 9),
    Typed(WATCH, "events --type step_failed", ("log", "W1", "--kind", "step_failed"), lambda d: len(d["events"]) == 2),
    Typed(WATCH, "latest events", ("log", "--limit", "50"), lambda d: len(d["events"]) <= 50),
    Typed(WATCH, "metrics", ("metrics",), lambda d: [r["phase"] for r in d["workflows"]] == ["W1"]),
    Typed(WATCH, "dashboard", ("workflow", "status"), lambda d: [r["phase"] for r in d["runs"]] == ["W1"]),
    Typed(DEBUG, "inspect", ("show", "TW1-02"), lambda d: "TW1-02" in str(d)),
    Typed(DEBUG, "replay", ("workflow", "status", "W1"), lambda d: d["runs"][0]["steps"][2]["status"] == "omitted"),
    Typed(DEBUG, "compare", ("show", "TW1-02", "--debug"), lambda d: d["task"]["envelope"] == []),
    Typed(DEBUG, "trace --step-id", ("log", "W1", "--task", "TW1-02"), lambda d: len(d["events"]) > 4),
    Typed(DEBUG, "validate", ("audit", "verify"), bool),
]  # fmt: skip


def test_a_command_of_another_engine_has_a_command_here(ran: Project) -> None:
    for example in TYPED:
        answer = ran.quick(*example.here, "--json")
        assert answer.code == 0, answer.out
        assert example.shows(answer.data), answer.out


class Refused(NamedTuple):
    """The same words typed here, and the next command that the refusal names."""

    row: str
    typed: tuple[str, ...]
    hint: str


ABSENT = "`dashboard --continuous`, `cancel --reason`, `dlq --limit`"
VERSIONS = "a version that you select when you start a workflow"

REFUSED = [
    Refused(OTHERS, ("workflow", "resume", "W3"), "idumb resume W3"),
    Refused(OTHERS, ("workflow", "cancel"), "idumb stop"),
    Refused(OTHERS, ("workflow", "dlq"), "idumb dlq list"),
    Refused(WATCH, ("workflow", "events", "W3"), "idumb log W3"),
    Refused(WATCH, ("workflow", "metrics", "W3"), "idumb show W3 --usage"),
    Refused(WATCH, ("workflow", "dashboard"), "idumb workflow status"),
    Refused(DEBUG, ("workflow", "debug", "W3"), "idumb workflow status W3"),
    Refused(DEBUG, ("workflow", "replay", "W3"), "idumb workflow status W3"),
    Refused(DEBUG, ("workflow", "validate", "pipeline"), "idumb workflow check pipeline"),
    Refused(ABSENT, ("status", "--continuous", "--refresh", "5"), "--help"),
    Refused(ABSENT, ("metrics", "--workflow-id", "pipeline"), "idumb metrics --help"),
    Refused(ABSENT, ("dlq", "list", "--limit", "3"), "idumb dlq"),
    Refused(ABSENT, ("cancel", "--reason", "x"), "idumb stop"),
    Refused(VERSIONS, ("workflow", "run", "pipeline", "--version", "1.0"), "idumb workflow"),
]


def test_a_command_that_is_not_here_is_refused_with_the_next_one(ran: Project) -> None:
    for example in REFUSED:
        answer = ran.quick(*example.typed, "--json")
        assert (answer.code, answer.error["code"]) == (2, "usage"), answer.out
        assert example.hint in answer.error["hint"]


NAMED_EVENTS = "events `workflow_started`, `step_failed` and others"


DOCUMENTS = "handoffs as JSON files, and a registry"
FIELDS = ("handoff_id", "from_agent", "to_agent", "request_id", "timestamp", "handoff_type", "status", "priority",
          "summary", "deliverables", "acceptance_criteria", "next_steps")  # fmt: skip


def test_a_handoff_has_the_fields_of_another_engines_and_is_registered(ran: Project) -> None:
    """R-HAND-1: made from the step, checked, saved, registered; its time is the present one in UTC."""
    listed = ran.quick("handoff", "list", "--phase", "W1", "--json").data | {
        "failed": ran.quick("handoff", "list", "--json").data["failed"]
    }
    (handoff,) = listed["handoffs"]
    assert set(FIELDS) <= set(handoff)
    values = {name: handoff[name] for name in FIELDS if name not in {"handoff_id", "request_id", "timestamp"}}
    assert values == {
        "from_agent": "test-agent", "to_agent": "next-agent", "handoff_type": "escalation", "status": "pending",
        "priority": "high", "summary": "all well", "deliverables": ["made.txt (created)"],
        "acceptance_criteria": values["acceptance_criteria"], "next_steps": "Review it",
    }  # fmt: skip
    assert "It is made" in str(values["acceptance_criteria"])
    assert datetime.fromisoformat(handoff["timestamp"]).tzinfo == UTC
    assert [f["to_agent"] for f in listed["failed"]] == ["nobody"], "a failed handoff stopped nothing"
    assert ran.exists(handoff["path"])
    assert ran.quick("handoff", "list", "--json").data["stats"]["by_status"]["pending"] == 1
    assert ran.quick("handoff", "update", handoff["handoff_id"], "done", "--json").code == 3


SETTINGS = "a file with settings of the engine"
VARIABLES = "environment variables such as `WORKFLOW_ENGINE_DEFAULT_TIMEOUT`"


def test_settings_of_another_engine_are_refused_and_its_variables_are_not_read(
    ran: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in ("workflow_engine: {default_timeout_seconds: 3600}", "run: {max_concurrent_workflows: 10}",
                 "breaker: {circuit_breaker_threshold: 5}"):  # fmt: skip
        ran.configure(AGENT + line + "\n")
        refused = ran.quick("workflow", "check", "pipeline", "--json")
        assert (refused.code, refused.error["code"]) == (3, "config.invalid"), refused.out
    ran.configure(AGENT + "run: {max_attempts: 3, check_timeout: 3600}\nbreaker: {failures: 5, time: 60}\n")
    assert ran.quick("workflow", "check", "pipeline").code == 0
    ran.configure(AGENT)
    before = ran.quick("check-plan", "W1", "--json").data
    monkeypatch.setenv("WORKFLOW_ENGINE_DEFAULT_TIMEOUT", "1")
    monkeypatch.setenv("WORKFLOW_ENGINE_STATE_DB_PATH", "/nowhere/state.db")
    assert ran.quick("check-plan", "W1", "--json").data == before


STATES = "a table of states with version numbers"
ONE = "several workflows at once"


ELSEWHERE = {
    "a thread per step, cancelled after its timeout",  # step-3 of the pipeline
    VERSIONS, NAMED_EVENTS, DOCUMENTS, SETTINGS, VARIABLES, STATES, ONE, "a circuit breaker for each service",
}  # fmt: skip


def test_every_row_of_the_page_has_an_example_and_every_example_a_row() -> None:
    used = {*(e.row for e in WRITTEN), *(e.row for e in TYPED), *(e.row for e in REFUSED), *ELSEWHERE}
    assert used == set(ROWS)
