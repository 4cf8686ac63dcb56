"""The content of iDumb's `state.json`, derived from the event log alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from idumb.domain.runs import legacy
from idumb.lazy_dataclass import dataclass

VERSION = "1.0.0"
MOST_HISTORY = 50
AGENT = "idumb"
_VERIFIED = "verified"
_COUNTED = ("lastValidation", "validationCount")
_LISTS = ("history", "anchors")


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One line of the history: a run and its result. `action` is `execute-phase:N`, `result` pass, partial or fail.

    `phase` is the stage of the phase after it, in iDumb's terms.
    """

    timestamp: str
    action: str
    result: str
    run: str
    phase: str

    def as_dict(self) -> dict[str, str]:
        line = {"timestamp": self.timestamp, "action": self.action, "agent": AGENT, "result": self.result}
        return {**line, "run": self.run}


@dataclass(frozen=True, slots=True)
class ImportedState:
    """What a file contained and the log did not: lines of history, anchors, and the values of other keys."""

    timestamp: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    anchors: Sequence[Any] = ()
    history: Sequence[Any] = ()


HistoryReport = Sequence[HistoryEntry | ImportedState]


def fields(report: HistoryReport) -> dict[str, Any]:
    """Return everything that the log contains, in order, with the whole history."""
    content: dict[str, Any] = {
        "version": VERSION,
        "initialized": report[0].timestamp if report else "",
        "framework": AGENT,
        "phase": "init",
        "lastValidation": None,
        "validationCount": 0,
        "anchors": [],
        "history": [],
        "activeStyle": "default",
        "styleHistory": [],
    }
    for entry in report:
        _follow(content, entry) if isinstance(entry, HistoryEntry) else _take(content, entry)
    return content


def _follow(content: dict[str, Any], entry: HistoryEntry) -> None:
    """Add a run; one that continued after a halt stays one line, with its newest result."""
    line = entry.as_dict()
    content["history"] = [k for k in content["history"] if k != line and not _same_run(k, line)] + [line]
    if entry.phase == _VERIFIED and content["phase"] != _VERIFIED:
        content["lastValidation"] = entry.timestamp
        content["validationCount"] = _whole(content["validationCount"]) + 1
    content["phase"] = entry.phase


def _take(content: dict[str, Any], imported: ImportedState) -> None:
    values = {key: value for key, value in imported.state.items() if key not in _LISTS}
    content.update({key: value for key, value in values.items() if value is not None or key not in content})
    content["anchors"] = [*content["anchors"], *(a for a in imported.anchors if a not in content["anchors"])]
    content["history"] = [*(line for line in imported.history if line not in content["history"]), *content["history"]]


def _same_run(other: object, line: Mapping[str, str]) -> bool:
    return isinstance(other, dict) and other.get("run") == line["run"]


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def file_content(report: HistoryReport) -> dict[str, Any]:
    """Return the content of the file: as in iDumb, the history is limited to fifty lines, unless more were imported."""
    content = fields(report)
    came = sum(len(entry.history) for entry in report if isinstance(entry, ImportedState))
    return {**content, "history": content["history"][-max(MOST_HISTORY, came) :]}


def runs(report: HistoryReport) -> frozenset[str]:
    """Return the runs that have a line."""
    lines = (entry.history if isinstance(entry, ImportedState) else (entry.as_dict(),) for entry in report)
    return frozenset(name for some in lines for line in some if isinstance(name := _run_of(line), str))


def missing_from_log(present: Mapping[str, Any], report: HistoryReport) -> ImportedState | None:
    """Return what a file contains and the log does not, or None."""
    recorded, ran = fields(report), runs(report)
    lines = [
        line
        for line in legacy.lines(present, "history")
        if line not in recorded["history"] and _run_of(line) not in ran
    ]
    anchors = [anchor for anchor in legacy.lines(present, "anchors") if anchor not in recorded["anchors"]]
    state = {key: value for key, value in present.items() if key not in (*_LISTS, *_COUNTED, "phase")}
    state = {key: value for key, value in state.items() if _is_new(key, value, recorded)}
    if _whole(present.get("validationCount")) > _whole(recorded["validationCount"]):
        state |= {key: present[key] for key in _COUNTED if present.get(key) is not None}
    if not any(isinstance(entry, HistoryEntry) for entry in report) and present.get("phase") not in (
        None,
        recorded["phase"],
    ):
        state["phase"] = present["phase"]
    return ImportedState("", state, anchors, lines) if state or anchors or lines else None


def _is_new(key: str, value: object, recorded: Mapping[str, Any]) -> bool:
    """Whether a value is new; null does not replace a value."""
    return key not in recorded or (value is not None and recorded[key] != value)


def _run_of(line: object) -> str | None:
    name = line.get("run") if isinstance(line, Mapping) else None
    return name if isinstance(name, str) else None
