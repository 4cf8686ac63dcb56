"""Output of `report`, `log`, `audit`, `verify-work` and `prove`: the record of a run, and whether it holds."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import rerun
from idumb.views import markup, phrases
from idumb.views.answers import run

_GISTS = [
    "subject",
    "command",
    "outcome",
    "result",
    "status",
    "tool",
    "intent",
    "reason",
    "choice",
    "what",
    "to",
    "commit",
]
"""What the line of an event shows of its payload, in this order."""
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


def report(data: phrases.Data) -> phrases.Lines:
    """Return the written paths, or the text of summary and verification."""
    if data["written"]:
        return ["Written:", *(f"  {path}" for path in data["written"])]
    shown = [row["text"] for row in data["reports"] if not row["path"].startswith(".idumb/")]
    return "\n".join(shown)


def log(data: phrases.Data) -> phrases.Lines:
    """Return one line per event: number, time, kind, task, and a gist."""
    if not data["events"]:
        return ["No events match."]
    return phrases.columns(events(data["events"]), "")


def events(rows: Sequence[phrases.Data]) -> list[tuple[str, ...]]:
    return [(str(e["seq"]), phrases.moment(e["at"]), e["kind"], _where(e), phrases.clip(_gist(e), 100)) for e in rows]


def _where(event: phrases.Data) -> str:
    return f"{event['task']}.{event['attempt']}" if event.get("attempt") else str(event.get("task") or "-")


def _gist(event: phrases.Data) -> str:
    payload = event["payload"]
    return " ".join(_in_words(payload[key]) for key in _GISTS if payload.get(key))


def _in_words(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def verify(data: phrases.Data) -> phrases.Lines:
    """Return how far the event chain is intact, and its head."""
    count = phrases.counted(data["events"], "event")
    if data["broken_at"] is not None:
        return [f"Only {count} intact: the chain breaks at event {data['broken_at']}."]
    confirmed = [f"Confirmed outside the database up to event {data['witnessed']}."] if data["witnessed"] else []
    return [f"Intact: {count}, chained without a gap. Head: {data['head']}", *confirmed]


def workspace(data: phrases.Data) -> phrases.Lines:
    """Return whether a run's files are unchanged."""
    lines = [f"- {line}" for line in data["broken"]]
    lines += [f"- not as committed here: {path}" for path in data["changed"]]
    words = "as its tasks left it" if data["intact"] else "not as its tasks left it"
    return [f"Run {data['run']} of phase {data['phase']}: {words}. Log head: {data['head']}", *lines]


def bundle(data: phrases.Data) -> phrases.Lines:
    if data["written"]:
        return [f"Written: {', '.join(data['written'])}", f"  sha256 {data['sha256']}"]
    return markup.json_text({name: data[name] for name in ("bundle", "sha256", "signed")})


def verify_work(data: phrases.Data) -> phrases.Lines:
    """Return each check with its result, the gaps, and the path of the report."""
    rows = [(e["result"], e["subject"], phrases.clip((e.get("command") or e["text"]), 70)) for e in data["evidence"]]
    lines = [f"Phase {data['phase']}: {phrases.verification(data)}", *(phrases.columns(rows) if rows else [])]
    lines += phrases.weaker(data)
    lines += [f"  mismatch: {text}" for text in data.get("mismatches", ())]
    lines += [f"  {r['id']} is not met" for r in data.get("requirements", ()) if not r["met"]]
    lines += [f"  accepted by a person, not proven: {task}" for task in data.get("accepted", ())]
    lines += [f"  skipped: {task}" for task in data.get("skipped", ())]
    unfinished = (f"{task} ({standing})" for task, standing in data.get("unfinished", {}).items())
    lines += [f"  not done: {task}" for task in unfinished if task not in data["reason"]]
    lines += _opinions(data)
    weak = data["status"] == "partial" and data.get("decision") is None
    alone = "nothing proves the work" if weak else "only the tasks' own checks prove the work"
    lines += [] if rows else [f"  no success criterion, invariant or test: {alone}"]
    lines.append(f"Report: {run.report_place(data, data['report'])}")
    lines += [f"Plan for the gaps: {data['gap_plan']}"] if data.get("gap_plan") else []
    return lines


def _opinions(data: phrases.Data) -> list[str]:
    """Return the opinions of agents: only refuted criteria, with citations."""
    lines = []
    for opinion in data.get("judged_by", ()):
        lines.append(f"  opinion of the {opinion['role']}: {opinion['verdict'] or 'none'}")
        for judgement in opinion["judgements"]:
            places = (
                f"{c['file']}:{c['line']}" + ("" if c["resolves"] else " (does not exist)")
                for c in judgement["citations"]
            )
            refutation = (
                f"{judgement['criterion']} does not hold: {judgement['why']} [{', '.join(places) or 'nothing cited'}]"
            )
            lines += [] if judgement["holds"] else [f"    {refutation}"]
    return lines


def prove(data: phrases.Data) -> phrases.Lines:
    """Return where the proof ran, a line for each task and for the phase, and the details of what differs."""
    lines = [f"{_proof_head(data)}:", *phrases.columns(_proof_rows(data))]
    for name, checks in _checks(data):
        for check in checks:
            lines += _details(name, check)
    return lines


def summary(data: phrases.Data) -> phrases.Lines:
    """Return the same as Markdown, for the summary of a CI job or a comment."""
    lines = [f"### {_proof_head(data)}: {'proven' if data['proven'] else 'not proven'}", ""]
    lines += markup.table(
        ("task", "result", "commit", "checks"), [[markup.prose(c) for c in row] for row in _proof_rows(data)]
    )
    for name, checks in _checks(data):
        failed = [line for check in checks for line in _details(name, check)]
        lines += ["", *markup.block("\n".join(failed))] if failed else []
    return phrases.whole([*lines, ""])


def _proof_head(data: phrases.Data) -> str:
    phase = f"Phase {data['phase']}"
    if data["run"]:
        return f"{phase}, run {data['run']}, in a fresh clone"
    return f"{phase} at HEAD ({phrases.short(data['commit'])}), in a fresh clone"


def _proof_rows(data: phrases.Data) -> list[tuple[str, str, str, str]]:
    recorded = data["run"] is not None
    rows = [
        (row["id"], _RESULTS[row["result"]], _proof_place(row), _counted(row, recorded=recorded))
        for row in data["tasks"]
    ]
    if data["criteria"]:
        phase = {"checks": data["criteria"], "why": "", "status": ""}
        found = {row["result"] for row in data["criteria"]}
        result = "mismatch" if rerun.NOW_FAILS in found else "proven" if found - {rerun.NOT_RUN} else "nothing_to_run"
        rows.append(("phase", _RESULTS[result], _proof_place(data), _counted(phase, recorded=recorded)))
    return rows


def _checks(data: phrases.Data) -> list[tuple[str, list[phrases.Data]]]:
    return [*((str(row["id"]), row["checks"]) for row in data["tasks"]), ("phase", data["criteria"])]


def _proof_place(row: phrases.Data) -> str:
    if row["commit"]:
        return f"at {phrases.short(row['commit'])}"
    return "at a hidden checkpoint, which is no commit" if row["checkpoint"] else "no commit"


def _counted(row: phrases.Data, *, recorded: bool) -> str:
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
