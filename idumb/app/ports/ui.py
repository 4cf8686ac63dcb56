"""The person at the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from idumb.domain.runs.event import Event

if TYPE_CHECKING:  # what only some commands pass around is loaded by those that make it
    from idumb.domain.decision import Answer, Decision


class Asker(Protocol):
    """Puts a decision to a person at the terminal."""

    @property
    def interactive(self) -> bool:
        """Whether somebody can be asked; no more once a question was not answered in time."""

    def ask(self, decision: Decision) -> Answer | None:
        """The answer, or None where nobody can be asked or nothing was decided."""


class Reporter(Protocol):
    """Shows progress; must not fail the run. Receives every event once it is durable, and notes before."""

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        """The tasks of the run that is about to go on, in execution order, and where each is."""

    def event(self, event: Event) -> None: ...

    def note(self, text: str) -> None: ...
