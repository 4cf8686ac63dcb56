"""Envelopes as data: which parts are compared, and which are unknown (R-ENV-1)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from idumb.domain import envelope
from idumb.domain.envelope import NOTHING, Change, Envelope
from idumb.domain.plans.plan import Condition, Task
from tests.support.cases import every


def parts_of(**parts: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "idumb": "1", "adapter": "command", "adapter_version": "1", "binding": "coder", "configuration": "c",
        "contract": "k", "prompt": "p", "context": NOTHING, "rules": "r", "program": "f", "validator": NOTHING,
        "policy": NOTHING, "tools": {"git": "2"},
        "checks": {"pytest": "1"}, **parts,
    }  # fmt: skip
    whole = Envelope(**fields)
    return envelope.seal(asdict(whole))


OF_ONE_ATTEMPT = ("contract", "binding", "context")


@every("part", [p for p in envelope.PARTS if p not in OF_ONE_ATTEMPT])
def test_each_different_part_is_a_change(part: str) -> None:
    """R-ENV-1, R-LOG-7."""
    now: Any = {"tools": {"git": "3"}, "checks": {"pytest": "2"}}.get(part, "other")
    before = parts_of()
    after = envelope.seal(before, **{part: now})
    assert before["digest"] != after["digest"]
    assert envelope.changes({"coder": before}, {"coder": after}) == (Change("coder", part, before[part], now),)


@every("checks", [{}, {"make": "4"}, {"pytest": "1", "make": "4"}])
def test_a_program_that_only_one_side_has_is_not_a_change(checks: dict[str, str]) -> None:
    """R-ENV-1: an amendment may add or remove a check."""
    for one, other in ((parts_of(), parts_of(checks=checks)), (parts_of(checks=checks), parts_of())):
        assert envelope.changes({"coder": one}, {"coder": other}) == ()


@every("part", OF_ONE_ATTEMPT)
def test_values_decided_by_plan_or_attempt_are_not_changes(part: str) -> None:
    assert envelope.changes({"coder": parts_of()}, {"coder": parts_of(**{part: "other"})}) == ()


def test_an_unknown_part_is_neither_same_nor_different() -> None:
    differ, unknown = envelope.compare(parts_of(model="a"), parts_of(model=None, prompt="q"))
    assert differ == ("prompt",)
    assert unknown == ("model",)
    assert envelope.compare(parts_of(), parts_of()) == ((), ("model",))


def test_the_context_is_what_conditions_and_references_name() -> None:
    task = Task(
        "T1-01",
        "A task",
        preconditions=(Condition("context", "docs/"), Condition("file-exists", "no.md")),
        references="See `src/a.py`, [the guide](docs/guide.md), @notes.md and `make test`; not [that](../out.md).",
    )
    assert task.context_paths == ("docs", "src/a.py", "docs/guide.md", "notes.md")


def test_a_context_with_an_unknown_file_is_unknown_and_an_empty_one_is_known() -> None:
    assert envelope.context_digest({}) == NOTHING
    assert envelope.context_digest({"a": None, "b": "1"}) is None
    assert envelope.context_digest({"a": "1"}) != envelope.context_digest({"a": "2"})
