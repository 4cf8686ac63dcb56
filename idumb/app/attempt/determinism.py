"""Compares an attempt with an earlier one under the same envelope, base and request: both must leave the same files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import EventLog, Trees
from idumb.domain import agent, outcome, paths, wording
from idumb.domain.errors import Refusal
from idumb.domain.runs.event import Event
from idumb.lazy_dataclass import dataclass

_LOOKED_AT = 20


@dataclass(frozen=True, slots=True)
class Earlier:
    """A finished attempt under the same conditions: its tree, and the paths that it changed."""

    run: str
    attempt: int
    tree: str
    touched: tuple[str, ...]


def compare(context: RunContext, attempt: Attempt) -> Attempt:
    """Compare the work with the newest attempt like this one. Deterministic mode refuses a difference."""
    result, candidate = attempt.result, attempt.candidate
    if result is None or result.outcome != outcome.COMPLETED or _is_by_hand(attempt):
        return attempt
    earlier = _earlier(context, attempt)
    if earlier is None:
        return attempt
    differing = _differing(context.work, earlier, candidate, attempt.ledger.changed)
    if not differing:
        return attempt
    other_attempt = f"run {earlier.run}, attempt {earlier.attempt}"
    shown = wording.listed(differing)
    context.journal.write(
        context.journal.event(
            "nondeterminism.found",
            attempt.task.id,
            attempt.number,
            earlier={"run": earlier.run, "attempt": earlier.attempt, "tree": earlier.tree},
            tree=candidate,
            paths=list(differing),
            envelope=attempt.announced["envelope"]["digest"],
            refused=context.deterministic,
        )
    )
    context.services.reporter.note(
        f"{attempt.task.id} left other bytes in {shown} than {other_attempt}, under the same envelope, base and request"
    )
    if not context.deterministic or attempt.outcome is not None:
        return attempt
    words = f"not deterministic: {shown} differ from {other_attempt}, under the same envelope, base and request"
    return dataclasses.replace(attempt, unlike=True).ended(outcome.FAILED, words)


def _is_by_hand(attempt: Attempt) -> bool:
    """Return whether a person works on it, who need not do the same twice."""
    return agent.capabilities_of(attempt.announced["envelope"]["adapter"]).works_in_place


def _earlier(context: RunContext, attempt: Attempt) -> Earlier | None:
    log, announced = context.services.log, attempt.announced
    begun = log.events(task=attempt.task.id, kind="attempt.started", newest_first=True, limit=_LOOKED_AT)
    for event in begun:
        if (event.run, event.attempt) == (context.run, attempt.number):
            continue
        payload = event.payload
        same = (
            payload.get("request") == announced["request"]
            and payload["envelope"]["digest"] == announced["envelope"]["digest"]
        )
        if same and _same_start(context.work, attempt, payload["base"], payload["present"]):
            finished = _finished(log, event)
            if finished is not None:
                return finished
    return None


def _same_start(work: Trees, attempt: Attempt, base: str, present: str) -> bool:
    pairs = {(base, attempt.base), (present, str(attempt.announced["present"]))}
    try:
        return not any(_foreign(work, earlier, current) for earlier, current in pairs if earlier != current)
    except Refusal:  # its objects are gone, so they cannot be compared
        return False


def _foreign(work: Trees, first: str, second: str) -> bool:
    """Return whether trees differ in more than idumb's own files, which every run writes."""
    return any(not paths.matches_any(change.path, paths.OWN_FILES) for change in work.changes(first, second))


def _finished(log: EventLog, begun: Event) -> Earlier | None:
    """Return how an attempt ended whose builder completed it."""
    ended = log.events(run=begun.run, task=begun.task, kind="attempt.finished", after=begun.seq)
    last = next(reversed([event.payload for event in ended if event.attempt == begun.attempt]), None)
    if last is None or (last["builder"] or {}).get("outcome") != outcome.COMPLETED:
        return None
    changed = tuple(line["path"] for line in last["ledger"] if "symbol" not in line and line["actual"])
    return Earlier(begun.run or "", begun.attempt or 1, last["left"], changed)


def _differing(work: Trees, earlier: Earlier, candidate: str, touched: Iterable[str]) -> tuple[str, ...]:
    all_touched = dict.fromkeys((*earlier.touched, *touched))
    compared = [path for path in all_touched if not paths.matches_any(path, paths.OWN_FILES)]
    try:
        return tuple(p for p in compared if work.entry(earlier.tree, p) != work.entry(candidate, p))
    except Refusal:
        return ()
