"""What status, next and roadmap say, from the kept view. Imports nothing: these commands must cost nothing."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` is dear; type checkers know this name
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_ORDER = ("completed", "accepted", "running", "ready", "pending", "waiting", "failed", "blocked", "skipped")


def status(view: Mapping[str, Any]) -> str:
    """Each phase with its counts, and the next command."""
    lines = [line for row in view["phases"] for line in _phase(row)]
    if not view["initialised"]:
        lines.append("idumb is not set up here.")
    elif not lines:
        lines.append("No phase is planned yet.")
    return _ended([*lines, *_closing(view)])


def _phase(row: Mapping[str, Any]) -> list[str]:
    title = f" {row['title']}" if row["title"] else ""
    lines = [f"Phase {row['phase']}{title}: {row['state']}"]
    if row["tasks"]["total"]:
        lines.append(f"  {counts(row['tasks'])}")
    if row.get("problem"):
        lines.append(f"  {row['problem']}")
    if row.get("changed_since_run"):
        lines.append("  the plan changed since its last run")
    return lines + [f"  waits for your answer: {d['id']}  {d['what']}" for d in row["decisions"]]


def counts(tasks: Mapping[str, int]) -> str:
    """`2 of 5 done: 2 completed, 1 failed, 2 blocked`."""
    done = tasks.get("completed", 0) + tasks.get("accepted", 0)
    named = ", ".join(f"{tasks[s]} {s}" for s in _ORDER if tasks.get(s))
    return f"{done} of {tasks['total']} done: {named}"


def upcoming(view: Mapping[str, Any]) -> str:
    """The one next command, the tasks that can run, and why the others cannot."""
    number = view["next"].get("phase")
    row = next((r for r in view["phases"] if r["phase"] == number), None)
    lines: list[str] = []
    if row is not None:
        lines += [f"{t['id']} {t['title']}" for t in row["next"][:1]]
        lines += [f"  can run too: {t['id']} {t['title']}" for t in row["next"][1:]]
        lines += [f"  not yet: {t['id']} ({t['status']}) {t['why']}" for t in row["others"]]
        if row["more"]:
            lines.append(f"  and {row['more']} more")
        lines += [f"  problem: {p}" for p in row.get("problems", ())]
    return _ended([*lines, *_closing(view)])


def roadmap(view: Mapping[str, Any]) -> str:
    """One line a phase, status from the log."""
    rows = [f"{row['phase']:>6}  {row['state']:<12} {row['title']}{_share(row)}" for row in view["phases"]]
    return _ended(rows or ["ROADMAP.md names no phase, and there is no phase folder."])


def _share(row: Mapping[str, Any]) -> str:
    tasks = row["tasks"]
    if not tasks["total"]:
        return ""
    return f"  ({tasks.get('completed', 0) + tasks.get('accepted', 0)}/{tasks['total']})"


def _closing(view: Mapping[str, Any]) -> list[str]:
    following = view["next"]
    if following["command"] is None:
        return [f"  next: {following['why']}"]
    return [f"  next: {following['command']}  ({following['why']})"]


def _ended(lines: list[str]) -> str:
    return "\n".join(visible(line) for line in lines) + "\n"


def visible(text: str) -> str:
    """The text itself where it is harmless; foreign control characters are shown, not obeyed."""
    if text.isascii() and text.isprintable():
        return text
    from idumb.views import markup

    return markup.one_line(text)
