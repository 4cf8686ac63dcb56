"""Which attempts of a recorded run are replayed: those that did something (R-ENV-3)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from idumb.app.core import run_lookup
from idumb.app.history import recordings
from idumb.domain import outcome
from idumb.domain.agent import AgentResult, RecordedAttempt
from idumb.domain.proof import evidence, ledger

if TYPE_CHECKING:
    import pytest


def event(kind: str, attempt: int, **payload: Any) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, attempt=attempt, payload=payload)


def attempt(number: int, tree: str, **verdict: Any) -> list[SimpleNamespace]:
    line = {"path": f"{tree}.txt", "actual": "created"}
    return [
        event("attempt.started", number, base="base"),
        event("attempt.finished", number, builder=verdict, left=tree, ledger=[line, {**line, "symbol": "f"}]),
    ]


def recorded_attempt(monkeypatch: pytest.MonkeyPatch, events: list[SimpleNamespace], number: int) -> Any:
    envelope = SimpleNamespace(digest="d", carried_from=None)
    state = SimpleNamespace(id="r", tasks={"T1-01": envelope}, attempted={"T1-01": 1})
    monkeypatch.setattr(run_lookup, "run_of", lambda *_: state)
    log = SimpleNamespace(events=lambda **_: iter(events))
    return recordings.Recordings(SimpleNamespace(log=log), None).find("r", "T1-01", number)  # type: ignore[arg-type]


def kept(*paths: str) -> recordings.Recordings:
    """Recordings whose trees `old` and `new` differ in these paths."""

    def changes(old: str, new: str) -> tuple[ledger.Change, ...]:
        return {("old", "new"): tuple(ledger.Change(path, ledger.MODIFIED, None, None) for path in paths)}[old, new]

    trees: Any = SimpleNamespace(changes=changes)
    return recordings.Recordings(cast("Any", SimpleNamespace(log=None)), trees)


def test_attempts_that_could_not_work_or_waited_are_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        *attempt(1, "one", outcome=outcome.ERRORED, failure="network"),
        *attempt(2, "two", outcome=outcome.WAITING),
        *attempt(3, "three", outcome=outcome.COMPLETED),
        *attempt(4, "four", outcome=outcome.FAILED, failure="malformed"),
    ]
    assert recorded_attempt(monkeypatch, events, 1).trees == ("base", "three")
    second = recorded_attempt(monkeypatch, events, 2)
    assert (second.trees, second.paths) == (("base", "three", "four"), ("three.txt", "four.txt"))
    assert recorded_attempt(monkeypatch, events, 7) == second
    assert recorded_attempt(monkeypatch, events[:4], 1) is None


def test_of_attempts_that_waited_for_a_verdict_the_one_with_a_verdict_is_replayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[SimpleNamespace] = []
    for number, verdict in ((1, evidence.WAITING), (2, evidence.PASSED)):
        begun, ended = attempt(number, f"tree-{number}", outcome=outcome.COMPLETED)
        verdicts = event("evidence.recorded", number, subject="validator away", result=verdict, tree=f"judged-{number}")
        events += [begun, verdicts, ended]
    played = recorded_attempt(monkeypatch, events, 1)
    assert (played.trees, played.judged.outcome) == (("base", "tree-2"), outcome.COMPLETED)
    assert played.judged_tree == "judged-2"


def test_a_judged_tree_is_compared_without_idumb_s_own_files_and_never_guessed() -> None:
    def recorded(judged: str | None) -> RecordedAttempt:
        return RecordedAttempt("d", AgentResult(outcome.COMPLETED), AgentResult(outcome.COMPLETED), (), (), judged)

    for judged, candidate in ((None, "new"), ("old", ""), ("lost", "new")):
        assert kept().differing(recorded(judged), candidate) is None
    assert kept(".idumb/config.yaml", ".planning/phases/1/1-SUMMARY.md").differing(recorded("old"), "new") == ()
    assert kept(".idumb/config.yaml", "a.txt").differing(recorded("old"), "new") == ("a.txt",)
