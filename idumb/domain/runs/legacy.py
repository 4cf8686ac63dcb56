"""The state that an old iDumb left in its files. The log never recorded it, so it is never proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from idumb.lazy_dataclass import dataclass

IMPORTED = "legacy.imported"
"""The kind of the event that keeps what such files contain."""

STATE = "state"
PROGRESS = "progress"
CHECKPOINT = "checkpoint"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OldFile:
    """`kind` is one of the words above. `digest` covers what the old iDumb wrote; idumb may have appended to it.

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
