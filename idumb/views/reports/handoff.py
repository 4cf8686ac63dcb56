"""Render a handoff as Markdown: its fields in the frontmatter, the information for its receiver in the body."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain.runs.handoff import Document
from idumb.views import markup

_HEAD = (
    "handoff_id",
    "from_agent",
    "to_agent",
    "request_id",
    "timestamp",
    "handoff_type",
    "status",
    "priority",
    "workflow",
    "run",
    "task",
    "attempt",
)


def render(document: Document) -> str:
    """Return the document. It depends on the handoff alone, so that writing it again changes nothing."""
    values = document.as_dict()
    lines = [*markup.frontmatter({"type": "handoff", **{name: values[name] for name in _HEAD}}), ""]
    lines += [f"# {markup.prose(document.task)} {markup.prose(document.title)}: to {markup.prose(document.to_agent)}"]
    lines += ["", "## Summary", "", *_words(document.summary)]
    lines += ["", "## Deliverables", "", *_bullets(document.deliverables)]
    lines += ["", "## Acceptance criteria", "", *_bullets(document.acceptance_criteria)]
    if document.outputs:
        lines += ["", "## Outputs", "", *_words(markup.json_text(dict(document.outputs)).rstrip())]
    lines += ["", "## Next steps", "", *_words(document.next_steps)]
    words = "When you begin, are stopped or are done, say so:"
    command = f"idumb handoff update {document.handoff_id} in_progress|blocked|failed|complete"
    return "\n".join([*lines, "", words, "", *markup.block(command)]) + "\n"


def _words(text: str) -> list[str]:
    """Return text of an agent or a plan as a fenced block."""
    return markup.block(text) if text.strip() else ["None."]


def _bullets(texts: Sequence[str]) -> list[str]:
    return [f"- {markup.prose(text)}" for text in texts] or ["None."]
