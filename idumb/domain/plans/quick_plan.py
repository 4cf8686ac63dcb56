"""Quick plans: one task that a person describes on the command line.

The phase of the third quick plan is `Q3`, its task `TQ3-01`, its folder `.planning/quick/003-fix-the-typo`.
"""

from __future__ import annotations

import re
import unicodedata

from idumb.domain.plans import yaml_plan
from idumb.domain.plans.numbered_phases import QUICK
from idumb.domain.plans.plan import FileClaim
from idumb.lazy_dataclass import dataclass

PLAN = "01-PLAN.md"
LONGEST_TITLE = 100
_LONGEST_SLUG = 40
ANYTHING = ("create", "modify", "delete")
ANYWHERE = tuple(FileClaim(verb, "**") for verb in ANYTHING)
"""The claims of a task without named files; a person reviews its changes."""


@dataclass(frozen=True, slots=True)
class QuickRequest:
    """One task in a person's words.

    `files` is None if no files were named. `check` is the command that proves the task, `builder`
    the name of a binding; None for the configuration's builder.
    """

    words: str
    files: tuple[FileClaim, ...] | None = None
    check: str | None = None
    builder: str | None = None

    @property
    def title(self) -> str:
        """The words on one line, truncated to the length of a heading."""
        line = " ".join(self.words.split())
        return line if len(line) <= LONGEST_TITLE else line[: LONGEST_TITLE - 1].rstrip() + "…"


def folder(number: int, words: str) -> str:
    """Return the folder of the plan, relative to the repository's root."""
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode().lower()
    slug = "-".join(re.findall("[a-z0-9]+", plain))[:_LONGEST_SLUG].strip("-")
    return QUICK.folder(number, slug)


def text(phase: str, request: QuickRequest) -> str:
    """Return the text of the plan. It depends on the request alone, so that you can approve it before it is written."""
    task: dict[str, object] = {"id": f"T{phase}-01", "title": request.title}
    if " ".join(request.words.split()) != request.title:
        task["description"] = request.words.strip()
    task["files"] = yaml_plan.by_verb(ANYWHERE if request.files is None else request.files)
    task["acceptance"] = _acceptance(request)
    if request.builder is not None:
        task["builder"] = request.builder
    return yaml_plan.text({"phase": phase, "plan": "01", "title": request.title, "goal": request.title}, [task])


def _acceptance(request: QuickRequest) -> list[dict[str, object]]:
    done = f"It is done: {request.title}"
    checked: list[dict[str, object]] = [{"text": done, "check": request.check}] if request.check else []
    if request.files is None:
        return [*checked, {"text": f"What changed is what should change: {request.title}", "human": True}]
    words = "Something changed, and only in the declared files; nothing proves more"
    return checked or [{"text": words, "changed": True}]
