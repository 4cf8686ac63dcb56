"""Output of the commands that decide: questions, approvals, amendments, overrides, handoffs and dead letters."""

from __future__ import annotations

from idumb.domain import wording
from idumb.views import markup, phrases, quantities
from idumb.views.answers import run


def approve(data: phrases.Data) -> str:
    """Return what was approved, by whom and until when."""
    phase = markup.one_line(data["phase"])
    if data["status"] == "revoked":
        parts = [(data["revoked"], "approval"), (data["withdrawn"], "consent")]
        taken = " and ".join(quantities.counted(count, noun) for count, noun in parts if count)
        return "\n".join([f"Phase {phase}: {taken} withdrawn.", *phrases.commands(data)]) + "\n"
    lines = [] if data["asked"] else [markup.visible(line) for line in data["shown"]]
    until = f", until {data['expires']}" if data["expires"] else ""
    lines += ["", f"Phase {phase} approved by {markup.one_line(data['by'])}{until}."]
    lines.append(f"  phase hash {data['plan_hash']}")
    lines.append(f"  contract   {data['contract_hash']}")
    if data["accepted"]:
        lines.append(f"  accepted, although they cannot be undone: {', '.join(data['accepted'])}")
    if data.get("no_longer_accepted"):
        lines.append(f"  no longer accepted: {', '.join(data['no_longer_accepted'])}")
    if data["file"]:
        lines.append(f"  signed copy: {markup.one_line(data['file'])}")
    elif data["signed"]:
        lines.append("  signed")
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def plan_diff(data: phrases.Data) -> str:
    since = data["since"]
    subject = f"phase {markup.one_line(data['phase'])} since {_locked(since)}"
    if data["same"]:
        return "\n".join([f"No changes in {subject}.", *phrases.commands(data)]) + "\n"
    lines = [f"Changed in {subject}:", *_changed_lines(data), f"  contract {data['contract_hash']}"]
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def _locked(since: phrases.Data) -> str:
    if since["what"] == "approval":
        return f"the approval by {markup.one_line(since['by'])} of {quantities.moment(since['at'])}"
    version = f", version {since['version']}" if since["version"] > 1 else ""
    return f"run {since['number']}{version}"


def _changed_lines(data: phrases.Data) -> list[str]:
    return [f"  {markup.one_line(line)}" for line in data["lines"]]


def amend(data: phrases.Data) -> str:
    """Return the new contract version, its changes, and the tasks that can be retried."""
    lines = [f"Phase {markup.one_line(data['phase'])} continues with version {data['version']} of its contract."]
    lines += [f"  {markup.one_line(line)}" for line in data["what"]]
    lines += [f"  {markup.one_line(completed['words'])}" for completed in data["completed_work"]]
    lines += [f"  {task} can be retried" for task in data["reset"]]
    lines.append(f"  contract {data['contract_hash']}")
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


_ID_DIGITS = 8


def handoff(data: phrases.Data) -> str:
    """Return the list, one handoff, or the statistics."""
    if "stats" in data:
        return _stats(data["stats"])
    return _handoff(data["handoff"]) if "handoff" in data else _handoffs(data)


def _handoffs(data: phrases.Data) -> str:
    rows = [
        (
            entry["handoff_id"][:_ID_DIGITS],
            entry["task"],
            f"{markup.one_line(entry['from_agent'])} to {markup.one_line(entry['to_agent'])}",
            entry["status"].replace("_", " "),
            entry["priority"],
            quantities.clip(markup.one_line(entry["title"]), 60),
        )
        for entry in data["handoffs"]
    ]
    failed = [
        f"Not handed off: {entry['task']} to {markup.one_line(entry['to_agent'])}: {markup.one_line(entry['reason'])}"
        for entry in data.get("failed", ())
    ]
    return "\n".join([*(phrases.columns(rows, "") if rows else ["No handoffs match."]), *failed]) + "\n"


def _handoff(row: phrases.Data) -> str:
    words = ("status", "handoff_type", "priority", "from_agent", "to_agent", "timestamp", "request_id", "run", "path")
    lines = [f"{row['handoff_id']}: {row['task']} {markup.one_line(row['title'])}"]
    lines += [f"  {name.replace('_', ' ') + ':':<14}{markup.one_line(str(row[name]))}" for name in words]
    for name in ("deliverables", "acceptance_criteria"):
        lines += [f"  {name.replace('_', ' ')}:"] if row[name] else []
        lines += [f"    - {markup.one_line(text)}" for text in row[name]]
    for name in ("summary", "next_steps"):
        lines += [f"  {name.replace('_', ' ')}:"] if row[name] else []
        lines += [f"    | {line}" for line in markup.visible(row[name]).splitlines()]
    for change in row["said"]:
        why = f": {markup.one_line(change['reason'])}" if change["reason"] else ""
        lines.append(f"  {quantities.moment(change['at'])} {markup.one_line(change['by'])}: {change['status']}{why}")
    return "\n".join(lines) + "\n"


def _stats(counts_by_name: phrases.Data) -> str:
    lines = [quantities.counted(counts_by_name["total"], "handoff")]
    for name in ("by_status", "by_type", "by_agent", "by_phase"):
        counts = ", ".join(f"{markup.one_line(k).replace('_', ' ')} {v}" for k, v in counts_by_name[name].items() if v)
        lines += [f"  {name.replace('_', ' ')}: {counts}"] if counts else []
    return "\n".join(lines) + "\n"


def dlq(data: phrases.Data) -> str:
    """Return the list, one dead letter, or the outcome of a retry."""
    if "dead_letters" in data:
        return _dead_letters(data)
    return _dead_letter(data["dead_letter"]) if "dead_letter" in data else run.ended(data)


def _dead_letters(data: phrases.Data) -> str:
    if not data["dead_letters"]:
        return "There are no dead letters.\n"
    rows = [
        (
            letter["id"] if letter["task"] is None else letter["task"],
            letter["kind"],
            letter["class"],
            letter["state"],
            quantities.counted(letter["attempts"], "attempt"),
            quantities.clip(markup.one_line(letter["reason"]), 80),
        )
        for letter in data["dead_letters"]
    ]
    return "\n".join([*phrases.columns(rows, ""), *phrases.commands({"next": ["idumb dlq show ID"]})]) + "\n"


def _dead_letter(row: phrases.Data) -> str:
    words = ("class", "state", "phase", "run", "task", "agent", "failure", "cause", "attempts", "at")
    lines = [f"{row['id']}: {markup.one_line(row['reason'])}"]
    lines += [f"  {name + ':':<10}{markup.one_line(str(row[name]))}" for name in words if row.get(name) is not None]
    lines += [f"  cannot be retried: {markup.one_line(row['why_not'])}"] if row["why_not"] else []
    lines += [f"  {quantities.moment(e['at'])} {e['kind']} {e['task'] or ''}".rstrip() for e in row.get("events", ())]
    return "\n".join([*lines, *phrases.commands(row)]) + "\n"


def decisions(data: phrases.Data) -> str:
    if not data["decisions"]:
        return "No questions are waiting for an answer.\n"
    return "\n\n".join("\n".join(run.question(decision)) for decision in data["decisions"]) + "\n"


def decide(data: phrases.Data) -> str:
    lines = [f"{data['decision']}: {data['choice']} is recorded."]
    lines += [f"- Recorded in the plan, as version {data['version']} of the contract"] if data.get("version") else []
    lines += ["- The phase is verified"] if data.get("verification") == "passed" else []
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def drop(data: phrases.Data) -> str:
    what = f"phase {data['phase']}" if data["task"] is None else data["task"]
    lines = [f"Dropped {markup.one_line(what)}: {wording.listed(run.one_lines(data['tasks']))} will not run."]
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def settled(data: phrases.Data) -> str:
    """Return the new status of an accepted or skipped task, and the state of its changes."""
    row = data["task"]
    reason = markup.one_line(row.get("reason", ""))
    lines = [f"{row['id']} {markup.one_line(row['title'])} is {row['status']}: {reason}"]
    if data.get("commit"):
        lines.append(f"commit {quantities.short(data['commit'])}")
    elif data.get("left"):
        lines.append(f"Its changes stay uncommitted in the working tree: {wording.listed(run.one_lines(data['left']))}")
    lines += run.blocked(data)
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"
