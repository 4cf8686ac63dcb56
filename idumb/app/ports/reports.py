"""Documents that idumb writes for people to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from idumb.domain.contract import Contract
from idumb.domain.plans.plan import Task
from idumb.domain.runs.run import RunState

if TYPE_CHECKING:  # what only some commands pass around is loaded by those that make it
    from idumb.domain.runs.gap import Gap
    from idumb.domain.runs.handoff import Document
    from idumb.domain.runs.state_file import HistoryReport
from idumb.app.ports.agents import PromptRequest


class Reports(Protocol):
    """Projections for people: files under `.idumb/brain/` and the phase folder. Losing them loses nothing."""

    def write(self, path: str, text: str) -> None:
        """Atomically, creating folders, without known secrets; refuses links that lead out of the repository."""

    def write_source(self, path: str, text: str) -> None:
        """The same with every byte as it is: a plan, whose commands run, or another file of the user's."""

    def remove(self, path: str) -> None: ...

    def exists(self, path: str) -> bool: ...

    def read(self, path: str) -> str | None: ...

    def empty(self, path: str) -> bool:
        """Whether there is a regular file without a byte; it is not read."""

    def files(self, folder: str) -> tuple[str, ...]:
        """Every regular file below a folder, sorted; nothing that a link leads to."""


Payload = Mapping[str, Any]


class Documents(Protocol):
    """Renders what people read; pure. `views/` implements it."""

    def filled(self, template: str | None, name: str, values: Mapping[str, str]) -> str:
        """A template with values in place of their names; None is the shipped one of that name.

        AdapterError `agent.no-prompt` where none is shipped.
        """

    def checkpoint(
        self, state: RunState, task: Task, evidence: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]]
    ) -> str: ...

    def progress(self, state: RunState, statuses: Mapping[str, str]) -> str: ...

    def state(self, told: HistoryReport) -> str:
        """`state.json`; the same words of the log give the same bytes."""

    def summary(
        self,
        contract: Contract,
        state: RunState,
        statuses: Mapping[str, str],
        *,
        evidence: Mapping[str, Sequence[Mapping[str, Any]]],
        line_counts: Mapping[str, tuple[int | None, int | None]],
        now: str,
        links: Mapping[str, str],
    ) -> str: ...

    def verification(self, contract: Contract, record: Mapping[str, Any], *, now: str) -> str: ...

    def unverified(self, contract: Contract, state: RunState, *, now: str) -> str:
        """The report of a phase that was judged, and of which tasks were taken back since."""

    def handoff(self, document: Document) -> str: ...

    def gap_plan(
        self,
        contract: Contract,
        gaps: Sequence[Gap],
        *,
        identity: str,
        first: int,
        builder: str | None,
        reach: Sequence[str],
    ) -> str: ...

    def prompt(self, request: PromptRequest) -> str: ...

    def research(self, fields: Mapping[str, str | None], body: str) -> str:
        """A research file; `body` may be of any origin."""

    def first_plan(self, template: str, words: Mapping[str, str]) -> str:
        """A plan from a template; `words` are phase, title, goal, roadmap and builder."""
