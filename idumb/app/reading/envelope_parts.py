"""Environment envelopes: show the parts of an attempt's envelope, and compare two attempts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.domain.consent import envelope
from idumb.domain.errors import InputError, Refusal
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AttemptSelector:
    """Selects one attempt of a task: by default, the newest attempt in the newest run."""

    task: str
    attempt: int | None = None
    run: str | None = None


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
        if name in {envelope.CONTEXT, envelope.CONVERSATION}:
            recorded = self.event.payload.get("context" if name == envelope.CONTEXT else "resumes")
            return None if recorded is None else json.dumps(recorded, indent=1, sort_keys=True)
        value = self.part(name)
        return self.sources.get(value) if isinstance(value, str) else None

    def head(self) -> dict[str, Any]:
        identity = {"task": self.task, "run": self.run, "attempt": self.event.attempt, "at": self.event.at}
        return {**identity, "builder": self.event.payload["builder"], "digest": self.part("digest")}


def show(services: Services, selector: AttemptSelector) -> Result:
    """Return each part of an attempt's envelope: its value or hash, and the hashed text."""
    record = _find(services, selector)
    return Result({"action": "show", **record.head(), "parts": [_row(record, name) for name in envelope.PARTS]})


def _row(record: _RecordedEnvelope, name: str) -> dict[str, Any]:
    value = record.part(name)
    return {"name": name, "value": value, "absent": value == envelope.NOTHING, "source": record.source(name)}


def compare(services: Services, one: AttemptSelector, other: AttemptSelector) -> Result:
    """Return the parts in which two attempts differ, with both values, and the parts that cannot be compared."""
    left, right = _find(services, one), _find(services, other)
    differ, unknown = envelope.compare(left.event.payload["envelope"], right.event.payload["envelope"])
    return Result(
        {
            "action": "diff",
            "attempts": [left.head(), right.head()],
            "same": not differ and not unknown,
            "differences": [{"name": name, "values": [_row(left, name), _row(right, name)]} for name in differ],
            "unknown": list(unknown),
        }
    )


def _find(services: Services, selector: AttemptSelector) -> _RecordedEnvelope:
    state, task = _state(services, selector)
    run_lookup.require_task(state.tasks, task, state.phase, f"Run {state.id}")
    state = run_lookup.attempting_run(services, state, task)
    started = services.log.events(run=state.id, task=task, kind="attempt.started", newest_first=True)
    event = next((e for e in started if selector.attempt in {None, e.attempt}), None)
    if event is None:
        words = "was not attempted" if selector.attempt is None else f"has no attempt {selector.attempt}"
        raise Refusal(
            "task.no-attempt", f"{task} {words} in run {state.id}.", hint=f"idumb show {task}", details={"task": task}
        )
    return _RecordedEnvelope(task, state.id, event, _sources(services, state.id, event.seq))


def _state(services: Services, selector: AttemptSelector) -> tuple[RunState, str]:
    phase, task = run_lookup.find_task(selector.task)
    if selector.run is None:
        return run_lookup.require_run(services, phase), task
    state = run_lookup.run_of(services, selector.run)
    if not state.id:
        raise InputError("run.unknown", f"The log has no run {selector.run}.", hint=f"idumb log {phase}")
    return state, task


def _sources(services: Services, run: str, before: int) -> Mapping[str, str]:
    """Return the texts that were kept before an attempt started, by hash."""
    kinds = ("run.locked", "envelope.changed")
    events = (e for kind in kinds for e in services.log.events(run=run, kind=kind) if e.seq < before)
    return {digest: text for event in events for digest, text in event.payload["sources"].items()}
