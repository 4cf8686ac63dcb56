"""Output of commands that act on a run: its outcome, decisions, rollback and verification."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import outcome, wording
from idumb.domain.settings import REPORTS_NONE
from idumb.views import markup, phrases, quantities


def ended(data: phrases.Data) -> str:
    """Return the outcome of a run: complete, waiting, paused, partial or failed; or of a dry run."""
    if "dry_run" in data:
        return _rehearsed(data)
    if "prepared" in data:
        return _prepared(data)
    lines = [*_ENDINGS[data["outcome"]](data), *_failure(data.get("failure"))]
    if data.get("summary"):
        lines += ["", f"Summary: {_report(data, data['summary'])}"]
    lines += phrases.uncommitted(data)
    offered = data["outcome"] == "partial"  # its options already contain the next commands
    return "\n".join([*lines, *([] if offered else phrases.commands(data))]) + "\n"


def _report(data: phrases.Data, path: str) -> str:
    """Return the path of a report, or the command that prints it if no file has it."""
    return markup.one_line(f"idumb report {data['phase']}" if data.get("reports") == REPORTS_NONE else path)


def _failure(failure: phrases.Data | None) -> list[str]:
    """Return the step that failed or waits, its tool, the plan hash, and the command for its audit trail."""
    if not failure or not failure.get("run"):
        return []
    label = "Waits at:    " if failure["status"] == "waiting" else "Failed step: "
    return [
        "",
        f"{label}{failure['step_id']} ({markup.one_line(failure['tool'] or 'no tool')})",
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


def _partial(data: phrases.Data) -> list[str]:
    phase, failed = data["phase"], _with_status(data, "failed")
    lines = [f"Phase {phase} execution partially complete.", *_counts(data), *_stopped(data), *_failures(data, failed)]
    goes_on = any(data.get("counts", {}).get(status) for status in ("pending", "ready", "running", "waiting"))
    ways = [("Continue", f"idumb resume {phase}")] if goes_on and not failed else []
    if failed:
        ways.append(("Continue", f"idumb resume {phase} --retry-failed"))
        ways.append(("Debug", f"idumb show {failed[0]} --debug"))
        ways.append(("Roll back", f"idumb rollback {phase} --to start"))
    ways.append(("Verify", f"idumb verify-work {phase} (what is done so far; the phase stays partial)"))
    ways.append(("Halt", "nothing to do: everything is saved"))
    return [*lines, *blocked(data), *_questions(data), "", "Options:", *phrases.columns(ways)]


def _questions(data: phrases.Data) -> list[str]:
    """Return open questions of an ended run: those about tasks without attempts left."""
    return [line for decision in data.get("decisions", ()) for line in ("", *question(decision))]


def blocked(data: phrases.Data) -> list[str]:
    """Return what blocks tasks, and the commands that unblock them."""
    lines = []
    for held in data.get("blocked", ()):
        reason = f": {markup.one_line(held['reason'])}" if held["reason"] else ""
        lines.append(f"Blocked by {held['by']} ({held['status']}{reason}): {', '.join(held['tasks'])}")
        lines += [f"  {markup.one_line(action)}" for action in held["actions"]]
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


def _stopped(data: phrases.Data) -> list[str]:
    return ["", f"Stopped: {markup.one_line(data['reason'])}"] if data.get("reason") else []


def _with_status(data: phrases.Data, status: str) -> list[str]:
    return [task["id"] for task in data.get("tasks", ()) if task["status"] == status]


def _failures(data: phrases.Data, failed: Sequence[str]) -> list[str]:
    rows = {task["id"]: task for task in data.get("tasks", ())}
    return [
        f"  {i} {quantities.clip(markup.one_line(rows[i]['title']), 60)}: "
        f"{markup.one_line(rows[i].get('reason') or 'no reason is recorded')}"
        for i in failed
    ]


def _failed(data: phrases.Data) -> list[str]:
    """Return the task that stopped the run, or the reason if there is no such task."""
    rows = [task for task in data.get("tasks", ()) if task["status"] in {"failed", "running"}]
    step = (data.get("failure") or {}).get("step_id") or ""
    row = next((task for task in rows if f"{step}.".startswith(f"{task['id']}.")), next(iter(rows), None))
    if row is None:
        reason = markup.one_line(data.get("reason") or "no reason is recorded")
        return ["EXECUTION HALTED.", "", f"Error: {reason}", *blocked(data), *_questions(data)]
    # An agent with a full context uses no attempt, and a task may fail for that reason alone.
    attempts = quantities.counted(row.get("attempts") or row.get("attempt", 0), "attempt")
    error = row.get("reason") or data.get("reason") or "no reason is recorded"
    lines = [
        f"EXECUTION HALTED: Critical task {row['id']} failed after {attempts}.",
        "",
        f"Error: {markup.one_line(error)}",
    ]
    if row.get("checkpoint") and data.get("reports") != REPORTS_NONE:  # then no file has it
        lines += ["", f"Checkpoint saved at: {markup.one_line(row['checkpoint'])}"]
    lines += [*blocked(data), *_questions(data)]
    return [*lines, "", f"Recommended action: idumb show {row['id']} --debug"]


def _waiting(data: phrases.Data) -> list[str]:
    decisions = data.get("decisions", ())
    why = "waits for a person" if decisions or not data.get("reason") else markup.one_line(data["reason"])
    lines = [f"Phase {data['phase']} {why}.", *_counts(data), ""]
    for decision in decisions:
        lines += [*question(decision), ""]
    return lines[:-1]


def _paused(data: phrases.Data) -> list[str]:
    """Return why it stopped; the error below has the choices."""
    return [f"Phase {data['phase']} is {markup.one_line(data['reason'])}.", *_counts(data)]


_ENDINGS = {
    "complete": _complete,
    "waiting": _waiting,
    "paused": _paused,
    "partial": _partial,
    "failed": _failed,
}


def question(decision: phrases.Data) -> list[str]:
    """Return a question with its evidence, and the command for each choice."""
    lines = [f"{decision['id']}: {markup.one_line(decision['what'])}"]
    lines += [f"  why: {markup.one_line(decision['why'])}"] if decision.get("why") else []
    lines += [f"  - {markup.one_line(text)}" for text in decision.get("evidence", ())]
    for choice in decision.get("choices", ()):
        command = choice.get("command") or f"idumb decide {decision['id']} {choice['id']}"
        lines.append(f"  {markup.one_line(command)}")
        lines.append(f"      {markup.one_line(choice['text'])}: {markup.one_line(choice['consequence'])}")
    return lines


def one_lines(paths: Sequence[str]) -> list[str]:
    return [markup.one_line(path) for path in paths]


def rolled_back(data: phrases.Data) -> str:
    """Return restored files, reset tasks, and the ref of the previous state, for `rollback` and `undo`."""
    subject = f"Undone: {data['what']}" if "what" in data else f"Phase {data['phase']} is rolled back to {data['to']}"
    if not data["tasks"] and not data["paths"]:
        return "\n".join([f"{markup.one_line(subject)}: nothing had to change.", *phrases.commands(data)]) + "\n"
    lines = [f"{markup.one_line(subject)}."]
    lines.append(f"- Tasks: {wording.listed(data['tasks'], 12) or 'none'}")
    lines.append(f"- Files restored: {wording.listed(one_lines(data['paths']), 12) or 'none'}")
    lines.append(f"- Commit: {quantities.short(data['commit'])}")
    lines += [f"- Undone by commands: {wording.listed(data['compensated'])}"] if data.get("compensated") else []
    lines += [f"- Previous state kept in {data['kept']}"] if data.get("kept") else []
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


_STOPPED = {
    "nothing ran": "Nothing is running in this working tree.",
    "interrupted": "Stopped at a safe point",
    "finished by itself": "The run ended before it could be stopped",
    "killed": "Killed because it did not respond; the next command recovers its work",
    "stops after its task": "It will stop after its current task",
    "fenced off": "Ownership taken over; all further writes by that process are refused",
}


def stop(data: phrases.Data) -> str:
    """Return which process used the working tree, and how it ended."""
    words, owner = _STOPPED[data["ended"]], data["owner"]
    if owner is not None:
        words += f": process {owner['pid']} on {markup.one_line(owner['host'])} ({markup.one_line(owner['command'])})."
    kept = data.get("checkpoint")
    saved = [f"Checkpoint of {kept['task']}, attempt {kept['attempt']}: {kept['ref']}"] if kept else []
    return "\n".join([words, *saved, *phrases.commands(data)]) + "\n"


def verify_work(data: phrases.Data) -> str:
    """Return each check with its result, the gaps, and the path of the report."""
    rows = [
        (
            e["result"],
            markup.one_line(e["subject"]),
            quantities.clip(markup.one_line(e.get("command") or e["text"]), 70),
        )
        for e in data["evidence"]
    ]
    lines = [f"Phase {data['phase']}: {phrases.verification(data)}", *(phrases.columns(rows) if rows else [])]
    lines += phrases.weaker(data)
    lines += [f"  mismatch: {markup.one_line(text)}" for text in data.get("mismatches", ())]
    lines += [f"  {r['id']} is not met" for r in data.get("requirements", ()) if not r["met"]]
    lines += [f"  accepted by a person, not proven: {task}" for task in data.get("accepted", ())]
    lines += [f"  skipped: {task}" for task in data.get("skipped", ())]
    lines += [f"  not done: {task} is {standing}" for task, standing in data.get("unfinished", {}).items()]
    lines += _opinions(data)
    weak = data["status"] == "partial" and data.get("decision") is None
    alone = "nothing proves the work" if weak else "only the tasks' own checks prove the work"
    lines += [] if rows else [f"  no success criterion, invariant or test: {alone}"]
    lines.append(f"Report: {_report(data, data['report'])}")
    lines += [f"Plan for the gaps: {markup.one_line(data['gap_plan'])}"] if data.get("gap_plan") else []
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def _opinions(data: phrases.Data) -> list[str]:
    """Return the opinions of agents: only refuted criteria, with citations."""
    lines = []
    for opinion in data.get("judged_by", ()):
        lines.append(f"  opinion of the {opinion['role']}: {opinion['verdict'] or 'none'}")
        for judgement in opinion["judgements"]:
            places = (
                f"{c['file']}:{c['line']}" + ("" if c["resolves"] else " (does not exist)")
                for c in judgement["citations"]
            )
            refutation = (
                f"{judgement['criterion']} does not hold: {judgement['why']} [{', '.join(places) or 'nothing cited'}]"
            )
            lines += [] if judgement["holds"] else [f"    {markup.one_line(refutation)}"]
    return lines


_ENDS = {
    "complete": "every task would complete",
    "waiting": "the run would wait for you",
    "partial": "the run would complete in part",
    "failed": "the run would fail",
}


def _rehearsed(data: phrases.Data) -> str:
    rehearsal = data["dry_run"]
    lines = [f"Dry run of phase {data['phase']}: {_ENDS.get(data['outcome'], data['outcome'])}. Nothing was changed."]
    lines += [f"Reason: {markup.one_line(data['reason'])}"] if data.get("reason") else []
    lines += ["", "Tasks:", *phrases.columns([_rehearsed_task(row) for row in rehearsal["tasks"]])]
    lines += _part("Not rehearsed:", [(row["task"], markup.one_line(row["why"])) for row in rehearsal["not_rehearsed"]])
    lines += _part("Ran in the copy:", [_command(row) for row in rehearsal["commands"]])
    lines += _part(
        "Would commit:", [(row["task"], markup.one_line(row["subject"])) for row in rehearsal["would_commit"]]
    )
    lines += _part("Files left behind:", [(markup.one_line(path),) for path in rehearsal["left_behind"]])
    record = data.get("verification")
    lines += ["", phrases.verification(record), *phrases.weaker(record)] if record else []
    if not rehearsal["files"]:
        return "\n".join([*lines, "", "No file would change.", *phrases.commands(data)]) + "\n"
    rows = [
        (file["change"], markup.one_line(file["path"]), quantities.line_counts(file["added"], file["removed"]))
        for file in rehearsal["files"]
    ]
    lines += _part(f"{quantities.counted(len(rows), 'file')} would change:", rows)
    return "\n".join([*lines, *phrases.commands(data), ""]) + "\n" + markup.visible(rehearsal["diff"])


def _rehearsed_task(row: phrases.Data) -> tuple[str, ...]:
    files = wording.listed([markup.one_line(f["path"]) for f in row["files"]])
    title = quantities.clip(markup.one_line(row["title"]), 50)
    return (row["id"], row["status"], title, files or quantities.clip(markup.one_line(row["why"]), 70))


def _command(row: phrases.Data) -> tuple[str, ...]:
    return (row["task"] or "", row["by"], row["result"], quantities.clip(markup.one_line(row["command"]), 80))


def _part(heading: str, rows: Sequence[Sequence[str]]) -> list[str]:
    return ["", heading, *phrases.columns(rows)] if rows else []


_RULE = "-" * 72


def _prepared(data: phrases.Data) -> str:
    """Return each agent and its prompt, or the names of the prompt files."""
    if not data["prepared"]:
        return "\n".join([f"No task of phase {data['phase']} can run now.", *phrases.commands(data)]) + "\n"
    written = data.get("written")
    lines = ["Nothing was run or recorded.", ""]
    for task in data["prepared"]:
        lines += _prepared_task(task, shown=written is None)
    lines += [f"written: {markup.one_line(path)}" for path in written or ()]
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def _prepared_task(task: phrases.Data, *, shown: bool) -> list[str]:
    agent = task["agent"]
    builder = markup.one_line(agent["binding"] or "nobody")
    model = f", model {markup.one_line(agent['model'])}" if agent["model"] else ""
    head = [f"{task['id']} {markup.one_line(task['title'])} ({task['status']}, attempt {task['attempt']})"]
    head.append(f"  builder: {builder}{model}")
    head += [f"  starts:  {markup.one_line(' '.join(agent['argv']))}"] if agent["argv"] else []
    head += [f"  problem: {markup.one_line(agent['problem'])}"] if agent["problem"] else []
    head += [f"  writes:  {markup.one_line(', '.join(task['allowed']) or 'nothing')}"]
    if not task["prompt"]:
        return [*head, "  It receives no prompt.", ""]
    if not shown:
        return [*head, ""]
    return [*head, _RULE, *phrases.visible_lines(task["prompt"]), _RULE, ""]
