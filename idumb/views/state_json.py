"""`state.json` as iDumb keeps it; keys that idumb does not know are handed on unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from idumb.views import markup

VERSION = "1.0.0"
MOST_HISTORY = 50


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the history: a run, as it stands. `action` is `execute-phase:N`, `result` pass, partial or fail."""

    timestamp: str
    action: str
    result: str
    run: str = ""
    agent: str = "idumb"

    def as_dict(self) -> dict[str, str]:
        line = {"timestamp": self.timestamp, "action": self.action, "agent": self.agent, "result": self.result}
        return {**line, "run": self.run} if self.run else line


def fields(
    existing: Mapping[str, Any] | None,
    *,
    now: str,
    version: str = VERSION,
    phase: str | None = None,
    framework: str | None = None,
    validated_at: str | None = None,
    validations: int | None = None,
    history: Sequence[Entry] = (),
) -> dict[str, Any]:
    """The new state from the file's present content (None: there is none) and what is known now.

    None leaves a value as it is; `version` is for a new file, an old one keeps its own. `history` are all entries
    known; a run that the file has already is not doubled but brought up to date.
    As in iDumb the list is held at fifty entries, unless the file came with more: the event log keeps everything.
    """
    old = dict(existing or {})
    defaults: dict[str, Any] = {
        "version": version,
        "initialized": now,
        "framework": "idumb",
        "phase": "init",
        "lastValidation": None,
        "validationCount": 0,
        "anchors": [],
        "history": [],
        "activeStyle": "default",
        "styleHistory": [],
    }
    known = {"phase": phase, "framework": framework, "lastValidation": validated_at, "validationCount": validations}
    new = {key: old.get(key, value) for key, value in defaults.items()}
    new.update({key: value for key, value in known.items() if value is not None})
    new["history"] = _history(new["history"], history)
    new.update({key: value for key, value in old.items() if key not in new})
    return new


def _history(old: object, entries: Sequence[Entry]) -> list[Any]:
    kept = list(old) if isinstance(old, list) else []
    before = len(kept)
    for entry in entries:
        line = entry.as_dict()
        kept = [k for k in kept if k != line and not _same_run(k, line)]
        kept.append(line)
    return kept[-max(MOST_HISTORY, before) :]


def _same_run(known: object, line: Mapping[str, str]) -> bool:
    """A run that went on after a halt stays one line, with its newest result."""
    return isinstance(known, dict) and "run" in line and known.get("run") == line["run"]


def render(existing: Mapping[str, Any] | None, **known: Any) -> str:
    """The file's text; the arguments are those of `fields`."""
    return markup.json_text(fields(existing, **known))
