"""Reading: what an attempt ran under, part by part, and in which parts two attempts differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.domain.consent import envelope
from idumb.domain.errors import InputError, Refusal
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState


@dataclass(frozen=True, slots=True)
class AttemptSelector:
    """One attempt of one task: the newest unless `attempt` says which; of the newest run unless `run` does."""

    task: str
    attempt: int | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    """An attempt's envelope as the log has it, with the readable text of its hashes."""

    task: str
    run: str
    event: Event
    sources: Mapping[str, str]

    def part(self, name: str) -> Any:
        return self.event.payload["envelope"].get(name)

    def source(self, name: str) -> str | None:
        """The readable text behind a hash; None where there is nothing to read, or nobody kept it."""
        if name in {envelope.CONTEXT, envelope.CONVERSATION}:
            told = self.event.payload.get("context" if name == envelope.CONTEXT else "resumes")
            return None if told is None else json.dumps(told, indent=1, sort_keys=True)
        value = self.part(name)
        return self.sources.get(value) if isinstance(value, str) else None

    def head(self) -> dict[str, Any]:
        told = {"task": self.task, "run": self.run, "attempt": self.event.attempt, "at": self.event.at}
        return {**told, "builder": self.event.payload["builder"], "digest": self.part("digest")}


def show(services: Services, wanted: AttemptSelector) -> Result:
    """Each part of one attempt's envelope: its value or hash, and the text that the hash is of."""
    kept = _find(services, wanted)
    return Result({"action": "show", **kept.head(), "parts": [_row(kept, name) for name in envelope.PARTS]})


def _row(kept: _Kept, name: str) -> dict[str, Any]:
    value = kept.part(name)
    return {"name": name, "value": value, "absent": value == envelope.NOTHING, "source": kept.source(name)}


def compare(services: Services, one: AttemptSelector, other: AttemptSelector) -> Result:
    """The parts in which two attempts differ, with both values, and those that nobody can compare."""
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


def _find(services: Services, wanted: AttemptSelector) -> _Kept:
    state, task = _state(services, wanted)
    known = state.tasks.get(task)
    if known is None:
        raise InputError(
            "task.unknown",
            f"Run {state.id} has no task {task}.",
            hint=f"idumb graph {state.phase}",
            details={"phase": state.phase},
        )
    if known.carried_from is not None and task not in state.attempted:
        return _find(services, AttemptSelector(task, wanted.attempt, known.carried_from))
    begun = services.log.events(run=state.id, task=task, kind="attempt.started", newest_first=True)
    found = next((e for e in begun if wanted.attempt in {None, e.attempt}), None)
    if found is None:
        words = "was not attempted" if wanted.attempt is None else f"has no attempt {wanted.attempt}"
        raise Refusal(
            "task.no-attempt", f"{task} {words} in run {state.id}.", hint=f"idumb show {task}", details={"task": task}
        )
    return _Kept(task, state.id, found, _sources(services, state.id, found.seq))


def _state(services: Services, wanted: AttemptSelector) -> tuple[RunState, str]:
    phase, task = run_lookup.find_task(wanted.task)
    if wanted.run is None:
        return run_lookup.require_run(services, phase), task
    state = run_lookup.run_of(services, wanted.run)
    if not state.id:
        raise InputError("run.unknown", f"The log has no run {wanted.run}.", hint=f"idumb log {phase}")
    return state, task


def _sources(services: Services, run: str, before: int) -> Mapping[str, str]:
    """All readable texts that were kept until an attempt began."""
    kinds = ("run.locked", "envelope.changed")
    found = (e for kind in kinds for e in services.log.events(run=run, kind=kind) if e.seq < before)
    return {digest: text for event in found for digest, text in event.payload["sources"].items()}
