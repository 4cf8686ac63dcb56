"""The parts of the environment envelope of an attempt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.domain.action import Action
from idumb.domain.consent import envelope
from idumb.domain.errors import Refusal
from idumb.domain.runs.event import Event
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _RecordedEnvelope:
    """The recorded envelope of an attempt, with the texts behind its hashes."""

    task: str
    run: str
    event: Event
    sources: Mapping[str, str]

    def part(self, name: str) -> Any:
        return self.event.payload["envelope"].get(name)

    def source(self, name: str) -> str | None:
        """Return the text behind a hash; None if there is none, or it was not kept."""
        if name == envelope.CONTEXT:
            recorded = self.event.payload.get("context")
            return None if recorded is None else json.dumps(recorded, indent=1, sort_keys=True)
        value = self.part(name)
        return self.sources.get(value) if isinstance(value, str) else None

    def head(self) -> dict[str, Any]:
        identity = {"task": self.task, "run": self.run, "attempt": self.event.attempt, "at": self.event.at}
        return {**identity, "builder": self.event.payload["builder"], "digest": self.part("digest")}


def show(services: Services, task: str, number: int | None) -> Result:
    """Return each part of the envelope of an attempt, by default the newest: its value or hash, and the hashed text."""
    record = _find(services, task, number)
    return Result({**record.head(), "parts": [_row(record, name) for name in envelope.PARTS]})


def _row(record: _RecordedEnvelope, name: str) -> dict[str, Any]:
    value = record.part(name)
    return {"name": name, "value": value, "absent": value == envelope.NOTHING, "source": record.source(name)}


def _find(services: Services, name: str, number: int | None) -> _RecordedEnvelope:
    phase, task = run_lookup.find_task(name)
    state = run_lookup.require_run(services, phase)
    run_lookup.require_task(state.tasks, task, state.phase, f"Run {state.id}")
    state = run_lookup.attempting_run(services, state, task)
    started = services.log.events(run=state.id, task=task, kind="attempt.started", newest_first=True)
    event = next((e for e in started if number in {None, e.attempt}), None)
    if event is None:
        words = "was not attempted" if number is None else f"has no attempt {number}"
        raise Refusal(
            "task.no-attempt",
            f"{task} {words} in run {state.id}.",
            hint=Action.of("show", task),
            details={"task": task},
        )
    return _RecordedEnvelope(task, state.id, event, _sources(services, state.id, event.seq))


def _sources(services: Services, run: str, before: int) -> Mapping[str, str]:
    """Return the texts that were kept before an attempt started, by hash."""
    kinds = ("run.locked", "envelope.changed")
    events = (e for kind in kinds for e in services.log.events(run=run, kind=kind) if e.seq < before)
    return {digest: text for event in events for digest, text in event.payload["sources"].items()}
