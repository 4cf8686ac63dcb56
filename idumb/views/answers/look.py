"""Output of `report`, `log`, `audit`, `verify-work` and `prove`: the record of a run, and whether it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from idumb.domain import rerun
from idumb.views import forms, markup, phrases
from idumb.views.answers import run

FORMS = {
    "verify": """
Only {events:#event} intact: the chain breaks at event {broken_at}.
else Intact: {events:#event}, chained without a gap. Head: {head}
Confirmed outside the database up to event {witnessed}.{witnessed:?}
""",
    "workspace": """
Run {run} of phase {phase}: {intact:?as its tasks left it}. Log head: {head}
else Run {run} of phase {phase}: not as its tasks left it. Log head: {head}
broken* - {}
changed* - not as committed here: {}
""",
}
_VERIFIED = """
Phase {phase}: {said}
evidence*   {result} | {subject} | {command or text:70}
weaker*   weaker: {reason}: {subjects:5}
mismatches*   mismatch: {}
requirements*   {met:!}{id} is not met
accepted*   accepted by a person, not proven: {name}
skipped*   skipped: {}
others*   not done: {}
judged_by*   opinion of the {role}: [{verdict}][{verdict:!none}]
* judgements*     {holds:!}{criterion} does not hold: {why}
* * citations*       {file}:{line}[{resolves:! (does not exist)}]
* * else       nothing cited
  no success criterion, invariant or test: {alone}
Report: {place}
Plan for the gaps: {gap_plan}
"""
_GISTS = (
    "subject", "command", "outcome", "result", "status", "tool", "intent", "reason", "choice", "what", "to", "commit",
)  # fmt: skip
"""What the line of an event shows of its payload, in this order."""
_OUTPUT_LINES = 10
_CHECKS = {
    rerun.SAME: "as recorded",
    rerun.NOW_FAILS: "now fails",
    rerun.STILL_FAILS: "still fails",
    rerun.NOW_PASSES: "now passes",
    rerun.NOT_RUN: "not rerun",
    rerun.CHANGED_COMMAND: "passes with another command",
}


def report(data: phrases.Data) -> phrases.Lines:
    """Return the written paths, or the text of summary and verification."""
    if data["written"]:
        return ["Written:", *(f"  {path}" for path in data["written"])]
    shown = [row["text"] for row in data["reports"] if not row["path"].startswith(".idumb/")]
    return "\n".join(shown)


def log(data: phrases.Data) -> phrases.Lines:
    """Return one line per event: number, time, kind, task, and a gist."""
    return phrases.columns(events(data["events"]), "") or ["No events match."]


def events(rows: Sequence[phrases.Data]) -> list[tuple[str, ...]]:
    return [(str(e["seq"]), phrases.moment(e["at"]), e["kind"], _where(e), phrases.clip(_gist(e), 100)) for e in rows]


def _where(event: phrases.Data) -> str:
    return f"{event['task']}.{event['attempt']}" if event.get("attempt") else str(event.get("task") or "-")


def _gist(event: phrases.Data) -> str:
    payload = event["payload"]
    return " ".join(phrases.on_one_line(payload[key]) for key in _GISTS if payload.get(key))


def bundle(data: phrases.Data) -> phrases.Lines:
    if data["written"]:
        return forms.fill("Written: {written}\n  sha256: {sha256}", data)
    return markup.json_text({name: data[name] for name in ("bundle", "sha256", "signed")})


def verify_work(data: phrases.Data) -> phrases.Lines:
    """Return each check with its result, the gaps, and the path of the report."""
    unfinished = (f"{task} ({standing})" for task, standing in data.get("unfinished", {}).items())
    words = {
        "said": phrases.verification(data),
        "others": [task for task in unfinished if task not in data["reason"]],
        "alone": "" if data["evidence"] else "only the tasks' own checks can prove the work",
        "place": run.report_place(data, data["report"]),
    }
    return forms.fill(_VERIFIED, {**data, **words})


def prove(data: phrases.Data) -> phrases.Lines:
    """Return where the proof ran, a line for each task and for the phase, and the details of what differs."""
    return [_heading(data), *phrases.columns(_proven(data), widest=phrases.WIDEST), *_failed(data)]


def summary(data: phrases.Data) -> phrases.Lines:
    """Return the same as Markdown, for the summary of a CI job or a comment."""
    cells = [[markup.prose(cell) for cell in row] for row in _proven(data)]
    table = markup.table(("task", "result", "commit", "checks"), cells)
    failed = ["", *markup.block("\n".join(_failed(data)))] if _failed(data) else []
    head = f"### {_heading(data)} {'proven' if data['proven'] else 'not proven'}"
    return phrases.text_of([head, "", *table, *failed, ""])


def _heading(data: phrases.Data) -> str:
    proven = f" at HEAD ({phrases.short(data['commit'])})" if data["run"] is None else f", run {data['run']}"
    return f"Phase {data['phase']}{proven}, in a fresh clone:"


def _proven(data: phrases.Data) -> list[tuple[str, str, str, str]]:
    """Return id, result, commit and checks of each task and of the phase."""
    checks = data["criteria"]
    phase = {**data, "id": "phase", "result": rerun.result_of(checks), "checks": checks, "why": "", "status": ""}
    without_record = {**_CHECKS, rerun.NOW_FAILS: "fails", rerun.NOW_PASSES: "passes"}
    words_of = without_record if data["run"] is None else _CHECKS
    words = {rerun.NOTHING_TO_RUN: "nothing to rerun", rerun.PROVEN: "proven"}
    return [
        (row["id"], words.get(row["result"], "not proven"), _place(row), _counted(row, words_of))
        for row in [*data["tasks"], *([phase] if checks else [])]
    ]


def _place(row: phrases.Data) -> str:
    if row["commit"]:
        return f"at {phrases.short(row['commit'])}"
    return "at a hidden checkpoint, which is no commit" if row["checkpoint"] else "no commit"


def _counted(row: phrases.Data, words_of: Mapping[str, str]) -> str:
    if row["why"]:
        return str(row["why"])
    results = [check["result"] for check in row["checks"]]
    counted = [f"{results.count(result)} {words}" for result, words in words_of.items() if result in results]
    accepted = ["accepted by a person"] if row["status"] == "accepted" else []
    return ", ".join([*accepted, *counted]) or "no evidence is recorded"


def _failed(data: phrases.Data) -> list[str]:
    """Return each check that fails, and the end of its output."""
    lines = []
    for row in [*data["tasks"], {"id": "phase", "checks": data["criteria"]}]:
        for check in row["checks"]:
            if check["result"] in rerun.FAILS:
                code = "" if check["exit_code"] is None else f", exit {check['exit_code']}"
                why = f" ({check['why']})" if check["why"] else ""
                what = check["command"] or check["text"]
                lines.append(f"{row['id']} {check['subject']} {_CHECKS[check['result']]}{code}: {what}{why}")
                lines += filter(None, [phrases.quoted(check["output"], _OUTPUT_LINES, "  | ")])
    return lines
