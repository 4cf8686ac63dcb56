"""Output of `show --debug`: a bundle to read from top to bottom, or to share as a file."""

from __future__ import annotations

from idumb.views import phrases, quantities
from idumb.views.answers import look

_OUTPUT_LINES = 30
_DIFF_LINES = 200


def debug(data: phrases.Data) -> phrases.Lines:
    """Return the task, its changes, checklist and diagnosis, in this order."""
    why = f": {data['reason']}" if data["reason"] else ""
    lines = [f"Phase {data['phase']}, run {data['run']}: {data['state']}{why}"]
    lines += ["", *_task(data["task"])]
    lines += ["", "What you can do:", *(_remedy(remedy) for remedy in data["checklist"])]
    lines += ["", *_diagnosis(data["diagnosis"])] if data["diagnosis"] else []
    return [*lines, ""]


def _task(task: phrases.Data) -> list[str]:
    kinds = ", ".join(str(task[name]) for name in ("class", "failure", "cause") if task[name])
    why = f": {task['reason']}" if task["reason"] else ""
    lines = [f"{task['id']} {task['title']}: {task['status']} ({kinds}){why}"]
    changes = {row["attempt"]: row for row in task["changes"]}
    for attempt in task["attempts"]:
        lines += _attempt(attempt)
        lines += _change(changes[attempt["attempt"]]) if attempt["attempt"] in changes else []
    for row in task["envelope"]:
        lines += _envelope(row)
    return lines


def _envelope(row: phrases.Data) -> list[str]:
    """Return how the environments of two attempts differ, and which parts are unknown."""
    first, second = row["attempts"]
    parts, unknown = ", ".join(row["parts"]), ", ".join(row["unknown"])
    differ = [f"  attempts {first} and {second} had a different {parts}"] if parts else []
    open_ = [f"  unknown whether attempts {first} and {second} had the same {unknown}"] if unknown else []
    return [*differ, *open_]


def _attempt(attempt: phrases.Data) -> list[str]:
    """Return an attempt as `show` has it, with more of each output, and what its builder said."""
    lines = ["", *look.attempt(attempt, _OUTPUT_LINES)]
    result = attempt.get("result") or {}
    if result.get("message") and result["message"] != attempt.get("reason"):
        lines.append(f"  the builder: {result['message']}")
    return [*lines, *_quoted(str(result.get("output") or ""), _OUTPUT_LINES, "    | ")]


def _quoted(text: str, most: int, indent: str) -> list[str]:
    return phrases.last_lines(text, most, indent) if text.strip() else []


def _change(row: phrases.Data) -> list[str]:
    if not row["files"]:
        return [f"    no changes since {row['since']}"]
    counts = [(f["path"], quantities.line_counts(f["added"], f["removed"])) for f in row["files"]]
    lines = [f"    changed since {row['since']}:", *phrases.columns(counts, "      ")]
    lines += [f"      and {row['more']} more"] if row["more"] else []
    diff = phrases.lines_of(row["diff"]) if row["diff"].strip() else []
    lines += [f"      | {line}" for line in diff[:_DIFF_LINES]]
    cut = len(diff) - _DIFF_LINES
    return [*lines, *([f"      | ({quantities.counted(cut, 'more line')})"] if cut > 0 else [])]


def _remedy(row: phrases.Data) -> str:
    command = f"\n      {row['command']}" if row["command"] else ""
    return f"  [ ] {row['text']}{command}"


def _diagnosis(row: phrases.Data) -> list[str]:
    who = str(row["binding"])
    if row["failure"]:
        return [f"No diagnosis from {who}: {row['failure']}"]
    return [f"Diagnosis by {who} (an opinion):", *_quoted(row["text"], 400, "  | ")]
