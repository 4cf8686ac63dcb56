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


def prove(data: phrases.Data) -> str:
    """Return where the proof ran, a line for each task and for the phase, and the details of what differs."""
    rows = [(markup.one_line(row["id"]), _RESULTS[row["result"]], _place(row), _summary(row)) for row in data["tasks"]]
    if data["criteria"]:
        phase = {"checks": data["criteria"], "why": "", "status": ""}
        wrong = any(row["result"] == rerun.NOW_FAILS for row in data["criteria"])
        rows.append(("phase", "not proven" if wrong else "proven", _place(data), _summary(phase)))
    lines = [f"Phase {markup.one_line(data['phase'])}, run {data['run']}, in a fresh clone:", *phrases.columns(rows)]
    for name, checks in [*((row["id"], row["checks"]) for row in data["tasks"]), ("phase", data["criteria"])]:
        for check in checks:
            lines += _details(str(name), check)
    return "\n".join(lines) + "\n"


def _place(row: phrases.Data) -> str:
    if row["commit"]:
        return f"at {quantities.short(row['commit'])}"
    return "at a hidden checkpoint, which is no commit" if row["checkpoint"] else "no commit"


def _summary(row: phrases.Data) -> str:
    if row["why"]:
        return markup.one_line(row["why"])
    results = [check["result"] for check in row["checks"]]
    counted = [f"{results.count(result)} {words}" for result, words in _CHECKS.items() if result in results]
    accepted = ["accepted by a person"] if row["status"] == "accepted" else []
    return ", ".join([*accepted, *counted]) or "no evidence is recorded"


def _details(name: str, check: phrases.Data) -> list[str]:
    if check["result"] != rerun.NOW_FAILS:
        return []
    exit_code = "" if check["exit_code"] is None else f", exit {check['exit_code']}"
    why = f" ({check['why']})" if check["why"] else ""
    head = f"{name} {check['subject']} now fails{exit_code}: {check['command'] or check['text']}{why}"
    return [markup.one_line(head), *phrases.last_lines(check["output"], _OUTPUT_LINES, "  | ")]
