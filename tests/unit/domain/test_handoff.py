"""A handoff is sound or every flaw of it is named."""

from __future__ import annotations

import uuid

from msgspec import convert
from msgspec.structs import replace

from idumb.domain.runs import handoff
from idumb.domain.runs.handoff import Document
from tests.support.cases import every

AGENTS = frozenset({"claude", "human"})
SOUND = Document(
    handoff.new_id("run", "T1-01", 1, 1),
    "claude",
    "human",
    "request",
    "2026-01-02T03:04:05.000000Z",
    deliverables=("a.txt (created)",),
)


def test_a_valid_handoff_has_no_error_and_survives_json() -> None:
    """R-HAND-1."""
    assert handoff.problems(SOUND, AGENTS) == ()
    assert convert({**SOUND.as_dict(), "later": 1}, Document) == SOUND


@every(
    "field, value, words",
    [
        ("handoff_id", "12", "not a UUID"),
        ("handoff_id", "", "handoff_id is missing"),
        ("request_id", "", "request_id is missing"),
        ("from_agent", "gemini", "'gemini' is not one of claude, human"),
        ("to_agent", "gemini", "'gemini' is not one of claude, human"),
        ("handoff_type", "review", "'review' is not one of standard"),
        ("status", "done", "'done' is not one of pending"),
        ("priority", "urgent", "'urgent' is not one of critical"),
        ("timestamp", "yesterday", "not an ISO 8601 time"),
        ("timestamp", "2026-01-02T03:04:05", "not an ISO 8601 time"),
    ],
)
def test_each_error_is_named_by_its_field(field: str, value: str, words: str) -> None:
    """R-HAND-1."""
    problems = handoff.problems(replace(SOUND, **{field: value}), AGENTS)
    assert len(problems) == 1
    assert problems[0].startswith(field)
    assert words in problems[0]


def test_each_attempt_and_receiver_has_its_own_uuid() -> None:
    ids = {handoff.new_id("run", "T1-01", attempt, number) for attempt in (1, 2) for number in (1, 2)}
    assert len(ids) == 4
    assert all(uuid.UUID(one).version == 8 for one in ids)
    assert handoff.new_id("run", "T1-01", 1, 1) in ids


def test_types_may_be_written_in_common_spellings() -> None:
    assert handoff.type_of(None) == handoff.STANDARD
    assert handoff.type_of("Error recovery") == handoff.ERROR_RECOVERY
    assert handoff.type_of("never") == handoff.NEVER
