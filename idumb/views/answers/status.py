"""Output of `status`, `next` and `roadmap`, from the cached view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.views import forms, phrases

_ORDER = ("completed", "accepted", "running", "ready", "pending", "waiting", "failed", "blocked", "skipped")
_WORDS = {"completed": "done, not verified"}
_STANDING = {"stopped": "which is stopped", "elsewhere": "which cannot be seen from here"}
_OWNER = """
In use by process {owner.pid} on {owner.host}[, {standing}], since {owner.since}: {owner.command}
""".strip()
_QUESTIONS = "decisions* waiting for your answer: {id}  {what}"
_STATUS = f"""
{_OWNER}
phases* Phase {{phase}}[ {{title}}]: {{said}}
*   {{counted}}
*   done elsewhere according to {{elsewhere.by}}, not recorded here: {{counts:counts}}\
[; verification {{elsewhere.verification}}]
*   {{restoring.words}}
*   {{open.words}}
*   {{told.words}}
*   {{reason}}
*   {{problem}}
* problems*   problem: {{}}
* blocked*   {{tasks:99}} blocked by {{by}} ({{status}}[: {{reason}}])
* * actions*     {{}}
* decisions*   waiting for your answer: {{id}}  {{what}}
{_QUESTIONS}
{{nothing:?No phase is planned yet.}}
{{kept.words}}
"""
_UPCOMING = f"""
{_OWNER}
{_QUESTIONS}
questions* waiting for your answer: {{id}}  {{what}}
problems*   problem: {{}}
can_run_now= {{id}} | {{title}}
not_yet= {{id}} | {{title}} | {{status}}[: {{why}}]
blocked= {{tasks:99}} blocked by {{by}} ({{status}}[: {{reason}}])
* actions*   {{}}
  and {{more:+more task}}; idumb graph {{phase}} shows all
"""
_ROADMAP = """
rows* {phase} | [{title}][{title:!-}] | {said} | {done}
else ROADMAP.md lists no phases, and there are no phase folders.
"""


def status(view: phrases.Data) -> list[str]:
    """Return each phase with its counts, its questions, and the next command."""
    rows = [_row(row) for row in view["phases"]]
    nothing = view["initialised"] and not (rows or view.get("owner") or view.get("decisions"))
    return _ended(_STATUS, view, phases=rows, nothing=nothing)


def _row(row: phrases.Data) -> phrases.Data:
    elsewhere, tasks = row.get("elsewhere") or {}, row["tasks"]
    counts = {status: number for status, number in elsewhere.get("counts", {}).items() if status != "total"}
    return {
        **row,
        "said": _state(row),
        "counted": None if elsewhere or not tasks["total"] else counted(tasks),
        "counts": counts if any(counts.values()) else {"nothing": ""},
        "reason": None if row["decisions"] else row.get("reason"),  # an open question says more
    }


def _state(row: phrases.Data) -> str:
    return "changed since its last run" if row.get("changed_since_run") else _WORDS.get(row["state"], str(row["state"]))


def counted(tasks: Mapping[str, int]) -> str:
    """Return `2 of 5 done: 2 completed, 1 failed, 2 blocked`."""
    by_status = ", ".join(f"{tasks[s]} {s}" for s in _ORDER if tasks.get(s))
    return f"{_done(tasks)}: {by_status}"


def _done(tasks: Mapping[str, int]) -> str:
    return f"{tasks.get('completed', 0) + tasks.get('accepted', 0)} of {tasks['total']} done"


def upcoming(view: phrases.Data) -> list[str]:
    """Return the next command, ready tasks, and why others wait."""
    row = next((each for each in view["phases"] if each["phase"] == view["next"].get("phase")), None)
    if row is None:
        return _ended(_UPCOMING, view)
    told = {task for group in row.get("blocked", ()) for task in group["tasks"]}
    others = [task for task in row["others"] if task["id"] not in told]
    return _ended(_UPCOMING, {**row, **view}, questions=row["decisions"], can_run_now=row["next"], not_yet=others)


def roadmap(view: phrases.Data) -> list[str]:
    """Return one line per phase; its state comes from the log, never from the file."""
    rows = [
        {**row, "said": _state(row), "done": _done(row["tasks"]) if row["tasks"]["total"] else ""}
        for row in view["phases"]
    ]
    return _ended(_ROADMAP, view, rows=rows)


def _ended(form: str, view: phrases.Data, **words: Any) -> list[str]:
    """Return the lines, which end with the next command and why, unless one of the lines above says it."""
    standing = _STANDING.get((view.get("owner") or {}).get("standing", ""))
    lines, following = forms.fill(form, {**view, **words, "standing": standing}), view["next"]
    because = "" if any(line.endswith(following["why"]) for line in lines) else following["why"]
    closing = "Next: {command}[  ({because})]\nelse Next: {why}"
    return [*lines, *forms.fill(closing, {**following, "because": because})]
