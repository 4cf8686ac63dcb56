"""Log content follows the published schemas: evidence, decisions, envelopes, agent results."""

from __future__ import annotations

from typing import Any

from idumb.app.core import questions
from idumb.domain import action
from tests.support.project import Project
from tests.support.schemas import published, validator

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


def validate(value: object, name: str) -> None:
    validator(name).validate(value)


def payloads(project: Project, kind: str) -> list[dict[str, Any]]:
    payload_list = [e["payload"] for e in project.json("log", "1", "--kind", kind).data["events"]]
    assert payload_list
    return payload_list


def test_each_question_evidence_and_attempt_follows_its_schema(project: Project) -> None:
    """R-ASK-1: what, why, evidence, choices, and the consequence of each."""
    project.plan([TASK])
    assert project.execute().code == 5
    for one in payloads(project, "decision.asked"):
        validate(one, "decision")
        assert all(choice["consequence"] for choice in one["choices"])
    evidence = payloads(project, "evidence.recorded")
    assert {e["result"] for e in evidence} == {"passed", "opinion", "waiting"}
    for one in evidence:
        validate(one, "evidence")
    for one in payloads(project, "attempt.started"):
        validate(one["envelope"], "envelope")
    for one in payloads(project, "attempt.finished"):
        validate(one["builder"], "agent-result")


def test_the_schema_names_each_kind_of_question() -> None:
    kinds = published("decision")["properties"]["kind"]["enum"]
    assert set(kinds) == action.KINDS
    assert {row.kind for row in questions.TABLE.values()} <= action.KINDS
