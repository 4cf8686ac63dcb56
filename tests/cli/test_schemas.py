"""Log content follows the published schemas: evidence, decisions, envelopes, agent results."""

from __future__ import annotations

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


def test_each_question_evidence_and_attempt_follows_its_schema(project: Project) -> None:
    """R-ASK-1: what, why, evidence, choices, and the consequence of each."""
    project.plan([TASK])
    assert project.execute().code == 5
    results = set()
    for kind, field, schema in (
        ("decision.asked", None, "decision"),
        ("evidence.recorded", None, "evidence"),
        ("attempt.started", "envelope", "envelope"),
        ("attempt.finished", "builder", "agent-result"),
    ):
        payloads = [event["payload"] for event in project.events("1", "--kind", kind)]
        assert payloads
        for payload in payloads:
            validator(schema).validate(payload[field] if field else payload)
            results.add(payload.get("result"))
    assert results >= {"passed", "opinion", "waiting"}


def test_the_schema_names_each_kind_of_question() -> None:
    kinds = published("decision")["properties"]["kind"]["enum"]
    assert set(kinds) == action.KINDS
    assert {row.kind for row in questions.TABLE.values()} <= action.KINDS
