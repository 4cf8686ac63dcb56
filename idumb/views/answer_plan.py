"""What init, check-plan and graph print."""

from __future__ import annotations

from idumb.views import amount, markup, phrases


def init(data: phrases.Data) -> str:
    lines = [f"created {markup.one_line(path)}" for path in data["created"]]
    lines += [f"kept    {markup.one_line(path)}" for path in data["kept"]]
    lines += _taken_over(data.get("taken_over"))
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def _taken_over(told: phrases.Data | None) -> list[str]:
    """What an old iDumb left: told, not witnessed."""
    if not told:
        return []
    files = amount.counted(len(told["files"]), "file")
    lines = ["", f"Taken over from an old iDumb: {files}; nothing of it counts as proven."]
    lines += [f"  phase {markup.one_line(p['phase'])}: {_old_phase(p)}" for p in told["phases"]]
    lines += [f"  state: phase {markup.one_line(told['phase'])}"] if told.get("phase") else []
    known = [amount.counted(len(told[key]), one, many) for key, one, many in _TOLD if told[key]]
    lines += [f"  {', '.join(known)}"] if known else []
    lines += [f"  not understood: {markup.one_line(_unread(f))}" for f in told["not_understood"]]
    return [*lines, "  copies of the files are kept in idumb/legacy/ of the git folder"]


_TOLD = (("history", "line of history", "lines of history"), ("anchors", "anchor", "anchors"))


def _unread(file: phrases.Data) -> str:
    return f"{file['path']} ({file['why']})"


def _old_phase(told: phrases.Data) -> str:
    counted = ((len(told[word]), word) for word in ("completed", "failed", "blocked"))
    return ", ".join(f"{number} {word}" for number, word in counted if number) or "nothing was done"


def check_plan(data: phrases.Data) -> str:
    """All findings, then one line that sums them up, then what consent is given to."""
    lines = [line for found in data["findings"] for line in phrases.finding(found)]
    lines += [""] if lines else []
    lines.append(f"Phase {markup.one_line(data['phase'])}: {_tasks(data)}{_summed(data)}.")
    if data["errors"] or "contract_hash" not in data:
        return "\n".join(lines) + "\n"
    lines += [f"  sha256 {sha}  {markup.one_line(path)}" for path, sha in data["plan_hashes"].items()]
    lines.append(f"  contract {data['contract_hash']}")
    lines.append(f"  next free task id: {data['next_free_id']}")
    command = f"idumb execute-phase {data['phase']}"
    if data.get("consent"):
        lines.append(f"Next: {command} (you consented to this contract before)")
    else:
        lines.append(f"Next: {command} (it shows what will run, and asks)")
        lines.append(f"  without a terminal: {command} --approve {data['contract_hash']}")
    return "\n".join(lines) + "\n"


def _tasks(data: phrases.Data) -> str:
    plans = amount.counted(len(data["plans"]), "plan")
    return f"{phrases.tasks(data['tasks'])} in {plans}, mode {data['mode']}, " if "tasks" in data else f"{plans}, "


def _summed(data: phrases.Data) -> str:
    wrong = amount.counted(data["errors"], "error") if data["errors"] else "no errors"
    return f"{wrong}, {amount.counted(data['warnings'], 'warning')}" if data["warnings"] else wrong


def graph(data: phrases.Data) -> str:
    """The picture itself: text, Mermaid or SVG, as it was asked for."""
    return str(data["text"])
