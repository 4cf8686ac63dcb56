"""Documents that idumb writes for users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from idumb.domain.contract import Contract
from idumb.domain.plans.plan import Task
from idumb.domain.runs.run import RunState

if TYPE_CHECKING:  # types that only some commands use; those commands import them
    from idumb.domain.documents.new_task import Placed
    from idumb.domain.runs.gap import Gap
    from idumb.domain.runs.handoff import Document
    from idumb.domain.runs.state_file import HistoryReport
from idumb.app.ports.agents import PromptRequest


class Reports(Protocol):
    """Projections: files in `.idumb/brain/` and the phase folder, which can be rebuilt from the log."""

    def write(self, path: str, text: str) -> None:
        """Write atomically, create folders and redact secrets. Refuses links that lead out of the repository."""

    def write_source(self, path: str, text: str) -> None:
        """Write without redaction: a plan, whose commands run, or another file of the user."""

    def remove(self, path: str) -> None: ...

    def exists(self, path: str) -> bool: ...

    def read(self, path: str) -> str | None: ...

    def empty(self, path: str) -> bool:
        """Whether this is an empty regular file."""

    def files(self, folder: str) -> tuple[str, ...]:
        """Every regular file below a folder, sorted, without following links."""


class Documents(Protocol):
    """Renders documents. Pure; `views/` implements it."""

    def filled(self, template: str | None, name: str, values: Mapping[str, str]) -> str:
        """Fill values into a template; None is the shipped template of that name.

        AdapterError `agent.no-prompt` if none is shipped.
        """

    def checkpoint(
        self, state: RunState, task: Task, evidence: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]]
    ) -> str: ...

    def progress(self, state: RunState, statuses: Mapping[str, str]) -> str: ...

    def state(self, report: HistoryReport) -> str:
        """The text of `state.json`. The same log gives the same bytes."""

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
        clone: Sequence[str] = (),
    ) -> str: ...

    def verification(self, contract: Contract, record: Mapping[str, Any], *, now: str) -> str: ...

    def unverified(self, contract: Contract, state: RunState, *, now: str) -> str:
        """The report of a verified phase some of whose tasks were rolled back since."""

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
        """The text of a research file; `body` is untrusted."""

    def first_plan(self, template: str, words: Mapping[str, str]) -> str:
        """A plan from a template; `words` has phase, title, goal, roadmap and builder."""

    def new_plan(self, template: str, words: Mapping[str, str], tasks: Sequence[Placed]) -> str:
        """A plan of these tasks; `words` has phase, title, goal, requirement and builder."""

    def new_tasks(
        self, template: str, tasks: Sequence[Placed], requirements: Sequence[str], builder: str | None
    ) -> str:
        """The tasks alone, in the form that the template has for a task; `builder` None is that of the plan."""
