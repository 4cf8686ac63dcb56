"""Output of `status`, `next` and `roadmap`, from the cached view. Each line is escaped at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idumb.system import escaping
from idumb.views import phrases

_ORDER = ("completed", "accepted", "running", "ready", "pending", "waiting", "failed", "blocked", "skipped")
_WORDS = {"completed": "done, not verified"}
_WIDEST = 48  # a longer title moves only its own line


def status(view: Mapping[str, Any]) -> str:
    """Return each phase with its counts, its questions, and the next command."""
    lines = [*_owner(view), *(line for row in view["phases"] for line in _phase(row)), *_questions(view, "")]
    if not lines and view["initialised"]:
        lines.append("No phase is planned yet.")
    return _ended([*lines, *filter(None, [view["kept"]["words"]]), *_closing(view, lines)])


def _owner(view: Mapping[str, Any]) -> list[str]:
    """Return the process that uses the working tree, and whether it is stopped or not visible from here."""
    owner = view.get("owner")
    if not owner:
        return []
    how = {"stopped": ", which is stopped", "elsewhere": ", which cannot be seen from here"}.get(owner["standing"], "")
    where = f"{owner['host']}{how}, since {owner['since'][:19].replace('T', ' ')} UTC"
    return [f"In use by process {owner['pid']} on {where}: {owner['command']}"]


def _phase(row: Mapping[str, Any]) -> list[str]:
    lines = [f"Phase {row['phase']} {row['title']}".rstrip() + f": {_state(row)}"]
    if row["tasks"]["total"] and not row.get("elsewhere"):
        lines.append(f"  {counts(row['tasks'])}")
    lines += _done_elsewhere(row.get("elsewhere") or {})
    # An open question says more than the reason "waiting for a person".
    lines += [f"  {row['restoring']['words']}"] if row.get("restoring") else []
    lines += [f"  {row[key]['words']}" for key in ("open", "told") if row.get(key)]
    keys = ("problem",) if row["decisions"] else ("reason", "problem")
    lines += [f"  {row[key]}" for key in keys if row.get(key)]
    lines += [f"  problem: {problem}" for problem in row.get("problems", ())]
    lines += _blocked(row)
    return lines + _questions(row, "  ")


def _questions(row: Mapping[str, Any], indent: str) -> list[str]:
    """Return the questions of a phase, or of no phase."""
    return [f"{indent}waiting for your answer: {d['id']}  {d['what']}" for d in row.get("decisions", ())]


def _blocked(row: Mapping[str, Any]) -> list[str]:
    """Return what blocks tasks, and the commands that unblock them."""
    lines = []
    for held in row.get("blocked", ()):
        reason = f": {held['reason']}" if held["reason"] else ""
        lines.append(f"  {', '.join(held['tasks'])} blocked by {held['by']} ({held['status']}{reason})")
        lines += [f"    {action}" for action in held["actions"]]
    return lines


def _done_elsewhere(elsewhere: Mapping[str, Any]) -> list[str]:
    """Return what committed reports say about work done elsewhere."""
    if not elsewhere:
        return []
    counted = ", ".join(
        f"{number} {status}" for status, number in elsewhere["counts"].items() if number and status != "total"
    )
    by = elsewhere.get("by", "its reports")
    verified = f"; verification {elsewhere['verification'] or 'unknown'}" if by == "its reports" else ""
    return [f"  done elsewhere according to {by}, not recorded here: {counted or 'nothing'}{verified}"]


def _state(row: Mapping[str, Any]) -> str:
    if row.get("changed_since_run"):
        return "changed since its last run"
    return _WORDS.get(row["state"]) or str(row["state"])


def counts(tasks: Mapping[str, int]) -> str:
    """`2 of 5 done: 2 completed, 1 failed, 2 blocked`."""
    by_status = ", ".join(f"{tasks[s]} {s}" for s in _ORDER if tasks.get(s))
    return f"{_done(tasks)} of {tasks['total']} done: {by_status}"


def _done(tasks: Mapping[str, int]) -> int:
    return tasks.get("completed", 0) + tasks.get("accepted", 0)


def upcoming(view: Mapping[str, Any]) -> str:
    """Return the next command, ready tasks, and why others wait."""
    number = view["next"].get("phase")
    row = next((r for r in view["phases"] if r["phase"] == number), None)
    lines = [*_owner(view), *_questions(view, ""), *(_questions(row, "") if row else [])]
    if row is None:
        return _ended([*lines, *_closing(view)])
    held = _blocked(row)
    told = {task for group in row.get("blocked", ()) for task in group["tasks"]}
    others = [(t["id"], t["title"], phrases.why(t)) for t in row["others"] if t["id"] not in told]
    lines += [f"  problem: {problem}" for problem in row.get("problems", ())]
    lines += phrases.table("Can run now:", [(t["id"], t["title"]) for t in row["next"]], _WIDEST)
    lines += phrases.table("Not yet:", others, _WIDEST)
    lines += ["", "Blocked:", *held] if held else []
    if row["more"]:
        lines.append(f"  and {row['more']} more; idumb graph {row['phase']} shows all")
    lines += [""] if lines else []
    return _ended([*lines[lines[:1] == [""] :], *_closing(view, lines)])


def roadmap(view: Mapping[str, Any]) -> str:
    """Return one line per phase; its state comes from the log, never from the file."""
    if not view["phases"]:
        return _ended(["ROADMAP.md lists no phases, and there are no phase folders.", *_closing(view)])
    rows = [(row["phase"], row["title"] or "-", _state(row), _share(row["tasks"])) for row in view["phases"]]
    return _ended([*phrases.columns([("PHASE", "TITLE", "STATE", "DONE"), *rows], "", _WIDEST), "", *_closing(view)])


def _share(tasks: Mapping[str, int]) -> str:
    return f"{_done(tasks)} of {tasks['total']}" if tasks["total"] else "-"


def _closing(view: Mapping[str, Any], shown: Sequence[str] = ()) -> list[str]:
    """Return the next command, and why, unless one of the lines above says it."""
    following = view["next"]
    if following["command"] is None:
        return [f"Next: {following['why']}"]
    why = "" if any(line.endswith(following["why"]) for line in shown) else f"  ({following['why']})"
    return [f"Next: {following['command']}{why}"]


def _ended(lines: list[str]) -> str:
    return phrases.whole(escaping.show_line(line) for line in lines)
