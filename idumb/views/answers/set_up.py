"""Output of `init`, `install`, `doctor`, `backup`, `archive`, `deinit`, `schema` and `help`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from idumb.domain import health
from idumb.views import markup, phrases


def init(data: phrases.Data) -> phrases.Lines:
    lines = [f"created {path}" for path in data["created"]]
    if data.get("folder", ".") != ".":
        root = data["root"]
        where = ", the top of the repository" if data.get("project", ".") == "." else ""
        lines.insert(0, f"In {root}{where}. Paths in plans begin there.")
    lines += [f"kept    {path}" for path in data["kept"]]
    if data.get("provided"):
        folders = ", ".join(data["provided"])
        lines.append(f"Checks may use {folders}, which git ignores (checkout.provide in .idumb/config.yaml).")
    if data.get("proposed"):
        commands = "; ".join(command for command in data["proposed"])
        lines.append(f"What checks need could be installed by: {commands} (checkout.prepare in .idumb/config.yaml).")
    for gate, checkers in (data.get("checkers") or {}).items():
        names = ", ".join(checkers)
        lines.append(f"The gate {gate} could run {names} after each task (see gates in .idumb/config.yaml).")
    lines += _taken_over(data.get("taken_over"))
    return lines


def _taken_over(imported: phrases.Data | None) -> list[str]:
    """Return what was imported from an old iDumb."""
    if not imported:
        return []
    done = [shlex.quote(task) for phase in imported["phases"] for task in phase["completed"]]
    return [
        "",
        "Imported from an old iDumb. None of it counts as proven.",
        *phrases.outline({name: value for name, value in imported.items() if name != "history"}),
        *(f"  count as done here: idumb accept {task} --why REASON" for task in done),
        "  copies of the files are in idumb/legacy/ in the git folder",
    ]


_DONE = {"create": "created", "update": "updated", "remove": "removed", "current": "unchanged"}
_MEANT = {"create": "would create", "update": "would update", "remove": "would remove", "current": "would not change"}
_KEPT = {"edited": "kept, changed by you", "foreign": "kept, not created by idumb"}


def install(data: phrases.Data) -> phrases.Lines:
    """Return each file with its action."""
    words = {**(_MEANT if data["dry_run"] else _DONE), **_KEPT}
    lines = [f"{words[row['action']]}: {row['path']}" for row in data["files"]]
    if not lines:
        lines = [f"idumb has no files in {' or '.join(data['folders'])}."]
    elif data["next"] and not data["dry_run"]:
        return phrases.whole([*lines, f"In {data['host']}, type {data['typed']} and so on."])
    return lines


def doctor(data: phrases.Data) -> phrases.Lines:
    """Return a line for each check, with its findings, their meaning and the next step below it."""
    checks = data["checks"]
    width = max((len(check["code"]) for check in checks), default=0)
    skipped = [check for check in checks if any(s["found"] == health.NOT_EXAMINED for s in check["symptoms"])]
    lines = [line for check in checks if check not in skipped for line in _check(check, width)]
    lines += _not_examined(skipped)
    lines += ["", *(f"fixed: {done}" for done in data["fixed"])] if data["fixed"] else []
    counts = data["counts"]
    summed = f"{phrases.counted(counts['problem'], 'problem')}, {phrases.counted(counts['warn'], 'warning')}"
    left_out = f", {len(skipped)} not examined" if skipped else ""
    lines += ["", f"{phrases.counted(len(checks), 'check')}: {summed}{left_out}."]
    return lines


def _not_examined(skipped: Sequence[phrases.Data]) -> list[str]:
    """Return a line for each cause that prevented checks; the cause has a check of its own."""
    causes: dict[str, list[str]] = {}
    for check in skipped:
        causes.setdefault(check["symptoms"][0]["means"], []).append(check["code"])
    return [f"skipped  {', '.join(codes)}: {means}" for means, codes in causes.items()]


def _check(check: phrases.Data, width: int) -> list[str]:
    """Return a line for each finding; findings with the same meaning and next step share them."""
    symptoms = check["symptoms"]
    reported = [symptom for symptom in symptoms if symptom["state"] != "ok"]
    fine = [symptom["found"] for symptom in symptoms if symptom["state"] == "ok" and symptom["found"]]
    fine = fine if reported or fine else [check["about"]]
    causes: dict[tuple[str, str, str], list[phrases.Data]] = {}
    for symptom in reported:
        causes.setdefault((symptom["state"], symptom["means"], _fix(symptom)), []).append(symptom)
    lines = [line for same in causes.values() for line in _cause(check["code"], same, width)]
    return [*(f"ok       {check['code']:<{width}}  {words}" for words in fine), *lines]


def _cause(code: str, same: Sequence[phrases.Data], width: int) -> list[str]:
    indent = " " * (11 + width)
    first, *others = (_symptom_line(symptom) for symptom in same)
    lines = [f"{same[0]['state']:<8} {code:<{width}}  {first}", *(f"{indent}{words}" for words in others)]
    lines += [f"{indent}{same[0]['means']}"] if same[0]["means"] else []
    fix = _fix(same[0])
    return lines + ([f"{indent}next: {fix}"] if fix else [])


def _symptom_line(symptom: phrases.Data) -> str:
    path, words = symptom["path"], symptom["found"]
    return f"{path}: {words}" if path and not words.startswith(path) else words


def _fix(symptom: phrases.Data) -> str:
    return "idumb doctor --fix" if symptom["fixes"] else str(symptom["fix"])


def deinit(data: phrases.Data) -> phrases.Lines:
    """Return what was removed and what was kept."""
    if not data["removed"]:
        return ["idumb has no data in this repository's git folder."]
    lines = ["Removed idumb from this repository."]
    lines += [f"  removed: {phrases.counted(data['refs'], 'ref')} under refs/idumb/:"] if data["refs"] else []
    lines += [f"           {name}" for name in data["ref_names"]]
    lines += [f"  removed: {folder['what']}: {folder['path']}" for folder in data["folders"]]
    lines += [f"  removed: {phrases.counted(len(data['files']), 'file')} in .idumb/"] if data["files"] else []
    lines += [f"  kept:    {kept}" for kept in data["stays"]]
    lines += [f"  backup:  {data['backup']}"] if data["backup"] else []
    return phrases.whole([*lines, *(f"  restore: {command}" for command in data["next"])])


def backup(data: phrases.Data) -> phrases.Lines:
    where = data["path"]
    if not data["verified"]:
        return [f"{where} is intact only up to event {data['events']}."]
    ours = [] if data["of_this_log"] else [" It is not a backup of this repository's log."]
    return [f"{where}: {data['events']} events, every hash checked, head {data['head'][:12]}.", *ours]


def config(data: phrases.Data) -> phrases.Lines:
    """Return a line for each setting: name, value, source; without any, the files."""
    if not data["settings"]:
        absent = {False: "  (not written yet)", True: ""}
        return phrases.columns([(f["file"], f"{f['path']}{absent[f['exists']]}") for f in data["files"]], "")
    return phrases.columns([(s["name"], _written(s), s["source"]) for s in data["settings"]], "")


def setting(data: phrases.Data) -> phrases.Lines:
    """Return everything that is known of one setting."""
    (one,) = data["settings"]
    place = next(f["path"] for f in data["files"] if f["file"] == one["file"])
    facts = {"value": _written(one), "from": one["source"], "accepts": one["accepted"]}
    return [one["name"], *phrases.outline(facts | {"default": json.dumps(one["default"]), "file": place})]


def _written(one: phrases.Data) -> str:
    default = "" if one["default"] is None else json.dumps(one["default"])
    return str(one["value"]) if one["value"] is not None else default or "-"


def archive(data: phrases.Data) -> phrases.Lines:
    runs = [f"  {run['events']} events: {run['file']}" for run in data["runs"]]
    freed = f"Freed the snapshots of {phrases.counted(data['freed'], 'run')}; git gc removes them from disk."
    moved = f"Moved {data['moved']} events to the folder idumb/archive in the git folder:"
    stay = f"unfinished runs, the newest run of each phase, and the newest {data['keep_runs']} (--keep-runs) stay"
    lines = [moved, *runs] if runs else [f"Nothing to move: {stay}."]
    return [*lines, *([freed] if data["freed"] else [])]


def help_page(data: phrases.Data) -> phrases.Lines:
    if "text" in data:
        return str(data["text"])
    width = max(len(row["topic"]) for row in data["topics"])
    lines = [f"  {row['topic']:<{width}}  {row['title']}" for row in data["topics"]]
    return ["Topics:", *lines, "", "idumb help TOPIC shows one; idumb COMMAND --help shows the options."]


def schema(data: phrases.Data) -> phrases.Lines:
    """Return the document as JSON, or the names with their titles."""
    if "document" in data:
        return markup.json_text(data["document"])
    rows = [(row["name"], row["title"]) for row in data["names"]]
    return [*phrases.columns(rows), "Next: idumb schema NAME"]
