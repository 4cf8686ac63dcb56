"""Compares an attempt with an earlier one under the same envelope, base and request: both must leave the same files."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Trees
from idumb.domain import agent, outcome, paths, wording
from idumb.domain.errors import Refusal
from idumb.domain.runs.event import Event

_LOOKED_AT = 20


def compare(context: RunContext, attempt: Attempt) -> Attempt:
    """Compare the work with the newest attempt like this one. Deterministic mode refuses a difference."""
    result, candidate = attempt.result, attempt.candidate
    by_person = agent.capabilities_of(attempt.announced["envelope"]["adapter"]).works_in_place
    if result is None or result.outcome != outcome.COMPLETED or by_person:  # a person need not do the same twice
        return attempt
    earlier = _earlier(context, attempt)
    if earlier is None:
        return attempt
    left = earlier.payload["left"]
    lines = (line for line in earlier.payload["ledger"] if "symbol" not in line and line["actual"])
    touched = {*(line["path"] for line in lines), *attempt.ledger.changed}
    differing = _differing(context.work, left, candidate, touched)
    if not differing:
        return attempt
    other_attempt = f"run {earlier.run}, attempt {earlier.attempt}"
    shown = wording.listed(differing)
    context.journal.write(
        context.journal.event(
            "nondeterminism.found",
            attempt.task.id,
            attempt.number,
            earlier={"run": earlier.run, "attempt": earlier.attempt, "tree": left},
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


def _earlier(context: RunContext, attempt: Attempt) -> Event | None:
    """Return how the newest attempt ended that began in the same way, and whose builder completed it."""
    log, announced = context.services.log, attempt.announced
    for begun in log.events(task=attempt.task.id, kind="attempt.started", newest_first=True, limit=_LOOKED_AT):
        payload = begun.payload
        same = (payload["request"], payload["envelope"]["digest"]) == (
            announced["request"],
            announced["envelope"]["digest"],
        )
        starts = ((payload["base"], attempt.base), (payload["present"], announced["present"]))
        if not same or (begun.run, begun.attempt) == (context.run, attempt.number):
            continue
        ended = log.events(run=begun.run, task=begun.task, kind="attempt.finished", after=begun.seq)
        last = next(reversed([event for event in ended if event.attempt == begun.attempt]), None)
        if last is None or (last.payload["builder"] or {}).get("outcome") != outcome.COMPLETED:
            continue
        if all(_differing(context.work, *pair) == () for pair in starts if pair[0] != pair[1]):
            return last
    return None


def _differing(work: Trees, first: str, second: str, among: Collection[str] | None = None) -> tuple[str, ...] | None:
    """Return the paths that differ, or of `among` these, without idumb's own files, which every run writes.

    None if the trees cannot be compared, because objects are gone.
    """
    try:
        changed = [change.path for change in work.changes(first, second)]
    except Refusal:
        return None
    return tuple(p for p in changed if (among is None or p in among) and not paths.matches_any(p, paths.OWN_FILES))
