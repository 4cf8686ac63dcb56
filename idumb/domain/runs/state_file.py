"""iDumb's `state.json`, derived from the event log alone, and the state that an old iDumb left in its files.

The log never recorded the latter, so it is never proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

VERSION = "1.0.0"
MOST_HISTORY = 50
AGENT = "idumb"
_VERIFIED = "verified"
_LISTS = ("history", "anchors")


class HistoryEntry(Struct, frozen=True):
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


class ImportedState(Struct, frozen=True):
    """What an imported file contained: lines of history, anchors, and the values of other keys."""

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


IMPORTED = "legacy.imported"
"""The kind of the event that keeps what the files of an old iDumb contain."""
STATE, PROGRESS, CHECKPOINT, UNKNOWN = "state", "progress", "checkpoint", "unknown"


class OldFile(Struct, frozen=True):
    """A file of an old iDumb. `kind` is one of the words above.

    `digest` covers what the old iDumb wrote; idumb may have appended to it.
    `content` is the parsed file, as JSON; `why` says why it could not be parsed.
    """

    path: str
    kind: str
    digest: str
    content: Mapping[str, Any] = field(default_factory=dict)
    phase: str | None = None
    why: str = ""


def lines(state: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list at `name`; a single value becomes a list."""
    value = state.get(name)
    return value if isinstance(value, list) else [] if value is None else [value]


def import_payload(files: tuple[OldFile, ...]) -> dict[str, Any]:
    """Return the payload of `legacy.imported`, except for where the originals are stored."""
    state = next((file.content for file in files if file.kind == STATE), {})
    phases = sorted({file.phase for file in files if file.phase is not None})
    return {
        "session": state.get("session"),
        "phase": state.get("phase"),
        "state": {key: value for key, value in state.items() if key not in {"anchors", "history"}},
        "anchors": lines(state, "anchors"),
        "history": lines(state, "history"),
        "phases": [_phase(name, [file for file in files if file.phase == name]) for name in phases],
        "not_understood": [{"path": file.path, "why": file.why} for file in files if file.kind == UNKNOWN],
    }


def _phase(name: str, files: list[OldFile]) -> dict[str, Any]:
    progress: Mapping[str, Any] = next((file.content for file in files if file.kind == PROGRESS), {})
    tasks = {str(file.content["task_id"]): dict(file.content) for file in files if file.kind == CHECKPOINT}
    done = [task for task, recorded in tasks.items() if recorded.get("status") == "completed"]
    failed = [task for task, recorded in tasks.items() if recorded.get("status") == "failed"]
    # some versions list a retried task twice; if it completed, that counts
    completed = list(dict.fromkeys([*progress.get("completed", ()), *done]))
    return {
        "phase": name,
        "completed": completed,
        "failed": [t for t in dict.fromkeys([*progress.get("failed", ()), *failed]) if t not in completed],
        "blocked": [t for t in progress.get("blocked", ()) if t not in completed],
        "started_at": progress.get("started_at"),
        "git_hash": progress.get("git_hash"),
        "tasks": tasks,
    }
