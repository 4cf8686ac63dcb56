"""Output of commands that act on a run: its outcome, its questions, its rollback, and the tasks of builders."""

from __future__ import annotations

from idumb.domain import outcome
from idumb.domain.settings import REPORTS_NONE
from idumb.views import forms, phrases

FORMS = {
    "rolled_back": """
Undone: {what}[{tasks or paths:!: nothing had to change}].
else Phase {phase} is rolled back to {to}[{tasks or paths:!: nothing had to change}].
- Tasks: {tasks:12}
- Files restored: {paths:12}
- Commit: {commit:short}
- Undone by commands: {compensated:12}
- Previous state kept in {kept}
""",
    "give_up": """
{task}: attempt {attempt} is given up; its files are kept in {kept}
put_back*20 - restored: {}
""",
    "upcoming": """
{open.task} has been open since {open.since} for {open.by}.
{task.id} {task.title}
else No task of phase {phase} can run now.
{task:?}
{task.prompt:block}
{others:?Not yet:}
others*   {id} | {title} | {status}[: {why}]
decisions* Waiting for an answer: {id}  {what}

""",
    "tools": "tools* {name} | {about}",
    "serving": "{address}",
}
_VERIFIED = """
{said}
verification.weaker*   weaker: {reason}: {subjects:5}
""".strip()
_ENDED = f"""
{{head}}
- Completed: {{done:#task}}
- Failed: {{failed:#task}}
- Blocked: {{held:#task}}
- Skipped: {{counts.skipped:+task}}
- Omitted: {{counts.omitted:+task}}
- Waiting: {{counts.waiting:+task}}
- Not run yet: {{not_run:+task}}
{{counts:?- Files modified:}} {{files_modified}}
{{said:?- Proceeding to verification...}}
{{said:?}}
{_VERIFIED}
{{stopped:?}}
Stopped: {{stopped}}
failures*   {{id}} {{title:60}}: {{reason}}
{{blocked:?}}
{phrases.BLOCKED}
{phrases.QUESTIONS}
{{failure:?}}
Failed step: {{failure.step_id}}[ ({{failure.tool}})]
Plan:        sha256 {{failure.plan_hash}}
Audit trail: idumb log --run {{failure.run}}
{{place:?}}
Summary: {{place}}
{phrases.UNCOMMITTED}
"""
_DRY_RUN = f"""
Dry run of phase {{phase}}: the run would be {{outcome}}. Nothing was changed.
Reason: {{reason}}
{{dry_run.tasks:?}}
{{dry_run.tasks:?Tasks:}}
dry_run.tasks*   {{id}} | {{status}} | {{title:50}} | {{why:70}}
{{dry_run.not_rehearsed:?}}
{{dry_run.not_rehearsed:?Not rehearsed:}}
dry_run.not_rehearsed*   {{task}} | {{why}}
{{dry_run.would_commit:?}}
{{dry_run.would_commit:?Would commit:}}
dry_run.would_commit*   {{task}} | {{subject}}
{_VERIFIED}
{{dry_run.files:?}}
{{dry_run.files:#file}} would change[{{dry_run.files:?:}}]
dry_run.files*   {{change}} | {{path}} | {{:changed}}
"""
_PREPARED = """
{prepared:?Nothing was run or recorded.}
else No task of phase {phase} can run now.
prepared* {id} {title} ({status}, attempt {attempt})
*   builder: {agent.binding}[, model {agent.model}]
* else   builder: nobody
*   starts:  {agent.argv:words}
*   problem: {agent.problem}
*   writes:  {allowed:99}
* else   writes:  nothing
* {prompt:ruled}
* else   It receives no prompt.
"""
_STARTED = """
{task.id} {task.title}: attempt {task.attempt} is open.

{task.prompt:block}

"""
_SUBMITTED = """
{task.id} {task.title} {accepted:?is accepted} (attempt {attempt}).
else {task.id} {task.title} is not accepted (attempt {attempt}).
{accepted:?- Commit: }{task.commit}
evidence* - {result} {subject} {text}
{feedback:?}
{feedback:indented}

"""


def ended(data: phrases.Data) -> str:
    """Return the outcome of a run: complete, waiting, paused, partial or failed; or of a dry run."""
    record, failure = data.get("verification"), data.get("failure") or {}
    said = phrases.verification(record) if record else None
    if "dry_run" in data:
        lines = [*forms.fill(_DRY_RUN, {**data, "said": said}), *phrases.commands(data)]
        return phrases.text_of([*lines, ""]) + str(data["dry_run"]["diff"])
    if "prepared" in data:
        return phrases.text_of([*forms.fill(_PREPARED, data), *phrases.commands(data)])
    failed = [task for task in data.get("tasks", ()) if task["status"] == outcome.FAILED]
    is_failed, reason, known = data["outcome"] == "failed", data.get("reason"), {row["id"] for row in failed}
    has_failures = data["outcome"] not in ("complete", "failed")
    shown = {
        **data,
        "head": _halted(data) if is_failed else _head(data),
        "counts": None if is_failed else data.get("counts"),
        "done": None if is_failed else _number(data, *outcome.DONE),
        "failed": _number(data, outcome.FAILED) if has_failures else None,
        "held": _number(data, outcome.BLOCKED) if has_failures else None,
        "not_run": None if is_failed else _number(data, *outcome.NOT_RUN),
        "said": said,
        "stopped": reason if data["outcome"] == "partial" else None,
        "failures": [] if is_failed else [{**row, "reason": row.get("reason") or _UNKNOWN} for row in failed],
        "blocked": [{**row, "reason": "" if row["by"] in known else row["reason"]} for row in data.get("blocked", ())],
        "failure": failure if failure.get("run") and failure["status"] != "waiting" else None,
        "place": report_place(data, data["summary"]) if data.get("summary") else None,
    }
    return phrases.text_of([*forms.fill(_ENDED, shown), *phrases.commands(data)])


_UNKNOWN = "no reason is recorded"


def _head(data: phrases.Data) -> str:
    phase, reason = data["phase"], data.get("reason")
    if data["outcome"] == "complete":
        verified = "" if data.get("verification") or "counts" not in data else " It is not verified yet."
        return f"Execution complete for Phase {phase}.{verified}"
    if data["outcome"] == "partial":
        return f"Phase {phase} execution partially complete. Everything is saved."
    if data["outcome"] == "paused":
        return f"Phase {phase} is {reason}."  # the error below it has the choices
    return f"Phase {phase} {'waits for a person' if data.get('decisions') or not reason else reason}."


def _halted(data: phrases.Data) -> str:
    """Return the task that stopped the run, or the reason if there is no such task."""
    rows = [task for task in data.get("tasks", ()) if task["status"] in {"failed", "running"}]
    step = (data.get("failure") or {}).get("step_id") or ""
    row: phrases.Data = next((task for task in rows if f"{step}.".startswith(f"{task['id']}.")), next(iter(rows), {}))
    # An agent with a full context uses no attempt, and a task may fail for that reason alone.
    attempts = phrases.counted(row.get("attempts") or row.get("attempt", 0), "attempt")
    task = f": Critical task {row['id']} failed after {attempts}." if row else "."
    error = row.get("reason") or data.get("reason") or _UNKNOWN
    has_file = row.get("checkpoint") and data.get("reports") != REPORTS_NONE
    saved = f"\n\nCheckpoint saved at: {row['checkpoint']}" if has_file else ""
    return f"EXECUTION HALTED{task}\n\nError: {error}{saved}"


def _number(data: phrases.Data, *statuses: str) -> int | None:
    return sum(data["counts"].get(status, 0) for status in statuses) if "counts" in data else None


def report_place(data: phrases.Data, path: str) -> str:
    """Return the path of a report, or the command that prints it if no file has it."""
    return f"idumb report {data['phase']}" if data.get("reports") == REPORTS_NONE else path


_STOPPED = {
    "nothing ran": "Nothing is running in this working tree.",
    "interrupted": "Stopped at a safe point",
    "finished by itself": "The run ended before it could be stopped",
    "killed": "Killed because it did not respond; the next command recovers its work",
    "stops after its task": "It will stop after its current task",
    "fenced off": "Ownership taken over; all further writes by that process are refused",
}


def stop(data: phrases.Data) -> phrases.Lines:
    """Return which process used the working tree, and how it ended."""
    form = """
{words}[: process {owner.pid} on {owner.host} ({owner.command}).]
Checkpoint of {checkpoint.task}, attempt {checkpoint.attempt}: {checkpoint.ref}
"""
    return forms.fill(form, {**data, "words": _STOPPED[data["ended"]]})


def start(data: phrases.Data) -> phrases.Lines:
    """Return the prompt of the task that was opened, or the state of the run if none could be."""
    return forms.fill(_STARTED, data) if "open" in data else ended(data)


def submit(data: phrases.Data) -> phrases.Lines:
    lines = forms.fill(_SUBMITTED, data)
    if data["ended"] is not None:
        return phrases.text_of(lines) + ended({**data["ended"], "next": data["next"]})
    return lines
