"""Which attempts of a recorded run are played: those that did something (R-ENV-3)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from idumb.app import recordings, session
from idumb.domain import evidence, outcome

if TYPE_CHECKING:
    import pytest


def event(kind: str, attempt: int, **payload: Any) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, attempt=attempt, payload=payload)


def attempt(number: int, tree: str, **said: Any) -> list[SimpleNamespace]:
    line = {"path": f"{tree}.txt", "actual": "created"}
    return [
        event("attempt.started", number, base="base"),
        event("attempt.finished", number, builder=said, left=tree, ledger=[line, {**line, "symbol": "f"}]),
    ]


def found(monkeypatch: pytest.MonkeyPatch, events: list[SimpleNamespace], number: int) -> Any:
    known = SimpleNamespace(digest="d", carried_from=None)
    state = SimpleNamespace(id="r", tasks={"T1-01": known}, attempted={"T1-01": 1})
    monkeypatch.setattr(session, "run_of", lambda *_: state)
    log = SimpleNamespace(events=lambda **_: iter(events))
    return recordings.Recordings(SimpleNamespace(log=log), None).find("r", "T1-01", number)  # type: ignore[arg-type]


def test_attempts_that_could_not_work_or_waited_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        *attempt(1, "one", outcome=outcome.ERRORED, failure="network"),
        *attempt(2, "two", outcome=outcome.WAITING),
        *attempt(3, "three", outcome=outcome.COMPLETED),
        *attempt(4, "four", outcome=outcome.FAILED, failure="malformed"),
    ]
    assert found(monkeypatch, events, 1).trees == ("base", "three")
    second = found(monkeypatch, events, 2)
    assert (second.trees, second.paths) == (("base", "three", "four"), ("three.txt", "four.txt"))
    assert found(monkeypatch, events, 7) == second
    assert found(monkeypatch, events[:4], 1) is None


def test_of_attempts_that_waited_for_a_verdict_the_one_that_has_it_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[SimpleNamespace] = []
    for number, verdict in ((1, evidence.WAITING), (2, evidence.PASSED)):
        begun, ended = attempt(number, f"tree-{number}", outcome=outcome.COMPLETED)
        said = event("evidence.recorded", number, subject="validator away", result=verdict)
        events += [begun, said, ended]
    played = found(monkeypatch, events, 1)
    assert (played.trees, played.judged.outcome) == (("base", "tree-2"), outcome.COMPLETED)
