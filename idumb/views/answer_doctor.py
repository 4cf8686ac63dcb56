"""What doctor and deinit print."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import health
from idumb.views import amount, markup, phrases


def doctor(data: phrases.Data) -> str:
    """One line a check; under it what was found, what it means, and the next step."""
    checks = data["checks"]
    width = max((len(check["code"]) for check in checks), default=0)
    skipped = [check for check in checks if any(one["found"] == health.NOT_EXAMINED for one in check["symptoms"])]
    lines = [line for check in checks if check not in skipped for line in _check(check, width)]
    lines += _not_examined(skipped, width)
    lines += ["", *(f"fixed: {markup.one_line(done)}" for done in data["mended"])] if data["mended"] else []
    counts = data["counts"]
    summed = f"{amount.counted(counts['problem'], 'problem')}, {amount.counted(counts['warn'], 'warning')}"
    lines += ["", f"{amount.counted(len(checks), 'check')}: {summed}."]
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def _not_examined(skipped: Sequence[phrases.Data], width: int) -> list[str]:
    """Checks that wait for the event log, together: they have one cause, which its own check tells."""
    if not skipped:
        return []
    return [
        f"{health.WARN:<8} {'log':<{width}}  {health.NOT_EXAMINED}",
        f"{' ' * (11 + width)}{', '.join(check['code'] for check in skipped)}",
    ]


def _check(check: phrases.Data, width: int) -> list[str]:
    seen = check["symptoms"]
    told = [one for one in seen if one["state"] != "ok"]
    if not told:
        found = next((one["found"] for one in seen if one["found"]), check["about"])
        return [f"ok       {check['code']:<{width}}  {markup.one_line(found)}"]
    return [line for one in told for line in _symptom(check["code"], one, width)]


def _symptom(code: str, seen: phrases.Data, width: int) -> list[str]:
    indent = " " * (11 + width)
    where = f"{markup.one_line(seen['path'])}: " if seen["path"] else ""
    lines = [f"{seen['state']:<8} {code:<{width}}  {where}{markup.one_line(seen['found'])}"]
    lines += [f"{indent}{markup.one_line(seen['means'])}"] if seen["means"] else []
    mend = "idumb doctor --fix" if seen["mends"] else seen["mend"]
    return lines + ([f"{indent}next: {markup.one_line(mend)}"] if mend else [])


def deinit(data: phrases.Data) -> str:
    """What went and what stays."""
    if not data["removed"]:
        return "There is nothing of idumb's in this repository's git folder.\n"
    lines = ["idumb is taken out of this repository."]
    lines += [f"  gone:  {amount.counted(data['refs'], 'ref')} below refs/idumb/"] if data["refs"] else []
    lines += [f"  gone:  {folder['what']}: {markup.one_line(folder['path'])}" for folder in data["folders"]]
    lines += [f"  gone:  {amount.counted(len(data['files']), 'file')} in .idumb/"] if data["files"] else []
    lines += [f"  stays: {markup.one_line(what)}" for what in data["stays"]]
    lines += [f"  backup of all that is gone: {markup.one_line(data['backup'])}"] if data["backup"] else []
    lines += [f"  brings it back: {markup.one_line(command)}" for command in data["next"]]
    return "\n".join(lines) + "\n"
