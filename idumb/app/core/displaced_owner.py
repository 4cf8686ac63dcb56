"""A command that got the work tree while its owner still lived: what it recorded is told when the run goes on.

The owner could write nothing more, so the command after it says what happened, in its own record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from idumb.app.core.services import Services
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState

_WORDS = {
    "task.accepted": "{task} was accepted by {by}: {reason}",
    "task.skipped": "{task} was left out by {by}: {reason}",
    "decision.answered": "{decision} was answered {choice} by {by}",
}


def told(holder: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the record of a command says of the owner that it overtook; empty where there was none."""
    if holder is None:
        return {}
    return {"overtook": {name: holder.get(name) for name in ("pid", "host", "since", "command", "fence")}}


def since_resumed(services: Services, state: RunState) -> tuple[str, ...]:
    """A line for each command that took the work tree from a living owner since this run last began or went on."""
    return tuple(_lines(services, state))


def _lines(services: Services, state: RunState) -> Iterator[str]:
    log = services.log
    resumed = next(iter(log.events(run=state.id, kind="run.resumed", newest_first=True, limit=1)), None)
    after = 0 if resumed is None else resumed.seq
    for started in log.events(run=state.id, kind="operation.started", after=after):
        owner = started.payload.get("overtook")
        if owner is None:
            continue
        said = [words for event in log.events(operation=started.operation) if (words := _said(event))]
        yield (
            f"idumb {started.payload['command']} got this work tree at {started.at} while idumb {owner['command']}"
            f" (process {owner['pid']}) still owned it, so its lock file had been removed or replaced."
            f" Recorded then: {'; '.join(said) or 'no word of a person'}"
        )


def _said(event: Event) -> str:
    form = _WORDS.get(event.kind)
    return "" if form is None else form.format_map({"task": event.task, "reason": "", **event.payload})
