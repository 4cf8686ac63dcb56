"""What status, next and roadmap print, from the one view of all phases. Imports little: these commands must be fast."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.views import markup, phrases

_TITLE_WIDTH = 44
_ORDER = ("completed", "accepted", "running", "waiting", "failed", "blocked", "skipped", "ready", "pending")
_WORDS = {"completed": "done, not verified"}


def status(data: phrases.Data) -> str:
    """Every phase with its counts, then what is asked, then the next command and why."""
    if not data["initialised"]:
        return _next_line(data)
    lines: list[str] = []
    for row in data["phases"]:
        lines += _phase(row)
    return "\n".join(lines) + ("\n\n" if lines else "") + _next_line(data)


def _phase(row: phrases.Data) -> list[str]:
    lines = [f"Phase {_name(row)}: {_state(row)}"]
    if row["tasks"].get("total"):
        numbers = phrases.counts(row["tasks"], _ORDER)
        made_by = f" (run {row['run']})" if row["run"] else ""
        lines.append(f"  {phrases.tasks(row['tasks']['total'])}: {numbers}{made_by}")
    lines += [f"  {markup.one_line(text)}" for text in (row.get("reason"), row.get("problem")) if text]
    lines += [f"  {markup.one_line(text)}" for text in row.get("problems", ())]
    lines += [f"  asks {d['id']}: {markup.one_line(d['what'])}" for d in row["decisions"]]
    return lines


def _name(row: phrases.Data) -> str:
    title = markup.clip(markup.one_line(row["title"] or ""), _TITLE_WIDTH)
    return f"{markup.one_line(row['phase'])} {title}".rstrip()


def _state(row: phrases.Data) -> str:
    if row.get("changed_since_run"):
        return "plan or configuration changed since its last run"
    return _WORDS.get(row["state"], str(row["state"]))


def _next_line(data: phrases.Data) -> str:
    known = data["next"]
    why = markup.one_line(known["why"])
    return f"Next: {known['command']} ({why})\n" if known.get("command") else f"Next: {why}\n"


def upcoming(data: phrases.Data) -> str:
    """What comes next, and of the same phase why not the others."""
    lines = [_next_line(data).rstrip("\n")]
    row = next((r for r in data["phases"] if r["phase"] == data["next"].get("phase")), None)
    if row is None:
        return lines[0] + "\n"
    lines += _listed("Can run now:", [(t["id"], _title(t)) for t in row["next"]])
    lines += _listed("Not yet:", [(t["id"], _title(t), _why(t)) for t in row["others"]])
    if row.get("more"):
        lines.append(f"  and {row['more']} more; idumb graph {row['phase']} shows all")
    return "\n".join(lines) + "\n"


def _listed(heading: str, rows: Sequence[Sequence[str]]) -> list[str]:
    return ["", heading, *phrases.columns(rows)] if rows else []


def _title(task: phrases.Data) -> str:
    return markup.clip(markup.one_line(task["title"]), _TITLE_WIDTH)


def _why(task: phrases.Data) -> str:
    why = markup.one_line(task.get("why") or "")
    return f"{task['status']}: {why}" if why else str(task["status"])


def roadmap(data: phrases.Data) -> str:
    """One line a phase: its state is read from the log each time, never from the file."""
    if not data["phases"]:
        return _next_line(data)
    rows = [(markup.one_line(r["phase"]), _name(r).partition(" ")[2], _state(r), _done(r)) for r in data["phases"]]
    return "\n".join([*phrases.columns([("PHASE", "TITLE", "STATE", "DONE"), *rows], ""), "", _next_line(data)])


def _done(row: phrases.Data) -> str:
    numbers = row["tasks"]
    done = numbers.get("completed", 0) + numbers.get("accepted", 0)
    return f"{done} of {numbers['total']}" if numbers.get("total") else "-"
