"""The documents that idumb writes for users, as one object. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from idumb.app.ports.agents import PromptRequest
from idumb.domain.runs import state_file
from idumb.domain.runs.handoff import Document
from idumb.domain.runs.state_file import HistoryReport
from idumb.views import markup
from idumb.views.reports import checkpoint, plan_files, rendering, run_status, summary, verification

_BODY_OF_HANDOFF = frozenset({"title", "summary", "deliverables", "acceptance_criteria", "next_steps", "outputs"})
Filled = Callable[[str | None, str, Mapping[str, str]], str]


class MarkdownDocuments:
    """Renders documents. `prompt` and `filled` are functions that render prompts, injected from outside.

    `filled` fills values into a template; None is the shipped template of that name. AdapterError `agent.no-prompt` if
    none is shipped.
    """

    checkpoint = staticmethod(checkpoint.render)
    progress = staticmethod(run_status.progress)
    summary = staticmethod(summary.render)
    unverified = staticmethod(verification.render_unverified)
    verification = staticmethod(verification.render)
    research = staticmethod(plan_files.research)
    first_plan = staticmethod(plan_files.first_plan)
    new_plan = staticmethod(plan_files.new_plan)
    new_tasks = staticmethod(plan_files.new_tasks)
    gap_plan = staticmethod(plan_files.gap_plan)

    def __init__(self, prompt: Callable[[PromptRequest], str], filled: Filled = lambda _, name, __: name) -> None:
        self.prompt = prompt
        self.filled = filled

    @staticmethod
    def handoff(document: Document) -> str:
        """Return the document of a handoff. It depends on the handoff alone: writing it again changes nothing."""
        values = {"outputs": {}, **document.as_dict()}
        head = {name: value for name, value in values.items() if name not in _BODY_OF_HANDOFF}
        return rendering.render("handoff.md", fields={"type": "handoff", **head}, **values)

    @staticmethod
    def state(report: HistoryReport) -> str:
        """Return the text of `state.json`. The same log gives the same bytes."""
        return markup.json_text(state_file.file_content(report))
