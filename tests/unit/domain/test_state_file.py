"""`state.json` as iDumb keeps it, as a function of what the log says (R-LOG-4, R-LOG-9)."""

from __future__ import annotations

from typing import Any

from idumb.domain.runs import state_file
from idumb.domain.runs.state_file import HistoryEntry, ImportedState

OLD: dict[str, Any] = {
    "version": "0.2.0",
    "anchors": [{"id": "a"}],
    "mine": 7,
    "history": [{"timestamp": "x", "action": "init"}],
    "phase": "executed",
    "validationCount": 3,
}


def line(run: str, at: str = "t", phase: str = "executed", result: str = "pass") -> HistoryEntry:
    return HistoryEntry(at, "execute-phase:1", result, run, phase)


def imported(present: dict[str, Any]) -> ImportedState:
    rest = {key: value for key, value in present.items() if key not in {"history", "anchors"}}
    return ImportedState("", rest, state_file.lines(present, "anchors"), state_file.lines(present, "history"))


def test_data_of_the_file_that_the_log_lacks_stays_in_it() -> None:
    reports = (imported(OLD), line("r"))
    content = state_file.file_content(reports)
    assert (content["version"], content["mine"], content["anchors"], content["phase"]) == (
        "0.2.0",
        7,
        [{"id": "a"}],
        "executed",
    )
    assert [one["action"] for one in content["history"]] == ["init", "execute-phase:1"]
    assert list(content)[:10] == [
        "version", "initialized", "framework", "phase", "lastValidation", "validationCount", "anchors", "history",
        "activeStyle", "styleHistory",
    ]  # fmt: skip


def test_a_continued_run_stays_one_line_of_the_history() -> None:
    reports = (line("r", "then", result="partial"), line("q", "later"), line("r", "now", "verified"))
    fields = state_file.fields(reports)
    assert [(one["run"], one["timestamp"], one["result"]) for one in fields["history"]] == [
        ("q", "later", "pass"),
        ("r", "now", "pass"),
    ]
    assert (fields["initialized"], fields["phase"]) == ("then", "verified")
    assert (fields["lastValidation"], fields["validationCount"]) == ("now", 1)
    assert state_file.fields((imported(OLD), line("r", "now", "verified")))["validationCount"] == 4


def test_values_that_are_not_lists_and_null_are_kept_too() -> None:
    """R-LOG-9: a damaged history is one line; null is a value if nothing else is known of the key."""
    reports = (imported({"history": "gone", "anchors": {"id": "a"}, "mine": None, "framework": None}),)
    content = state_file.file_content(reports)
    assert (content["history"], content["anchors"]) == (["gone"], [{"id": "a"}])
    assert ("mine" in content, content["mine"], content["framework"]) == (True, None, "idumb")


def test_fifty_lines_are_shown_and_never_fewer_than_the_file_had() -> None:
    reports = tuple(line(f"r{n}") for n in range(60))
    assert (len(state_file.file_content(reports)["history"]), len(state_file.fields(reports)["history"])) == (50, 60)
    long = imported({"history": [{"n": n} for n in range(70)]})
    assert len(state_file.file_content((long,))["history"]) == 70
