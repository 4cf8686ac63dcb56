"""Output of `doctor` and `deinit`."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import health
from idumb.views import markup, phrases, quantities


def doctor(data: phrases.Data) -> str:
    """One line a check; under it what was found, what it means, and the next step."""
    checks = data["checks"]
    width = max((len(check["code"]) for check in checks), default=0)
    skipped = [check for check in checks if any(one["found"] == health.NOT_EXAMINED for one in check["symptoms"])]
    lines = [line for check in checks if check not in skipped for line in _check(check, width)]
    lines += _not_examined(skipped)
    lines += ["", *(f"fixed: {markup.one_line(done)}" for done in data["mended"])] if data["mended"] else []
    counts = data["counts"]
    summed = f"{quantities.counted(counts['problem'], 'problem')}, {quantities.counted(counts['warn'], 'warning')}"
    left_out = f", {len(skipped)} not examined" if skipped else ""
    lines += ["", f"{quantities.counted(len(checks), 'check')}: {summed}{left_out}."]
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def _not_examined(skipped: Sequence[phrases.Data]) -> list[str]:
    """Checks that another cause keeps from being made, one line for each cause; its own check names it."""
    causes: dict[str, list[str]] = {}
    for check in skipped:
        causes.setdefault(check["symptoms"][0]["means"], []).append(check["code"])
    return [f"skipped  {', '.join(codes)}: {markup.one_line(means)}" for means, codes in causes.items()]


def _check(check: phrases.Data, width: int) -> list[str]:
    """One line for each thing found; what it means and the next step once for those that share them."""
    seen = check["symptoms"]
    reported = [one for one in seen if one["state"] != "ok"]
    if not reported:
        found = next((one["found"] for one in seen if one["found"]), check["about"])
        return [f"ok       {check['code']:<{width}}  {markup.one_line(found)}"]
    causes: dict[tuple[str, str, str], list[phrases.Data]] = {}
    for one in reported:
        causes.setdefault((one["state"], one["means"], _mend(one)), []).append(one)
    return [line for same in causes.values() for line in _cause(check["code"], same, width)]


def _cause(code: str, same: Sequence[phrases.Data], width: int) -> list[str]:
    indent = " " * (11 + width)
    found = [_found(one) for one in same]
    lines = [f"{same[0]['state']:<8} {code:<{width}}  {found[0]}", *(f"{indent}{words}" for words in found[1:])]
    lines += [f"{indent}{markup.one_line(same[0]['means'])}"] if same[0]["means"] else []
    mend = _mend(same[0])
    return lines + ([f"{indent}next: {markup.one_line(mend)}"] if mend else [])


def _found(symptom: phrases.Data) -> str:
    path, words = markup.one_line(symptom["path"]), markup.one_line(symptom["found"])
    return f"{path}: {words}" if path and not words.startswith(path) else words


def _mend(symptom: phrases.Data) -> str:
    return "idumb doctor --fix" if symptom["mends"] else str(symptom["mend"])


def deinit(data: phrases.Data) -> str:
    """Return what was removed and what was kept."""
    if not data["removed"]:
        return "idumb has no data in this repository's git folder.\n"
    lines = ["Removed idumb from this repository."]
    lines += [f"  removed: {quantities.counted(data['refs'], 'ref')} under refs/idumb/:"] if data["refs"] else []
    lines += [f"           {name}" for name in data["ref_names"]]
    lines += [f"  removed: {folder['what']}: {markup.one_line(folder['path'])}" for folder in data["folders"]]
    lines += [f"  removed: {quantities.counted(len(data['files']), 'file')} in .idumb/"] if data["files"] else []
    lines += [f"  kept:    {markup.one_line(what)}" for what in data["stays"]]
    lines += [f"  backup:  {markup.one_line(data['backup'])}"] if data["backup"] else []
    lines += [f"  restore: {markup.one_line(command)}" for command in data["next"]]
    return "\n".join(lines) + "\n"
