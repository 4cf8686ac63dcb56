"""Output of a dry run: tasks, commands that ran, commits a run would make, skipped parts, and the diff."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import wording
from idumb.views import markup, phrases, quantities

_ENDS = {
    "complete": "every task would complete",
    "waiting": "the run would wait for you",
    "partial": "the run would complete in part",
    "failed": "the run would fail",
}


def rehearsed(data: phrases.Data) -> str:
    rehearsal = data["dry_run"]
    lines = [f"Dry run of phase {data['phase']}: {_ENDS.get(data['outcome'], data['outcome'])}. Nothing was changed."]
    lines += [f"Reason: {markup.one_line(data['reason'])}"] if data.get("reason") else []
    lines += ["", "Tasks:", *phrases.columns([_task(row) for row in rehearsal["tasks"]])]
    lines += _part("Not rehearsed:", [(row["task"], markup.one_line(row["why"])) for row in rehearsal["not_rehearsed"]])
    lines += _part("Ran in the copy:", [_command(row) for row in rehearsal["commands"]])
    lines += _part(
        "Would commit:", [(row["task"], markup.one_line(row["subject"])) for row in rehearsal["would_commit"]]
    )
    lines += _part("Files left behind:", [(markup.one_line(path),) for path in rehearsal["left_behind"]])
    record = data.get("verification")
    lines += ["", f"Verification {record['status']}: {markup.one_line(record['reason'])}"] if record else []
    if not rehearsal["files"]:
        return "\n".join([*lines, "", "No file would change.", *phrases.commands(data)]) + "\n"
    rows = [(file["change"], markup.one_line(file["path"]), _lines(file)) for file in rehearsal["files"]]
    lines += _part(f"{quantities.counted(len(rows), 'file')} would change:", rows)
    return "\n".join([*lines, *phrases.commands(data), ""]) + "\n" + markup.visible(rehearsal["diff"])


def _task(row: phrases.Data) -> tuple[str, ...]:
    files = wording.listed([markup.one_line(f["path"]) for f in row["files"]])
    title = quantities.clip(markup.one_line(row["title"]), 50)
    return (row["id"], row["status"], title, files or quantities.clip(markup.one_line(row["why"]), 70))


def _command(row: phrases.Data) -> tuple[str, ...]:
    return (row["task"] or "", row["by"], row["result"], quantities.clip(markup.one_line(row["command"]), 80))


def _lines(file: phrases.Data) -> str:
    return "binary" if file["added"] is None or file["removed"] is None else f"+{file['added']} -{file['removed']}"


def _part(heading: str, rows: Sequence[Sequence[str]]) -> list[str]:
    return ["", heading, *phrases.columns(rows)] if rows else []
