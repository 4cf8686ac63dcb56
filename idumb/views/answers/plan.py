"""Output of `init`, `check-plan` and `graph`."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import wording
from idumb.views import markup, phrases, quantities


def init(data: phrases.Data) -> str:
    lines = [f"created {markup.one_line(path)}" for path in data["created"]]
    lines += [f"kept    {markup.one_line(path)}" for path in data["kept"]]
    lines += _taken_over(data.get("taken_over"))
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def _taken_over(imported: phrases.Data | None) -> list[str]:
    """Return what was imported from an old iDumb."""
    if not imported:
        return []
    files = quantities.counted(len(imported["files"]), "file")
    lines = ["", f"Imported from an old iDumb: {files}. None of it counts as proven."]
    lines += [f"  phase {markup.one_line(p['phase'])}: {_old_phase(p)}" for p in imported["phases"]]
    lines += [f"  state: phase {markup.one_line(imported['phase'])}"] if imported.get("phase") else []
    parts = [quantities.counted(len(imported[key]), one, many) for key, one, many in _TOLD if imported[key]]
    lines += [f"  {', '.join(parts)}"] if parts else []
    lines += [f"  not understood: {markup.one_line(_unread(f))}" for f in imported["not_understood"]]
    return [*lines, "  copies of the files are in idumb/legacy/ in the git folder"]


_TOLD = (("history", "line of history", "lines of history"), ("anchors", "anchor", "anchors"))


def _unread(file: phrases.Data) -> str:
    return f"{file['path']} ({file['why']})"


def _old_phase(imported: phrases.Data) -> str:
    counted = ((len(imported[word]), word) for word in ("completed", "failed", "blocked"))
    return ", ".join(f"{number} {word}" for number, word in counted if number) or "no work was done"


def check_plan(data: phrases.Data) -> str:
    """Return findings and a summary; for a valid plan also its contract hash and the next command."""
    lines = _findings(data)
    if data["errors"] or "contract_hash" not in data:
        return "\n".join(lines) + "\n"
    approval = data.get("approval")
    lines.append(f"  contract {data['contract_hash']}")
    lines += _approval(approval) if approval is not None and approval["standing"] != "live" else []
    return "\n".join([*lines, *_next(data)[:1]]) + "\n"


def check_plan_in_full(data: phrases.Data) -> str:
    """Return the same with hashes, self-check, next free id, and commands for use without a terminal."""
    lines = [*_findings(data), *_self_check(data.get("self_check", ()))]
    if data["errors"] or "contract_hash" not in data:
        return "\n".join(lines) + "\n"
    lines += [f"    not judged, {one['id']}: {one['question']}" for one in data.get("open_questions", ())]
    versions = {path: f" (version {version})" for path, version in data.get("plan_versions", {}).items()}
    hashes = data["plan_hashes"].items()
    lines += [f"  sha256 {sha}  {markup.one_line(path)}{versions.get(path, '')}" for path, sha in hashes]
    lines += [f"  phase    {data['phase_hash']}  (sha256sum over these lines)"] if "phase_hash" in data else []
    lines.append(f"  contract {data['contract_hash']}")
    lines.append(f"  next free task id: {data['next_free_id']}")
    return "\n".join([*lines, *_approval(data.get("approval")), *_next(data)]) + "\n"


def _findings(data: phrases.Data) -> list[str]:
    lines = [line for found in data["findings"] for line in phrases.finding(found)]
    lines += [""] if lines else []
    lines.append(f"Phase {markup.one_line(data['phase'])}: {_tasks(data)}{_summed(data)}.")
    return [*lines, *(f"  {line}" for line in phrases.untracked(data))]


def _next(data: phrases.Data) -> list[str]:
    """Return the next command, also for use without a terminal."""
    command = markup.one_line(data.get("run_command") or f"idumb execute-phase {data['phase']}")
    if (data.get("approval") or {}).get("standing") == "live":
        return [f"Next: {command} (this contract is approved)"]
    if data["mode"] == "strict":
        asked = ",".join(one["id"] for one in data.get("open_questions", ()))
        answers = f" --answer {asked}=yes" if asked else ""
        named = markup.one_line(data["phase"])
        return [
            f"Next: idumb approve {named} (it shows what will run, and asks)",
            f"  without a terminal: idumb approve {named} --hash {data['contract_hash']}{markup.one_line(answers)}",
        ]
    if data.get("consent"):
        return [f"Next: {command} (you already consented to this contract)"]
    return [
        f"Next: {command} (it shows what will run, and asks)",
        f"  without a terminal: {command} --approve {data['contract_hash']}",
    ]


def _self_check(answers: Sequence[phrases.Data]) -> list[str]:
    """Return the number of self-check answers, and each question answered no."""
    if not answers:
        return []
    counted = {word: sum(1 for one in answers if one["answer"] == word) for word in ("yes", "no", "not judged")}
    lines = [f"  self-check: {phrases.counts(counted, ('yes', 'no', 'not judged'))}"]
    for one in answers:
        if one["answer"] == "no":
            evidence = wording.listed(map(markup.one_line, one["evidence"]), _SHOWN)
            lines.append(f"    no: {one['question']} {evidence}")
    return lines


_SHOWN = 1


def _approval(approval: phrases.Data | None) -> list[str]:
    if approval is None:
        return []
    changed = f" ({', '.join(approval['changed'])} changed)" if approval["changed"] else ""
    until = f", until {approval['expires']}" if approval["expires"] else ""
    by = f"by {markup.one_line(approval['by'])} at {approval['validated_at']}{until}"
    return [f"  approval: {approval['standing']}{changed}, {by}"]


def _tasks(data: phrases.Data) -> str:
    plans = quantities.counted(len(data["plans"]), "plan")
    return f"{phrases.tasks(data['tasks'])} in {plans}, mode {data['mode']}, " if "tasks" in data else f"{plans}, "


def _summed(data: phrases.Data) -> str:
    wrong = quantities.counted(data["errors"], "error") if data["errors"] else "no errors"
    return f"{wrong}, {quantities.counted(data['warnings'], 'warning')}" if data["warnings"] else wrong


def graph(data: phrases.Data) -> str:
    """Return the graph as text, Mermaid or SVG."""
    return str(data["text"])
