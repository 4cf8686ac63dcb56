"""Implement the port `Documents`. Each module is imported when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from idumb.app.ports.agents import PromptRequest

if TYPE_CHECKING:
    from idumb.domain.runs.state_file import HistoryReport

Filled = Callable[[str | None, str, Mapping[str, str]], str]


def _report(module: str, function: str = "render") -> Callable[..., str]:
    """Return a method that renders one kind of report."""

    def render(_: MarkdownDocuments, *args: Any, **kwargs: Any) -> str:
        renderer: Callable[..., str] = getattr(import_module(f"idumb.views.reports.{module}"), function)
        return renderer(*args, **kwargs)

    return render


class MarkdownDocuments:
    """Implements `Documents`. `prompt` and `filled` are functions that render prompts, injected from outside."""

    checkpoint = _report("checkpoint")
    progress = _report("run_status", "progress")
    summary = _report("summary")
    verification = _report("verification")
    unverified = _report("verification", "render_unverified")
    handoff = _report("handoff")
    research = _report("plan_files", "research")
    first_plan = _report("plan_files", "first_plan")
    new_plan = _report("plan_files", "new_plan")
    new_tasks = _report("plan_files", "new_tasks")
    gap_plan = _report("plan_files", "gap_plan")

    def __init__(self, prompt: Callable[[PromptRequest], str], filled: Filled = lambda _, name, __: name) -> None:
        self.prompt = prompt
        self.filled = filled

    def state(self, report: HistoryReport) -> str:
        from idumb.domain.runs import state_file
        from idumb.views import markup

        return markup.json_text(state_file.file_content(report))
