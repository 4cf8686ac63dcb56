"""Implement the port `Documents`. Each module is imported when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from idumb.app.ports.agents import PromptRequest
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import Task
from idumb.domain.runs.run import RunState

if TYPE_CHECKING:
    from idumb.domain.runs.gap import Gap
    from idumb.domain.runs.handoff import Document
    from idumb.domain.runs.state_file import HistoryReport

Filled = Callable[[str | None, str, Mapping[str, str]], str]


class MarkdownDocuments:
    """Implements `Documents`. `prompt` and `filled` are functions that render prompts, injected from outside."""

    def __init__(self, prompt: Callable[[PromptRequest], str], filled: Filled = lambda _, name, __: name) -> None:
        self.prompt = prompt
        self.filled = filled

    def checkpoint(
        self, state: RunState, task: Task, evidence: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]]
    ) -> str:
        from idumb.views.reports import checkpoint

        return checkpoint.render(task, state, evidence=evidence, ledger=lines)

    def progress(self, state: RunState, statuses: Mapping[str, str]) -> str:
        from idumb.views.reports import progress_file

        return progress_file.render(state, statuses)

    def state(self, told: HistoryReport) -> str:
        from idumb.domain.runs import state_file
        from idumb.views import markup

        return markup.json_text(state_file.file_content(told))

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
    ) -> str:
        from idumb.views.reports import summary

        return summary.render(
            contract, state, statuses, evidence=evidence, line_counts=line_counts, now=now, links=links
        )

    def research(self, fields: Mapping[str, str | None], body: str) -> str:
        from idumb.views.reports import planning_files

        return planning_files.research(fields, body)

    def first_plan(self, template: str, words: Mapping[str, str]) -> str:
        from idumb.views.reports import planning_files

        return planning_files.first_plan(template, words)

    def verification(self, contract: Contract, record: Mapping[str, Any], *, now: str) -> str:
        from idumb.views.reports import verification

        return verification.render(contract, record, now=now)

    def unverified(self, contract: Contract, state: RunState, *, now: str) -> str:
        from idumb.views.reports import verification

        return verification.render_unverified(contract, state.reason, now=now)

    def handoff(self, document: Document) -> str:
        from idumb.views.reports import handoff

        return handoff.render(document)

    def gap_plan(
        self,
        contract: Contract,
        gaps: Sequence[Gap],
        *,
        identity: str,
        first: int,
        builder: str | None,
        reach: Sequence[str],
    ) -> str:
        from idumb.views.reports import gap_plan

        return gap_plan.render(contract, gaps, identity=identity, first=first, builder=builder, reach=reach)
