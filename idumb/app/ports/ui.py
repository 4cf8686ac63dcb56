"""The user at the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from idumb.domain.runs.event import Event

if TYPE_CHECKING:  # types that only some commands use; those commands import them
    from idumb.domain.decision import Answer, Decision


class Asker(Protocol):
    """Asks the user at the terminal."""

    @property
    def interactive(self) -> bool:
        """Whether a user can be asked. False after a question was not answered in time."""

    def ask(self, decision: Decision) -> Answer | None:
        """The answer; None if nobody can be asked or nothing was decided."""


class Reporter(Protocol):
    """Shows progress and never fails the run. Receives each event after it is durable."""

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        """Start with the tasks of the run in execution order, and their statuses."""

    def event(self, event: Event) -> None: ...

    def note(self, text: str) -> None: ...
