"""Output of `status`, `next` and `roadmap`, from the cached view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from idumb.views import phrases

_ORDER = ("completed", "accepted", "running", "ready", "pending", "waiting", "failed", "blocked", "skipped")
_WORDS = {"completed": "done, not verified"}
_STANDING = {"stopped": ", which is stopped", "elsewhere": ", which cannot be seen from here"}


def status(view: phrases.Data) -> list[str]:
    """Return each phase with its counts, its questions, and the next command."""
    phases = [line for row in view["phases"] for line in _phase(row)]
    kept = filter(None, [view["kept"]["words"]])
    return _ended([*_owner(view), *phases, *_questions(view), *kept], view)


def _owner(view: phrases.Data) -> Iterator[str]:
    owner = view.get("owner")  # the command adds it
    if owner is not None and None not in owner.values():  # a damaged card may lack some, or have other values
        who = f"process {owner['pid']} on {owner['host']}{_STANDING.get(owner['standing'], '')}"
        yield f"In use by {who}, since {phrases.moment(str(owner['since']))}: {owner['command']}"


def _phase(row: phrases.Data) -> Iterator[str]:
    title = f" {row['title']}" if row["title"] else ""
    yield f"Phase {row['phase']}{title}: {_state(row)}"
    notes = [_work(row), *(row[name]["words"] for name in ("restoring", "open", "told") if row.get(name))]
    notes += ["" if row["decisions"] else row.get("reason"), row.get("problem")]  # an open question says more
    yield from (f"  {line}" for line in (*notes, *_problems(row), *_blocked(row), *_questions(row)) if line)


def _work(row: phrases.Data) -> str:
    """Return how many tasks are done, here or elsewhere."""
    elsewhere, tasks = row.get("elsewhere"), row["tasks"]
    if not elsewhere:
        return f"{_done(tasks)}: {_counts(tasks, _ORDER)}" if tasks["total"] else ""
    counts = _counts(elsewhere["counts"], (status for status in elsewhere["counts"] if status != "total"))
    verified = f"; verification {elsewhere['verification']}" if elsewhere["verification"] else ""
    return f"done elsewhere according to {elsewhere['by']}, not recorded here: {counts}{verified}" if counts else ""


def _state(row: phrases.Data) -> str:
    return "changed since its last run" if row.get("changed_since_run") else _WORDS.get(row["state"], str(row["state"]))


def _done(tasks: Mapping[str, int]) -> str:
    return f"{tasks.get('completed', 0) + tasks.get('accepted', 0)} of {tasks['total']} done"


def _counts(tasks: Mapping[str, int], statuses: Iterable[str]) -> str:
    return ", ".join(f"{tasks[status]} {status}" for status in statuses if tasks.get(status))


def _problems(row: phrases.Data) -> list[str]:
    return [f"problem: {problem}" for problem in row.get("problems", ())]


def _blocked(row: phrases.Data) -> Iterator[str]:
    """Yield what blocks tasks, each with the commands that unblock them."""
    for group in row.get("blocked", ()):
        yield f"{', '.join(group['tasks'])} blocked by {group['by']} ({group['status']}{_because(group['reason'])})"
        yield from (f"  {action}" for action in group["actions"])


def _questions(row: phrases.Data) -> list[str]:
    return [f"waiting for your answer: {question['id']}  {question['what']}" for question in row["decisions"]]


def upcoming(view: phrases.Data) -> list[str]:
    """Return the next command, ready tasks, and why others wait."""
    lines = [*_owner(view), *_questions(view)]
    row = next((each for each in view["phases"] if each["phase"] == view["next"].get("phase")), None)
    if row is None:
        return _ended(lines, view)
    blocked = {task for group in row.get("blocked", ()) for task in group["tasks"]}
    ready = [(task["id"], task["title"]) for task in row["next"]]
    others = [
        (task["id"], task["title"], f"{task['status']}{_because(task['why'])}")
        for task in row["others"]
        if task["id"] not in blocked
    ]
    lines += [*_questions(row), *(f"  {problem}" for problem in _problems(row))]
    lines += _section("Can run now", phrases.columns(ready, widest=phrases.WIDEST))
    lines += _section("Not yet", phrases.columns(others, widest=phrases.WIDEST))
    lines += _section("Blocked", [f"  {line}" for line in _blocked(row)])
    if row["more"]:
        lines.append(f"  and {phrases.counted(row['more'], 'more task')}; idumb graph {row['phase']} shows all")
    return _ended(lines, view)


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title}:", *lines] if lines else []


def roadmap(view: phrases.Data) -> list[str]:
    """Return one line per phase; its state comes from the log, never from the file."""
    rows = [
        (row["phase"], row["title"] or "-", _state(row), _done(row["tasks"]) if row["tasks"]["total"] else "")
        for row in view["phases"]
    ]
    lines = phrases.columns(rows, "", phrases.WIDEST)
    return _ended(lines or ["ROADMAP.md lists no phases, and there are no phase folders."], view)


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _ended(lines: list[str], view: phrases.Data) -> list[str]:
    """Return the lines, which end with the next command and why, unless one of the lines above says it."""
    command, why = view["next"]["command"], view["next"]["why"]
    if command is None:
        return [*lines, f"Next: {why}"]
    because = f"  ({why})" if why and not any(line.endswith(why) for line in lines) else ""
    return [*lines, f"Next: {command}{because}"]
