"""Output of `plan-diff` and `amend`."""

from __future__ import annotations

from idumb.views import markup, phrases, quantities


def plan_diff(data: phrases.Data) -> str:
    since = data["since"]
    what = f"phase {markup.one_line(data['phase'])} since {_locked(since)}"
    if data["same"]:
        return "\n".join([f"No changes in {what}.", *phrases.commands(data)]) + "\n"
    lines = [f"Changed in {what}:", *_lines(data), f"  contract {data['contract_hash']}"]
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def _locked(since: phrases.Data) -> str:
    if since["what"] == "approval":
        return f"the approval by {markup.one_line(since['by'])} of {quantities.moment(since['at'])}"
    version = f", version {since['version']}" if since["version"] > 1 else ""
    return f"run {since['number']}{version}"


def _lines(data: phrases.Data) -> list[str]:
    return [f"  {markup.one_line(line)}" for line in data["lines"]]


def amend(data: phrases.Data) -> str:
    """Return the new contract version, its changes, and the tasks that can be retried."""
    lines = [f"Phase {markup.one_line(data['phase'])} continues with version {data['version']} of its contract."]
    lines += [f"  {markup.one_line(line)}" for line in data["what"]]
    lines += [f"  {markup.one_line(one['words'])}" for one in data["completed_work"]]
    lines += [f"  {task} can be retried" for task in data["reset"]]
    lines.append(f"  contract {data['contract_hash']}")
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"
