"""Log content follows the published schemas: evidence, decisions, envelopes, agent results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"

TASK = """### T1-01: Both a machine and a person judge

- **Depends on:** none
- **Files:** create `a.txt`
- **Acceptance:**
  - [ ] It is there — check: `test -e a.txt`
  - [ ] It reads well — opinion
  - [ ] It is liked — human

```yaml steps
- {tool: write_file, intent: make it, arguments: {path: a.txt, content: x}}
```
"""


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan([TASK])
    assert project.execute().code == 5
    return project


def validate(value: object, name: str) -> None:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(value)


def payloads(project: Project, kind: str) -> list[dict[str, Any]]:
    payload_list = [e["payload"] for e in project.json("log", "1", "--kind", kind).data["events"]]
    assert payload_list
    return payload_list


def test_each_evidence_follows_its_schema(project: Project) -> None:
    evidence = payloads(project, "evidence.recorded")
    assert {e["result"] for e in evidence} == {"passed", "opinion", "waiting"}
    for one in evidence:
        validate(one, "evidence")


def test_each_question_follows_its_schema(project: Project) -> None:
    """R-ASK-1: what, why, evidence, choices, and the consequence of each."""
    for one in payloads(project, "decision.asked"):
        validate(one, "decision")
        assert all(choice["consequence"] for choice in one["choices"])


def test_each_attempt_has_its_envelope_and_its_builder_s_claims(project: Project) -> None:
    for one in payloads(project, "attempt.started"):
        validate(one["envelope"], "envelope")
    for one in payloads(project, "attempt.finished"):
        validate(one["builder"], "agent-result")
