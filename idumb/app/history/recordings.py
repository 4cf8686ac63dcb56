"""Recorded runs to replay: the event log has the answers of agents, and snapshots have the files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from idumb.app.core import run_lookup
from idumb.app.core.services import Services, Trees
from idumb.app.ports import Conflict
from idumb.domain import agent, failures, outcome, paths
from idumb.domain.agent import AgentResult, RecordedAttempt
from idumb.domain.proof import evidence
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import INTERRUPTED

_JUDGED = {
    evidence.PASSED: outcome.COMPLETED,
    evidence.OPINION: outcome.COMPLETED,
    evidence.UNPROVEN: outcome.ERRORED,
    evidence.TIMED_OUT: outcome.TIMED_OUT,
    evidence.ERRORED: outcome.ERRORED,
}
_NOTHING_USED = agent.Usage(0, 0, 0.0)


class _Attempt(Struct):
    """What the events say about one attempt."""

    base: str
    tree: str | None = None
    changed: tuple[str, ...] = ()
    builder: Mapping[str, Any] | None = None
    judged: Mapping[str, Any] | None = None


class Recordings:
    """`trees` are those of the workspace for the replay."""

    def __init__(self, services: Services, trees: Trees) -> None:
        self._services = services
        self._trees = trees

    def has_run(self, run: str) -> bool:
        return bool(run_lookup.run_of(self._services, run).id)

    def find(self, run: str, task: str, number: int) -> RecordedAttempt | None:
        """Return the recording of attempt `number` of a task, or of its last one if there are fewer; None if none."""
        state = run_lookup.attempting_run(self._services, run_lookup.run_of(self._services, run), task)
        task_state = state.tasks.get(task)
        if task_state is None:
            return None
        attempts = _attempts(self._services.log.events(run=state.id, task=task))
        playable = [a for a in attempts if a.builder and _is_playable(a)]
        if not playable:
            return None
        upto = playable[:number]
        last = upto[-1]
        return RecordedAttempt(
            digest=task_state.digest,
            built=_builder_result(last.builder or {}),
            judged=None if last.judged is None else _validator_result(last.judged),
            trees=(last.base, *(a.tree for a in upto if a.tree)),
            paths=tuple(dict.fromkeys(p for a in upto for p in a.changed)),
            judged_tree=None if last.judged is None else last.judged.get("tree"),
        )

    def differing(self, recorded: RecordedAttempt, candidate: str) -> tuple[str, ...] | None:
        """Return paths that differ from what the validator judged, except idumb's own; None if that is unknown."""
        if not recorded.judged_tree or not candidate:
            return None
        try:
            changes = self._trees.changes(recorded.judged_tree, candidate)
        except KeyError:  # the snapshots may be lost
            return None
        return tuple(c.path for c in changes if not paths.matches_any(c.path, paths.OWN_FILES))

    def play(self, recorded: RecordedAttempt) -> tuple[Conflict, ...]:
        """Write the files of the attempt, if the recording contains the present files."""
        written = [p for p in recorded.paths if not paths.matches_any(p, paths.OWN_FILES)]
        present = self._trees.scan(written)
        differing = self._trees.differing(present, recorded.trees, written)
        conflicts = tuple(Conflict(path, "differs from the recording") for path in differing)
        return conflicts or self._trees.restore(recorded.trees[-1], present, written)


def _attempts(events: Iterator[Event]) -> Iterator[_Attempt]:
    """Return every attempt of one task, in the order in which they started."""
    attempts: dict[int, _Attempt] = {}
    for event in events:
        p, number = event.payload, event.attempt or 0
        if event.kind == "attempt.started":
            attempts[number] = _Attempt(p["base"])
        attempt = attempts.get(number)
        if attempt is None:
            continue
        if event.kind == "evidence.recorded" and str(p["subject"]).startswith("validator "):
            attempt.judged = p
        elif event.kind == "attempt.finished":
            attempt.builder, attempt.tree = p.get("builder"), p.get("left")
            attempt.changed = tuple(
                line["path"] for line in p.get("ledger", ()) if line["actual"] and "symbol" not in line
            )
        elif event.kind == "checkpoint.recorded" and p["status"] != INTERRUPTED:
            attempt.tree, attempt.changed = p["tree"], tuple(p["files"])
    return iter(attempts.values())


def _is_playable(attempt: _Attempt) -> bool:
    """Return whether an attempt can be replayed. An agent that was missing or waiting did nothing to replay.

    If only the verdict was pending, the attempt that has it includes the work.
    """
    builder, judged = attempt.builder or {}, attempt.judged or {}
    waited = builder.get("outcome") == outcome.WAITING or judged.get("result") == evidence.WAITING
    return bool(attempt.tree) and not failures.kind(builder.get("failure")).stops and not waited


def _builder_result(recorded: Mapping[str, Any]) -> AgentResult:
    """Return the builder's recorded answer, at no cost."""
    names = ("outcome", "message", "failure", "reply", "model")
    facts = {name: recorded[name] for name in names if recorded.get(name) is not None}
    claimed = tuple(recorded.get("claimed_files", ()))
    return AgentResult(**facts, **_process(recorded), claimed_files=claimed, usage=_NOTHING_USED)


def _validator_result(recorded: Mapping[str, Any]) -> AgentResult:
    """Return the validator's recorded answer, with its evidence in the form that is parsed again."""
    shown = {"verdict": outcome.PASS, "evidence": recorded.get("shown", [])}
    return AgentResult(
        outcome=_JUDGED.get(recorded["result"], outcome.FAILED),
        message=recorded.get("text", ""),
        reply=json.dumps(shown) if recorded["result"] == evidence.PASSED else "",
        failure=agent.MALFORMED if recorded["result"] == evidence.UNPROVEN else None,
        usage=_NOTHING_USED,
        **_process(recorded),
    )


def _process(recorded: Mapping[str, Any]) -> dict[str, Any]:
    names = ("exit_code", "output", "output_sha256", "truncated", "cause")
    return {name: recorded[name] for name in names if recorded.get(name) is not None}
