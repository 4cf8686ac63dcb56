"""Notices to the user: a run has ended, or it waits for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from idumb.domain.runs.event import Event

FINISHED, FAILED, DECISION = KINDS = ("finished", "failed", "decision")


class Notify(Struct, frozen=True):
    """The user's own settings: which kinds of notices, and the ways in which each is sent."""

    on: tuple[str, ...] = KINDS
    command: tuple[str, ...] = ()
    webhook: str = ""
    desktop: bool = False

    @property
    def ways(self) -> dict[str, Any]:
        return {"command": list(self.command), "webhook": self.webhook, "desktop": self.desktop}


def of_event(event: Event, *, asked: bool) -> Mapping[str, str] | None:
    """Return the notice that an event calls for; None if it calls for none.

    A run that halts after it `asked` a person was told about with its question.
    """
    reason = str(event.payload.get("reason") or "")
    if event.kind == "run.completed":
        return _notice(FINISHED, event, "The run has ended: every task is settled", "idumb status")
    if event.kind == "run.failed" or (event.kind == "run.halted" and not asked):
        return _notice(FAILED, event, f"The run stopped: {reason or 'tasks failed'}", "idumb status")
    if event.kind == "decision.asked":
        return _notice(DECISION, event, str(event.payload["what"]), "idumb decisions")
    return None


def _notice(kind: str, event: Event, words: str, command: str) -> Mapping[str, str]:
    return {"kind": kind, "run": event.run or "", "task": event.task or "", "words": words, "next": command}
