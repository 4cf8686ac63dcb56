"""Output of the commands that decide: questions, approvals, amendments, overrides, handoffs and dead letters."""

from __future__ import annotations

from idumb.domain import wording
from idumb.views import phrases
from idumb.views.answers import run


def approve(data: phrases.Data) -> phrases.Lines:
    """Return what was approved, by whom and until when."""
    phase = data["phase"]
    if data["status"] == "revoked":
        parts = [(data["revoked"], "approval"), (data["withdrawn"], "consent")]
        taken = " and ".join(phrases.counted(count, noun) for count, noun in parts if count)
        return [f"Phase {phase}: {taken} withdrawn."]
    lines = [] if data["asked"] else list(data["shown"])
    until = f", until {data['expires']}" if data["expires"] else ""
    lines += ["", f"Phase {phase} approved by {data['by']}{until}."]
    lines.append(f"  phase hash {data['plan_hash']}")
    lines.append(f"  contract   {data['contract_hash']}")
    if data["accepted"]:
        lines.append(f"  accepted, although they cannot be undone: {', '.join(data['accepted'])}")
    if data.get("no_longer_accepted"):
        lines.append(f"  no longer accepted: {', '.join(data['no_longer_accepted'])}")
    if data["file"]:
        lines.append(f"  signed copy: {data['file']}")
    elif data["signed"]:
        lines.append("  signed")
    return lines


_ID_DIGITS = 8


def list_handoffs(data: phrases.Data) -> phrases.Lines:
    rows = [
        (
            entry["handoff_id"][:_ID_DIGITS],
            entry["task"],
            f"{entry['from_agent']} to {entry['to_agent']}",
            entry["status"].replace("_", " "),
            entry["priority"],
            phrases.clip(entry["title"], 60),
        )
        for entry in data["handoffs"]
    ]
    failed = [
        f"Not handed off: {entry['task']} to {entry['to_agent']}: {entry['reason']}" for entry in data.get("failed", ())
    ]
    counts = phrases.outline(data["stats"]) if len(rows) > 1 else []
    return [*(phrases.columns(rows, "") if rows else ["No handoffs match."]), *counts, *failed]


def show_handoff(data: phrases.Data) -> phrases.Lines:
    row = data["handoff"]
    return [f"{row['handoff_id']}: {row['task']} {row['title']}", *phrases.outline(row)]


def list_letters(data: phrases.Data) -> phrases.Lines:
    if not data["dead_letters"]:
        return ["There are no dead letters."]
    rows = [
        (
            letter["id"] if letter["task"] is None else letter["task"],
            letter["kind"],
            letter["class"],
            phrases.counted(letter["attempts"], "attempt"),
            phrases.clip(letter["reason"], 80),
        )
        for letter in data["dead_letters"]
    ]
    return [*phrases.columns(rows, ""), "Next: idumb dlq show ID"]


def show_letter(data: phrases.Data) -> phrases.Lines:
    row = data["dead_letter"]
    facts = {name: value for name, value in row.items() if name not in ("id", "reason", "next")}
    return [f"{row['id']}: {row['reason']}", *phrases.outline(facts), *phrases.commands(row)]


def decisions(data: phrases.Data) -> phrases.Lines:
    if not data["decisions"]:
        return ["No questions are waiting for an answer."]
    return [line for decision in data["decisions"] for line in ("", *run.question(decision))][1:]


def decide(data: phrases.Data) -> phrases.Lines:
    lines = [f"{data['decision']}: {data['choice']} is recorded."]
    lines += [f"- Recorded in the plan, as version {data['version']} of the contract"] if data.get("version") else []
    lines += ["- The phase is verified"] if data.get("verification") == "passed" else []
    return lines


def drop(data: phrases.Data) -> phrases.Lines:
    what = f"phase {data['phase']}" if data["task"] is None else data["task"]
    return [f"Dropped {what}: {wording.listed(data['tasks'])} will not run."]


def settled(data: phrases.Data) -> phrases.Lines:
    """Return the new status of an accepted or skipped task, and the state of its changes."""
    row = data["task"]
    reason = row.get("reason", "")
    lines = [f"{row['id']} {row['title']} is {row['status']}: {reason}"]
    if data.get("commit"):
        lines.append(f"commit {phrases.short(data['commit'])}")
    elif data.get("left"):
        lines.append(f"Its changes stay uncommitted in the working tree: {wording.listed(data['left'])}")
    lines += run.blocked(data)
    return lines
