"""Output of commands that act on a run: its outcome, its questions, its rollback, and the tasks of builders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from idumb.domain import outcome, wording
from idumb.domain.settings import REPORTS_NONE
from idumb.views import phrases


def ended(data: phrases.Data) -> str:
    """Return the outcome of a run: complete, waiting, paused, partial or failed; or of a dry run."""
    if "dry_run" in data:
        return _rehearsed(data)
    if "prepared" in data:
        return phrases.whole([*_prepared(data), *phrases.commands(data)])
    ending = {"complete": _complete, "failed": _failed}.get(data["outcome"], _unfinished)
    lines = [*ending(data), *_failure(data.get("failure"))]
    if data.get("summary"):
        lines += ["", f"Summary: {report_place(data, data['summary'])}"]
    return phrases.whole([*lines, *phrases.uncommitted(data), *phrases.commands(data)])


def report_place(data: phrases.Data, path: str) -> str:
    """Return the path of a report, or the command that prints it if no file has it."""
    return f"idumb report {data['phase']}" if data.get("reports") == REPORTS_NONE else path


def _failure(failure: phrases.Data | None) -> list[str]:
    """Return the step that failed, its tool, the plan hash, and the command for its audit trail."""
    if not failure or not failure.get("run") or failure["status"] == "waiting":
        return []
    return [
        "",
        f"Failed step: {failure['step_id']} ({failure['tool'] or 'no tool'})",
        f"Plan:        sha256 {failure['plan_hash']}",
        f"Audit trail: idumb log --run {failure['run']}",
    ]


def _number(data: phrases.Data, *statuses: str) -> str:
    return phrases.tasks(sum(data.get("counts", {}).get(status, 0) for status in statuses))


def _complete(data: phrases.Data) -> list[str]:
    lines = [f"Execution complete for Phase {data['phase']}."]
    if "counts" not in data:
        return lines
    lines.append(f"- Completed: {_number(data, 'completed', 'accepted')}")
    lines += [f"- Skipped: {_number(data, 'skipped')}"] if data["counts"].get("skipped") else []
    lines += [f"- Omitted: {_number(data, 'omitted')}"] if data["counts"].get("omitted") else []
    lines.append(f"- Files modified: {data['files_modified']}")
    verification = data.get("verification")
    if verification is None:
        return [*lines, "- Not verified yet"]
    return [
        *lines,
        "- Proceeding to verification...",
        "",
        phrases.verification(verification),
        *phrases.weaker(verification),
    ]


def _unfinished(data: phrases.Data) -> list[str]:
    """Return the counts of a run that did not complete, what failed, what blocks the rest, and its questions."""
    rows = [task for task in data.get("tasks", ()) if task["status"] == outcome.FAILED]
    failures = (f"  {row['id']} {phrases.clip(row['title'], 60)}: {row.get('reason') or _UNKNOWN}" for row in rows)
    stopped = ["", f"Stopped: {data['reason']}"] if data["outcome"] == "partial" and data.get("reason") else []
    return [
        _HEADS[data["outcome"]](data),
        *_counts(data),
        *stopped,
        *failures,
        *blocked(data, shown=rows),
        *_questions(data),
    ]


_UNKNOWN = "no reason is recorded"


def _waits(data: phrases.Data) -> str:
    why = "waits for a person" if data.get("decisions") or not data.get("reason") else data["reason"]
    return f"Phase {data['phase']} {why}."


_HEADS: Mapping[str, Callable[[phrases.Data], str]] = {
    "partial": lambda data: f"Phase {data['phase']} execution partially complete. Everything is saved.",
    "waiting": _waits,
    "paused": lambda data: f"Phase {data['phase']} is {data['reason']}.",
}
"""The first line by outcome; the error below a paused run has the choices."""


def _questions(data: phrases.Data) -> list[str]:
    """Return open questions of an ended run: those about tasks without attempts left."""
    return [line for decision in data.get("decisions", ()) for line in ("", *question(decision))]


def blocked(data: phrases.Data, shown: Sequence[phrases.Data] = ()) -> list[str]:
    """Return what blocks tasks; the next steps unblock them. The reasons of the tasks `shown` are known."""
    lines, known = [], {task["id"] for task in shown}
    for held in data.get("blocked", ()):
        reason = f": {held['reason']}" if held["reason"] and held["by"] not in known else ""
        lines.append(f"Blocked by {held['by']} ({held['status']}{reason}): {', '.join(held['tasks'])}")
    return ["", *lines] if lines else []


def _counts(data: phrases.Data) -> list[str]:
    """Return completed, failed and blocked tasks, and other statuses that occur, so that the counts add up."""
    counts = data.get("counts", {})
    others = (
        ("Skipped", (outcome.SKIPPED,)),
        ("Omitted", (outcome.OMITTED,)),
        ("Waiting", (outcome.WAITING,)),
        ("Not run yet", outcome.NOT_RUN),
    )
    return [
        f"- Completed: {_number(data, *outcome.DONE)}",
        f"- Failed: {_number(data, outcome.FAILED)}",
        f"- Blocked: {_number(data, outcome.BLOCKED)}",
        *(f"- {name}: {_number(data, *which)}" for name, which in others if any(counts.get(s) for s in which)),
    ]


def _failed(data: phrases.Data) -> list[str]:
    """Return the task that stopped the run, or the reason if there is no such task."""
    rows = [task for task in data.get("tasks", ()) if task["status"] in {"failed", "running"}]
    step = (data.get("failure") or {}).get("step_id") or ""
    row: phrases.Data = next((task for task in rows if f"{step}.".startswith(f"{task['id']}.")), next(iter(rows), {}))
    error = row.get("reason") or data.get("reason") or _UNKNOWN
    if not row:
        return ["EXECUTION HALTED.", "", f"Error: {error}", *blocked(data), *_questions(data)]
    # An agent with a full context uses no attempt, and a task may fail for that reason alone.
    attempts = phrases.counted(row.get("attempts") or row.get("attempt", 0), "attempt")
    lines = [f"EXECUTION HALTED: Critical task {row['id']} failed after {attempts}.", "", f"Error: {error}"]
    if row.get("checkpoint") and data.get("reports") != REPORTS_NONE:  # then no file has it
        lines += ["", f"Checkpoint saved at: {row['checkpoint']}"]
    return [*lines, *blocked(data), *_questions(data)]


def question(decision: phrases.Data) -> list[str]:
    """Return a question with its evidence, and the command for each choice."""
    lines = [f"{decision['id']}: {decision['what']}"]
    lines += [f"  why: {decision['why']}"] if decision.get("why") else []
    lines += [f"  - {text}" for text in decision.get("evidence", ())]
    return lines + phrases.choices(decision)


def rolled_back(data: phrases.Data) -> phrases.Lines:
    """Return restored files, reset tasks, and the ref of the previous state, for `rollback` and `undo`."""
    subject = f"Undone: {data['what']}" if "what" in data else f"Phase {data['phase']} is rolled back to {data['to']}"
    if not data["tasks"] and not data["paths"]:
        return [f"{subject}: nothing had to change."]
    lines = [f"{subject}."]
    lines.append(f"- Tasks: {wording.listed(data['tasks'], 12) or 'none'}")
    lines.append(f"- Files restored: {wording.listed(data['paths'], 12) or 'none'}")
    lines.append(f"- Commit: {phrases.short(data['commit'])}")
    lines += [f"- Undone by commands: {wording.listed(data['compensated'])}"] if data.get("compensated") else []
    lines += [f"- Previous state kept in {data['kept']}"] if data.get("kept") else []
    return lines


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
    words, owner = _STOPPED[data["ended"]], data["owner"]
    if owner is not None:
        words += f": process {owner['pid']} on {owner['host']} ({owner['command']})."
    kept = data.get("checkpoint")
    saved = [f"Checkpoint of {kept['task']}, attempt {kept['attempt']}: {kept['ref']}"] if kept else []
    return [words, *saved]


_ENDS = {
    "complete": "every task would complete",
    "waiting": "the run would wait for you",
    "partial": "the run would complete in part",
    "failed": "the run would fail",
}


def _rehearsed(data: phrases.Data) -> str:
    rehearsal = data["dry_run"]
    lines = [f"Dry run of phase {data['phase']}: {_ENDS.get(data['outcome'], data['outcome'])}. Nothing was changed."]
    lines += [f"Reason: {data['reason']}"] if data.get("reason") else []
    lines += ["", "Tasks:", *phrases.columns([_rehearsed_task(row) for row in rehearsal["tasks"]])]
    lines += phrases.table("Not rehearsed:", [(row["task"], row["why"]) for row in rehearsal["not_rehearsed"]])
    lines += phrases.table("Would commit:", [(row["task"], row["subject"]) for row in rehearsal["would_commit"]])
    record = data.get("verification")
    lines += ["", phrases.verification(record), *phrases.weaker(record)] if record else []
    if not rehearsal["files"]:
        return phrases.whole([*lines, "", "No file would change.", *phrases.commands(data)])
    rows = [
        (file["change"], file["path"], phrases.line_counts(file["added"], file["removed"]))
        for file in rehearsal["files"]
    ]
    lines += phrases.table(f"{phrases.counted(len(rows), 'file')} would change:", rows)
    return phrases.whole([*lines, *phrases.commands(data), ""]) + str(rehearsal["diff"])


def _rehearsed_task(row: phrases.Data) -> tuple[str, ...]:
    return (row["id"], row["status"], phrases.clip(row["title"], 50), phrases.clip(row["why"], 70))


def _prepared(data: phrases.Data) -> list[str]:
    """Return the agent of the next task and its prompt."""
    if not data["prepared"]:
        return [f"No task of phase {data['phase']} can run now."]
    (task,) = data["prepared"]
    agent = task["agent"]
    builder = agent["binding"] or "nobody"
    model = f", model {agent['model']}" if agent["model"] else ""
    head = ["Nothing was run or recorded.", ""]
    head.append(f"{task['id']} {task['title']} ({task['status']}, attempt {task['attempt']})")
    head.append(f"  builder: {builder}{model}")
    head += [f"  starts:  {' '.join(agent['argv'])}"] if agent["argv"] else []
    head += [f"  problem: {agent['problem']}"] if agent["problem"] else []
    head += [f"  writes:  {', '.join(task['allowed']) or 'nothing'}"]
    if not task["prompt"]:
        return [*head, "  It receives no prompt.", ""]
    return [*head, *phrases.ruled(task["prompt"]), ""]


def start(data: phrases.Data) -> phrases.Lines:
    """Return the prompt of the task that was opened, or the state of the run if none could be."""
    if "open" not in data:
        return ended(data)
    task = data["task"]
    lines = [f"{task['id']} {task['title']}: attempt {task['attempt']} is open.", ""]
    return [*lines, *phrases.lines_of(task["prompt"]), ""]


def upcoming(data: phrases.Data) -> phrases.Lines:
    """Return the next task of a phase with its prompt, and why the others wait."""
    lines = []
    if data["open"]:
        attempt = data["open"]
        lines.append(f"{attempt['task']} has been open since {attempt['since']} for {attempt['by']}.")
    if data["task"] is None:
        lines.append(f"No task of phase {data['phase']} can run now.")
    else:
        task = data["task"]
        lines += [f"{task['id']} {task['title']}", "", *phrases.lines_of(task["prompt"]), ""]
    if data["others"]:
        rows = [(t["id"], t["title"], phrases.why(t)) for t in data["others"]]
        lines += ["Not yet:", *phrases.columns(rows), ""]
    questions = [f"Waiting for an answer: {item['id']}  {item['what']}" for item in data["decisions"]]
    lines += [*questions, ""] if questions else []
    return lines


def submit(data: phrases.Data) -> phrases.Lines:
    task = data["task"]
    words = "is accepted" if data["accepted"] else "is not accepted"
    lines = [f"{task['id']} {task['title']} {words} (attempt {data['attempt']})."]
    lines += [f"- Commit: {task['commit']}"] if data["accepted"] and task.get("commit") else []
    lines += [f"- {e['result']} " + f"{e['subject']} {e['text']}" for e in data["evidence"]]
    if data["feedback"]:
        lines += ["", *(f"  {line}" for line in data["feedback"].split("\n"))]
    if data["ended"] is not None:
        return phrases.whole([*lines, ""]) + ended({**data["ended"], "next": data["next"]})
    return [*lines, ""]


def give_up(data: phrases.Data) -> phrases.Lines:
    lines = [f"{data['task']}: attempt {data['attempt']} is given up; its files are kept in {data['kept']}"]
    lines += [f"- restored: {path}" for path in data["put_back"][:20]]
    return [*lines, ""]


def tools(data: phrases.Data) -> phrases.Lines:
    return phrases.columns([(tool["name"], tool["about"]) for tool in data["tools"]])


def serving(data: phrases.Data) -> phrases.Lines:
    """Return only the address, for scripts."""
    return [data["address"]]
