"""Output of `init`, `install`, `doctor`, `backup`, `archive`, `deinit`, `schema` and `help`."""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Sequence
from typing import Any

from idumb.views import forms, markup, phrases

FORMS = {
    "backup": """
{verified:?}{path}: {events} events, every hash checked, head {head:short}.\
[{of_this_log:! It is not a backup of this repository's log.}]
else {path} is intact only up to event {events}.
""",
    "archive": """
{runs:?Moved} {moved} events to the folder idumb/archive in the git folder:
else Nothing to move: unfinished runs, the newest run of each phase, and the newest {keep_runs} (--keep-runs) stay.
runs*   {events} events: {file}
Freed the snapshots of {freed:+run}; git gc removes them from disk.
""",
    "help_page": """
{text:block}
{topics:?Topics:}
topics*   {topic} | {title}
{topics:?idumb help TOPIC shows one; idumb COMMAND --help shows the options.}
""",
}
_DOCTOR = """
rows* {state} | {code} | {said}
* wrong*9     [{path}: ]{found}
* *       {means}
* *       next: {fix}
* *       next: idumb doctor --fix{fixes:?}
fixed* fixed: {}

{checks:#check}: {counts.problem:#problem}, {counts.warn:#warning}[, {counts.not_examined:+check} not examined].
"""
_INIT = """
In {place}. Paths in plans begin there.
created* created {}
kept* kept    {}
Checks may use {provided}, which git ignores (checkout.provide in .idumb/config.yaml).
What checks need could be installed by: {proposed} (checkout.prepare in .idumb/config.yaml).
checkers* The gate {name} could run {value} after each task (see gates in .idumb/config.yaml).
{old:?Imported from an old iDumb; copies of the files are in idumb/legacy/ in the git folder. None of it is proven:}
{old:outline}
done*   count as done here: idumb accept {} --why REASON
"""
_DEINIT = """
{removed:?Removed idumb from this repository.}
else idumb has no data in this repository's git folder.
  removed: {refs:+ref} under refs/idumb/
ref_names*            {}
folders*   removed: {what}: {path}
  removed: {files:+file} in .idumb/
stays*   kept:    {}
  backup:  {backup}
next*   restore: {}
"""
_SETTINGS = """
settings* {name} | {written} | {source}
else files* {file} | {path}[{exists:!  (not written yet)}]
"""


def init(data: phrases.Data) -> phrases.Lines:
    old = data.get("taken_over") or {}
    top = ", the top of the repository" if data.get("project", ".") == "." else ""
    words = {
        "place": "" if data.get("folder", ".") == "." else f"{data['root']}{top}",
        "proposed": "; ".join(data.get("proposed") or ()),
        "old": {name: value for name, value in old.items() if name != "history"},
        "done": [shlex.quote(task) for phase in old.get("phases", ()) for task in phase["completed"]],
    }
    return forms.fill(_INIT, {**data, **words})


_DONE = {"create": "created", "update": "updated", "remove": "removed", "current": "unchanged"}
_MEANT = {"create": "would create", "update": "would update", "remove": "would remove", "current": "would not change"}
_KEPT = {"edited": "kept, changed by you", "foreign": "kept, not created by idumb"}


def install(data: phrases.Data) -> phrases.Lines:
    """Return each file with its action."""
    words = {**(_MEANT if data["dry_run"] else _DONE), **_KEPT}
    lines = [f"{words[row['action']]}: {data['above']}{row['path']}" for row in data["files"]]
    if not lines:
        return [f"idumb has no files in {' or '.join(data['above'] + folder for folder in data['folders'])}."]
    if data["next"] and not data["dry_run"]:
        return phrases.text_of([*lines, f"In {data['host']}, type {data['typed']} and so on."])
    return lines


def doctor(data: phrases.Data) -> phrases.Lines:
    """Return a line for each check, and what is wrong below it: its meaning and the next step."""
    rows = []
    for check in data["checks"]:
        fine = [symptom["found"] for symptom in check["symptoms"] if symptom["state"] == "ok" and symptom["found"]]
        wrong = [symptom for symptom in check["symptoms"] if symptom["state"] != "ok"]
        if fine or not wrong:
            rows.append({**check, "state": "ok", "said": fine or check["about"]})
        if wrong:
            rows.append({**check, "wrong": _told_once(wrong)})
    return forms.fill(_DOCTOR, {**data, "rows": rows})


def _told_once(wrong: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the symptoms, without a meaning and a next step that the symptom before has, too."""
    nothing = {"means": "", "fix": "", "fixes": False}
    pairs = itertools.pairwise([nothing, *wrong])
    return [row | nothing if all(row[name] == last[name] for name in nothing) else row for last, row in pairs]


def deinit(data: phrases.Data) -> phrases.Lines:
    """Return what was removed and what was kept."""
    return phrases.text_of(forms.fill(_DEINIT, data))


def config(data: phrases.Data) -> phrases.Lines:
    """Return a line for each setting: name, value, source; without any, the files."""
    settings = [{**one, "written": _written(one)} for one in data["settings"]]
    return forms.fill(_SETTINGS, {**data, "settings": settings})


def setting(data: phrases.Data) -> phrases.Lines:
    """Return everything that is known of one setting."""
    (one,) = data["settings"]
    place = next(f["path"] for f in data["files"] if f["file"] == one["file"])
    facts = {"value": _written(one), "from": one["source"], "accepts": one["accepted"]}
    return [one["name"], *phrases.outline(facts | {"default": json.dumps(one["default"]), "file": place})]


def _written(one: phrases.Data) -> str:
    default = "" if one["default"] is None else json.dumps(one["default"])
    return str(one["value"]) if one["value"] is not None else default or "-"


def schema(data: phrases.Data) -> phrases.Lines:
    """Return the document as JSON, or the names with their titles."""
    if "document" in data:
        return markup.json_text(data["document"])
    return forms.fill("names*   {name} | {title}\nNext: idumb schema NAME", data)
