"""Runs as recordings: what builders and validators did is read from the event log, and put back from kept trees."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from idumb.app.core import run_lookup
from idumb.app.core.services import Services
from idumb.app.ports.repository import Conflict, Trees
from idumb.domain import agent, failures, outcome, paths
from idumb.domain.agent import AgentResult
from idumb.domain.proof import evidence
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import INTERRUPTED

if TYPE_CHECKING:
    from idumb.domain.runs.recorded_attempt import RecordedAttempt

_JUDGED = {
    evidence.PASSED: outcome.COMPLETED,
    evidence.OPINION: outcome.COMPLETED,
    evidence.UNPROVEN: outcome.ERRORED,
    evidence.TIMED_OUT: outcome.TIMED_OUT,
    evidence.ERRORED: outcome.ERRORED,
}
_NOTHING_USED = agent.Usage(0, 0, 0.0)


@dataclass(slots=True)
class _Attempt:
    """The events of one attempt, put together."""

    base: str
    tree: str | None = None
    changed: tuple[str, ...] = ()
    builder: Mapping[str, Any] | None = None
    judged: Mapping[str, Any] | None = None


class Recordings:
    """`trees` are those of the workspace in which is played."""

    def __init__(self, services: Services, trees: Trees) -> None:
        self._services = services
        self._trees = trees

    def known(self, run: str) -> bool:
        return bool(run_lookup.run_of(self._services, run).id)

    def find(self, run: str, task: str, number: int) -> RecordedAttempt | None:
        """The attempt that answers to attempt `number` of a task, the last one where fewer were made; or None."""
        state = run_lookup.run_of(self._services, run)
        known = state.tasks.get(task)
        if known is None:
            return None
        if known.carried_from is not None and task not in state.attempted:
            return self.find(known.carried_from, task, number)
        made = [a for a in _attempts(self._services.log.events(run=run, task=task)) if a.builder and _worked(a)]
        if not made:
            return None
        upto = made[:number]
        last = upto[-1]
        from idumb.domain.runs.recorded_attempt import RecordedAttempt

        return RecordedAttempt(
            digest=known.digest,
            built=_built(last.builder or {}),
            judged=None if last.judged is None else _judged(last.judged),
            trees=(last.base, *(a.tree for a in upto if a.tree)),
            paths=tuple(dict.fromkeys(p for a in upto for p in a.changed)),
            judged_tree=None if last.judged is None else last.judged.get("tree"),
        )

    def differing(self, recorded: RecordedAttempt, candidate: str) -> tuple[str, ...] | None:
        """Paths, idumb's own aside, that are not as the validator judged them; None where that cannot be known."""
        if not recorded.judged_tree or not candidate:
            return None
        try:
            changes = self._trees.changes(recorded.judged_tree, candidate)
        except KeyError:  # kept trees can be lost with the repository they were in
            return None
        return tuple(c.path for c in changes if not paths.matches_any(c.path, paths.OWN_FILES))

    def play(self, recorded: RecordedAttempt) -> tuple[Conflict, ...]:
        """Leave the paths as the attempt left them, only where they are as the recording knows them."""
        wanted = [p for p in recorded.paths if not paths.matches_any(p, paths.OWN_FILES)]
        present = self._trees.scan(wanted)
        strange = tuple(
            Conflict(path, "is not as it was when this was recorded")
            for path in wanted
            if all(self._trees.entry(present, path) != self._trees.entry(tree, path) for tree in recorded.trees)
        )
        return strange or self._trees.restore(recorded.trees[-1], present, wanted)


def _attempts(events: Iterator[Event]) -> Iterator[_Attempt]:
    """Every attempt of one task, in the order in which they began."""
    found: dict[int, _Attempt] = {}
    for event in events:
        p, number = event.payload, event.attempt or 0
        if event.kind == "attempt.started":
            found[number] = _Attempt(p["base"])
        known = found.get(number)
        if known is None:
            continue
        if event.kind == "evidence.recorded" and str(p["subject"]).startswith("validator "):
            known.judged = p
        elif event.kind == "attempt.finished":
            known.builder, known.tree = p.get("builder"), p.get("left")
            known.changed = tuple(
                line["path"] for line in p.get("ledger", ()) if line["actual"] and "symbol" not in line
            )
        elif event.kind == "checkpoint.recorded" and p["status"] != INTERRUPTED:
            known.tree, known.changed = p["tree"], tuple(p["files"])
    return iter(found.values())


def _worked(made: _Attempt) -> bool:
    """Whether it is worth playing: an agent that was not there, or waited, did nothing that another is to repeat.

    Where only the verdict was waited for, the attempt that has it stands for both.
    """
    said, judged = made.builder or {}, made.judged or {}
    waited = said.get("outcome") == outcome.WAITING or judged.get("result") == evidence.WAITING
    return bool(made.tree) and said.get("failure") not in failures.STOPPING and not waited


def _built(said: Mapping[str, Any]) -> AgentResult:
    """The builder's answer, at no cost: nobody was asked again."""
    return AgentResult(
        outcome=said["outcome"],
        message=said.get("message", ""),
        claimed_files=tuple(said.get("claimed_files", ())),
        usage=_NOTHING_USED,
        exit_code=said.get("exit_code"),
        output=said.get("output", ""),
        output_sha256=said.get("output_sha256"),
        truncated=bool(said.get("truncated")),
        cause=said.get("cause"),
        failure=said.get("failure"),
        reply=said.get("reply", ""),
        model=said.get("model"),
    )


def _judged(said: Mapping[str, Any]) -> AgentResult:
    """What the validator answered, with what it showed in the form in which it is read again."""
    shown = {"verdict": outcome.PASS, "evidence": said.get("shown", [])}
    return AgentResult(
        reply=json.dumps(shown) if said["result"] == evidence.PASSED else "",
        failure=agent.MALFORMED if said["result"] == evidence.UNPROVEN else None,
        outcome=_JUDGED.get(said["result"], outcome.FAILED),
        message=said.get("text", ""),
        usage=_NOTHING_USED,
        exit_code=said.get("exit_code"),
        output=said.get("output", ""),
        output_sha256=said.get("output_sha256"),
        truncated=bool(said.get("truncated")),
        cause=said.get("cause"),
    )
