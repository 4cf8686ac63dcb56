"""The content of iDumb's `state.json`, derived from the event log alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from idumb.domain.runs import legacy

VERSION = "1.0.0"
MOST_HISTORY = 50
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
    run: str = ""
    phase: str = ""
    agent: str = "idumb"

    def as_dict(self) -> dict[str, str]:
        line = {"timestamp": self.timestamp, "action": self.action, "agent": self.agent, "result": self.result}
        return {**line, "run": self.run} if self.run else line


@dataclass(frozen=True, slots=True)
class ImportedState:
    """What a file contained and the log did not: lines of history, anchors, and the values of other keys."""

    timestamp: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    anchors: Sequence[Any] = ()
    history: Sequence[Any] = ()


HistoryReport = Sequence[HistoryEntry | ImportedState]


def fields(told: HistoryReport) -> dict[str, Any]:
    """Return everything that the log contains, in order, with the whole history."""
    known: dict[str, Any] = {
        "version": VERSION,
        "initialized": told[0].timestamp if told else "",
        "framework": "idumb",
        "phase": "init",
        "lastValidation": None,
        "validationCount": 0,
        "anchors": [],
        "history": [],
        "activeStyle": "default",
        "styleHistory": [],
    }
    for one in told:
        _follow(known, one) if isinstance(one, HistoryEntry) else _take(known, one)
    return known


def _follow(known: dict[str, Any], entry: HistoryEntry) -> None:
    """Add a run; one that continued after a halt stays one line, with its newest result."""
    line = entry.as_dict()
    known["history"] = [k for k in known["history"] if k != line and not _same_run(k, line)] + [line]
    if entry.phase == _VERIFIED and known["phase"] != _VERIFIED:
        known["lastValidation"] = entry.timestamp
        known["validationCount"] = _whole(known["validationCount"]) + 1
    known["phase"] = entry.phase or known["phase"]


def _take(known: dict[str, Any], found: ImportedState) -> None:
    said = {key: value for key, value in found.state.items() if key not in _LISTS}
    known.update({key: value for key, value in said.items() if value is not None or key not in known})
    known["anchors"] = [*known["anchors"], *(a for a in found.anchors if a not in known["anchors"])]
    known["history"] = [*(line for line in found.history if line not in known["history"]), *known["history"]]


def _same_run(known: object, line: Mapping[str, str]) -> bool:
    return isinstance(known, dict) and "run" in line and known.get("run") == line["run"]


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def file_content(told: HistoryReport) -> dict[str, Any]:
    """Return the content of the file: as in iDumb, the history is limited to fifty lines, unless more were imported."""
    known = fields(told)
    came = sum(len(one.history) for one in told if isinstance(one, ImportedState))
    return {**known, "history": known["history"][-max(MOST_HISTORY, came) :]}


def runs(told: HistoryReport) -> frozenset[str]:
    """Return the runs that have a line."""
    lines = (one.history if isinstance(one, ImportedState) else (one.as_dict(),) for one in told)
    return frozenset(name for some in lines for line in some if isinstance(name := _run_of(line), str))


def missing_from_log(present: Mapping[str, Any], told: HistoryReport) -> ImportedState | None:
    """Return what a file contains and the log does not, or None."""
    known, ran = fields(told), runs(told)
    lines = [
        line for line in legacy.lines(present, "history") if line not in known["history"] and _run_of(line) not in ran
    ]
    anchors = [anchor for anchor in legacy.lines(present, "anchors") if anchor not in known["anchors"]]
    state = {key: value for key, value in present.items() if key not in (*_LISTS, *_COUNTED, "phase")}
    state = {key: value for key, value in state.items() if _is_new(key, value, known)}
    if _whole(present.get("validationCount")) > _whole(known["validationCount"]):
        state |= {key: present[key] for key in _COUNTED if present.get(key) is not None}
    if not any(isinstance(one, HistoryEntry) for one in told) and present.get("phase") not in (None, known["phase"]):
        state["phase"] = present["phase"]
    return ImportedState("", state, anchors, lines) if state or anchors or lines else None


def _is_new(key: str, value: object, known: Mapping[str, Any]) -> bool:
    """Whether a value is new; null does not replace a value."""
    return key not in known or (value is not None and known[key] != value)


def _run_of(line: object) -> str | None:
    name = line.get("run") if isinstance(line, Mapping) else None
    return name if isinstance(name, str) else None
