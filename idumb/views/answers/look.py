"""Output of `show`, `report`, `log` and `audit`."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import outcome, wording
from idumb.domain.proof import symbols
from idumb.domain.runs import spending
from idumb.views import markup, phrases, quantities
from idumb.views.answers import status

_KEPT_FILES = 5
_NOT_BAD = {"passed", "opinion", "tolerated", "unproven"}


def show(data: phrases.Data) -> phrases.Lines:
    """Return one task: its declaration, then its attempts, newest last."""
    task = data["task"]
    lines = [f"{data['id']} {task['title']}: {data['status']}"]
    line = f":{data['line']}" if data.get("line") else ""
    lines.append(f"  {data['plan']}{line}, kind {task['kind']}")
    lines += [f"  {data['reason']}"] if data.get("reason") else []
    lines += _declared(task)
    lines += _criteria(task, data["proofs"])
    for each in data.get("attempts", ()):
        lines += ["", *attempt(each)]
    for decision in data.get("decisions", ()):
        lines.append(f"  asked {decision['id']}: {decision['what']}")
    lines += [f"  {a['by']} answered {a['decision']}: {a['choice']}" for a in data.get("answers", ())]
    lines += ["", "To unblock it:", *(f"  {action}" for action in data["actions"])] if data.get("actions") else []
    return [*lines, *phrases.choices(data)]


def plan(data: phrases.Data) -> phrases.Lines:
    return str(data["text"])


_LAST = (("last run    ", "last"), ("last success", "last_success"), ("last failure", "last_failure"))


def metrics(data: phrases.Data) -> phrases.Lines:
    """Return the figures of all runs: tasks, agents, people."""
    ends = ", ".join(f"{number} {name}" for name, number in data["tasks"].items() if number) or "none has ended"
    done = data["first_pass"]
    lines = [f"Since {quantities.moment(data['since'])}"] if data["since"] else []
    runs = ", ".join(f"{number} {name}" for name, number in data["runs"].items() if number) or "none has ended"
    lines += [
        f"Runs: {runs}",
        f"Tasks: {ends}; {done['at_once']} of {done['completed']} completed with their first attempt",
    ]
    rows = [
        (
            row["adapter"] + (f" {row['model']}" if row["model"] else ""),
            quantities.counted(row["calls"], "call"),
            f"{row['success_rate']:.0%} completed",
            quantities.duration(row["seconds"]),
            f"{row['tokens']} tokens",
            quantities.money(row["cost_usd"]) + (f", {row['unknown_cost']} unknown" if row["unknown_cost"] else ""),
        )
        for row in data["agents"]
    ]
    lines += phrases.columns(rows, "  ") if rows else []
    lines.append(f"People were waited for: {quantities.duration(data['waiting_seconds'])}")
    for row in data["workflows"]:
        lines.append(
            f"Phase {row['phase']}: {quantities.counted(row['runs'], 'run')}, {row['completed']} completed,"
            f" {row['failed']} failed" + (f", {quantities.duration(row['seconds'])} each" if row["seconds"] else "")
        )
        lines += [f"  {words} {quantities.moment(row[key])}" for words, key in _LAST if row[key]]
    return lines


def prometheus(data: phrases.Data) -> phrases.Lines:
    from idumb.views import prometheus as exposition

    return exposition.text(data)


def watch(data: phrases.Data) -> phrases.Lines:
    done = sum(row["status"] in outcome.ENDED for row in data["tasks"])
    why = f": {data['reason']}" if data["reason"] else ""
    return [f"Phase {data['phase']}: the run is {data['state']}, {done} of {len(data['tasks'])} tasks done{why}"]


def everything(data: phrases.Data) -> phrases.Lines:
    events = ["", "Newest events:", *phrases.columns(_rows(data["events"]))] if data["events"] else []
    return [*status.status(data["status"]).splitlines(), *events]


def _declared(task: phrases.Data) -> list[str]:
    files = [_claim(claim) for claim in task.get("files") or ()]
    fields = (
        ("depends on", ", ".join(task["depends_on"])),
        ("requirements", ", ".join(task["requirements"])),
        ("files", ", ".join(files)),
    )
    return [f"  {name + ':':<13} {text}" for name, text in fields if text]


def _claim(claim: phrases.Data) -> str:
    return f"{claim['verb']} {claim['path']}" + (f" to {claim['target']}" if claim.get("target") else "")


def _criteria(task: phrases.Data, proofs: phrases.Data) -> list[str]:
    lines = []
    for criterion in task["acceptance"]:
        proof = "keeps" if criterion.get("keeps") else proofs.get(criterion["id"], criterion["proof"])
        command = f" `{criterion['command']}`" if criterion.get("command") else ""
        lines.append(f"  {criterion['id']}: {criterion['text'] + f' — {proof}{command}'}")
    return lines


def attempt(attempt: phrases.Data, most: int = 10) -> list[str]:
    """Return how an attempt ended, its checks with the last lines of their output, and its changes."""
    commit = f", commit {quantities.short(attempt['commit'])}" if attempt.get("commit") else ""
    builder = attempt.get("builder")
    by = f" by {builder}" if isinstance(builder, str) else ""
    lines = [f"Attempt {attempt['attempt']}{by}: {phrases.ended(attempt, commit)}"]
    if attempt.get("fix"):
        lines.append(f"  next: {attempt['fix']}")
    lines += [*_kept(attempt), *_used(attempt)]
    if sandbox := (attempt.get("result") or {}).get("sandbox"):
        lines.append(f"  sandbox: {sandbox}")
    for row in attempt.get("evidence", ()):
        lines += _evidence(row, most)
    ledger = attempt.get("ledger") or ()
    lines += [f"  {_changed(line)}" for line in ledger if line["status"] != symbols.RECORDED]
    lines += _recorded([line for line in ledger if line["status"] == symbols.RECORDED])
    for words, key in (("its commit", "messages"), ("left by a tool", "tool_files")):
        lines += [f"  {words}: {each}" for each in attempt.get(key) or ()]
    return lines


def _kept(attempt: phrases.Data) -> list[str]:
    """Return the ref with the files of an interrupted attempt, and commands that print the first ones."""
    commands = attempt.get("kept") or ()
    if attempt.get("freed"):
        return ["  its snapshots were freed: its files cannot be shown or restored"]
    if attempt.get("outcome") != "interrupted" or not attempt.get("checkpoint"):
        return []
    more = [f"    and {len(commands) - _KEPT_FILES} more"] if len(commands) > _KEPT_FILES else []
    shown = [f"    {command}" for command in commands[:_KEPT_FILES]]
    return [f"  Its files are kept in {attempt['checkpoint']}:", *shown, *more]


def _used(attempt: phrases.Data) -> list[str]:
    """Return the usage that agents reported; nothing for builders without usage."""
    lines = []
    for role, report in (("builder", attempt.get("result")), ("validator", attempt.get("validator"))):
        if report is None or (role == "builder" and attempt.get("adapter") in {None, *spending.FREE}):
            continue
        model = f" ({report['model']})" if report.get("model") else ""
        lines.append(f"  used by the {role}{model}: {quantities.usage(report.get('usage'))}")
    return lines


def _changed(line: phrases.Data) -> str:
    """Return one ledger line: the change of a path, and whether the plan declared it."""
    path, actual = line["path"], line.get("actual") or "unchanged"
    if "symbol" in line:
        return _symbol(line)
    if line["status"] == "declared":
        return f"{actual} {path}, as declared"
    return f"{line['status']}: {path} (declared {line.get('declared') or 'nothing'}, {actual})"


def _recorded(ledger: Sequence[phrases.Data]) -> list[str]:
    """Return a line for each file whose symbols are recorded, such as `symbols of a.py: added load; changed save`."""
    names: dict[str, dict[str, list[str]]] = {}
    for line in ledger:
        names.setdefault(line["path"], {}).setdefault(line["actual"], []).append(line["symbol"])
    return [
        f"  symbols of {path}: "
        + "; ".join(f"{actual} {wording.listed(of_file, 10)}" for actual, of_file in by_change.items())
        for path, by_change in names.items()
    ]


def _symbol(line: phrases.Data) -> str:
    where = f" in {line['path']}" if line["path"] else ""
    if line["status"] == "not judged" and not line.get("declared"):
        return f"symbols{where}: not judged, because idumb cannot read the language or the file"
    actual = f"{line['actual']} " if line.get("actual") else ""
    declared = "as declared" if line["status"] == "declared" else f"declared {line.get('declared') or 'nothing'}"
    status = "" if line["status"] == "declared" else f"{line['status']}: "
    return f"{status}{actual}symbol {line['symbol']}{where}, {declared}"


def _evidence(row: phrases.Data, most: int) -> list[str]:
    only = " (level 0: only reported)" if row.get("level") == 0 else ""
    lines = [f"  {phrases.evidence(row)}{only}{phrases.passed_before(row)}"]
    if (row["result"] in _NOT_BAD and not phrases.is_open_gate(row)) or not row.get("output"):
        return lines
    return [*lines, *phrases.last_lines(row["output"], most, "    | ")]


def diff(data: phrases.Data) -> phrases.Lines:
    """Return the patch after a line of counts, with control sequences escaped."""
    if not data["files"]:
        return [f"{data['id']} changed nothing."]
    rows = [(f["path"], quantities.line_counts(f["added"], f["removed"])) for f in data["files"]]
    return phrases.whole([f"{data['id']}: {quantities.counted(len(rows), 'file')}", *phrases.columns(rows), ""]) + (
        "\n" + data["diff"] if data["diff"] else ""
    )


def transcript(data: phrases.Data) -> phrases.Lines:
    lines: list[str] = []
    for row in data["transcripts"]:
        lines += [f"{data['id']} attempt {data['attempt']}, {row['role']}:"]
        lines += [f"  {line}" for line in row["output"].splitlines()]
    return lines


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
    return phrases.columns(_rows(data["events"]), "")


def _rows(events: Sequence[phrases.Data]) -> list[tuple[str, ...]]:
    return [
        (str(e["seq"]), quantities.moment(e["at"]), e["kind"], _where(e), quantities.clip(_gist(e), 100))
        for e in events
    ]


def verify(data: phrases.Data) -> phrases.Lines:
    """Return how far the event chain is intact, and its head."""
    count = quantities.counted(data["events"], "event")
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


def _where(event: phrases.Data) -> str:
    return f"{event['task']}.{event['attempt']}" if event.get("attempt") else str(event.get("task") or "-")


_GISTS = (
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
)


def _gist(event: phrases.Data) -> str:
    payload = event["payload"]
    return " ".join(_in_words(payload[key]) for key in _GISTS if payload.get(key))


def _in_words(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def usage(data: phrases.Data) -> phrases.Lines:
    lines = [f"Run {data['run']} of phase {data['phase']}"]
    lines += [_call(row) for row in data["calls"]] or ["  no agent calls"]
    lines += [f"  {row['by']} {row['name']}: {_sum(row)}" for row in data["sums"]]
    return [*lines, f"Total: {_sum(data['total'])}"]


def _call(row: phrases.Data) -> str:
    about = f"{row['task']} attempt {row['attempt']}" if row["task"] else f"the phase, round {row['attempt']}"
    names = [row[name] for name in ("binding", "model") if row[name]]
    who = f" ({', '.join(name for name in names)})" if names else ""
    took = quantities.duration(row["seconds"]) if row["seconds"] is not None else "an unknown time"
    ended = str(row["failure"] or row["outcome"]).replace("_", " ")
    used = "" if row["adapter"] in spending.FREE else f", {quantities.usage(row)}"
    return f"  {row['role']}{who} on {about}: {ended} in {took}{used}"


def _sum(row: phrases.Data) -> str:
    parts = [quantities.counted(row["calls"], "call"), quantities.duration(row["seconds"])]
    parts.append(f"tokens {quantities.sum_of(row['tokens'], row['unknown_tokens'], str(row['tokens']))}")
    parts.append(f"cost {quantities.sum_of(row['cost_usd'], row['unknown_cost'], quantities.money(row['cost_usd']))}")
    return ", ".join(parts)


_SOURCE_LINES = 12


def envelope(data: phrases.Data) -> phrases.Lines:
    by = data["builder"]
    lines = [f"{data['task']} attempt {data['attempt']} of run {data['run']} by {by}, envelope {data['digest']}"]
    for part in data["parts"]:
        words = "none" if part["absent"] else part["value"] or "unknown"
        if isinstance(words, dict):
            words = ", ".join(f"{name} {text}" for name, text in sorted(words.items()))
        lines.append(f"  {part['name'].replace('_', ' ') + ':':<17}{words}")
        source = phrases.lines_of(part["source"]) if part["source"] else []
        omitted = [f"({len(source) - _SOURCE_LINES} more lines; --json has them)"] * (len(source) > _SOURCE_LINES)
        lines += [f"    | {line}" for line in (*source[:_SOURCE_LINES], *omitted)]
    return lines
