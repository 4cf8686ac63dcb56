"""What `idumb prove` prints: one line for each task, and the end of the output of each check that now fails."""

from __future__ import annotations

from idumb.domain import rerun
from idumb.views import markup, phrases, quantities

_OUTPUT_LINES = 10
_RESULTS = {
    "proven": "proven",
    "mismatch": "not proven",
    "no_commit": "not proven",
    "nothing_to_run": "nothing to rerun",
}
_CHECKS = {
    rerun.SAME: "as recorded",
    rerun.NOW_FAILS: "now fails",
    rerun.NOW_PASSES: "now passes",
    rerun.NOT_RUN: "not rerun",
    rerun.CHANGED_COMMAND: "passes with another command",
}


def prove(data: phrases.Data) -> phrases.Lines:
    """Return where the proof ran, a line for each task and for the phase, and the details of what differs."""
    lines = [f"{_head(data)}:", *phrases.columns(_rows(data))]
    for name, checks in _checks(data):
        for check in checks:
            lines += _details(name, check)
    return lines


def summary(data: phrases.Data) -> phrases.Lines:
    """Return the same as Markdown, for the summary of a CI job or a comment."""
    lines = [f"### {_head(data)}: {'proven' if data['proven'] else 'not proven'}", ""]
    lines += markup.table(
        ("task", "result", "commit", "checks"), [[markup.prose(c) for c in row] for row in _rows(data)]
    )
    for name, checks in _checks(data):
        failed = [line for check in checks for line in _details(name, check)]
        lines += ["", *markup.block("\n".join(failed))] if failed else []
    return phrases.whole([*lines, ""])


def _head(data: phrases.Data) -> str:
    phase = f"Phase {data['phase']}"
    if data["run"]:
        return f"{phase}, run {data['run']}, in a fresh clone"
    return f"{phase} at HEAD ({quantities.short(data['commit'])}), in a fresh clone"


def _rows(data: phrases.Data) -> list[tuple[str, str, str, str]]:
    recorded = data["run"] is not None
    rows = [
        (row["id"], _RESULTS[row["result"]], _place(row), _summary(row, recorded=recorded)) for row in data["tasks"]
    ]
    if data["criteria"]:
        phase = {"checks": data["criteria"], "why": "", "status": ""}
        wrong = any(row["result"] == rerun.NOW_FAILS for row in data["criteria"])
        rows.append(("phase", "not proven" if wrong else "proven", _place(data), _summary(phase, recorded=recorded)))
    return rows


def _checks(data: phrases.Data) -> list[tuple[str, list[phrases.Data]]]:
    return [*((str(row["id"]), row["checks"]) for row in data["tasks"]), ("phase", data["criteria"])]


def _place(row: phrases.Data) -> str:
    if row["commit"]:
        return f"at {quantities.short(row['commit'])}"
    return "at a hidden checkpoint, which is no commit" if row["checkpoint"] else "no commit"


def _summary(row: phrases.Data, *, recorded: bool) -> str:
    if row["why"]:
        return str(row["why"])
    results = [check["result"] for check in row["checks"]]
    words_of = _CHECKS if recorded else {**_CHECKS, rerun.NOW_FAILS: "fails", rerun.NOW_PASSES: "passes"}
    counted = [f"{results.count(result)} {words}" for result, words in words_of.items() if result in results]
    accepted = ["accepted by a person"] if row["status"] == "accepted" else []
    return ", ".join([*accepted, *counted]) or "no evidence is recorded"


def _details(name: str, check: phrases.Data) -> list[str]:
    if check["result"] != rerun.NOW_FAILS:
        return []
    exit_code = "" if check["exit_code"] is None else f", exit {check['exit_code']}"
    why = f" ({check['why']})" if check["why"] else ""
    head = f"{name} {check['subject']} now fails{exit_code}: {check['command'] or check['text']}{why}"
    shown = phrases.last_lines(check["output"], _OUTPUT_LINES, "  | ") if check["output"].strip() else []
    return [head, *shown]
