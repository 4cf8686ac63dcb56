"""Output of `show`: a task, what ran it, what it changed and used, and why it failed."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import outcome, wording
from idumb.domain.proof.ledger import RECORDED
from idumb.domain.runs import spending
from idumb.views import phrases

_KEPT_FILES = 5
_SOURCE_LINES = 12
_MOST_LINES = 30
_DIFF_LINES = 200
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
        lines += ["", *_attempt(each)]
    for decision in data.get("decisions", ()):
        lines.append(f"  asked {decision['id']}: {decision['what']}")
    lines += [f"  {a['by']} answered {a['decision']}: {a['choice']}" for a in data.get("answers", ())]
    lines += ["", "To unblock it:", *(f"  {action}" for action in data["actions"])] if data.get("actions") else []
    return [*lines, *phrases.choices(data)]


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


def _attempt(attempt: phrases.Data, most: int = 10) -> list[str]:
    """Return how an attempt ended, its checks with the last lines of their output, and its changes."""
    commit = f", commit {phrases.short(attempt['commit'])}" if attempt.get("commit") else ""
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
    lines += [f"  {_changed(line)}" for line in ledger if line["status"] != RECORDED]
    lines += _recorded([line for line in ledger if line["status"] == RECORDED])
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
        lines.append(f"  used by the {role}{model}: {phrases.usage(report.get('usage'))}")
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


def plan(data: phrases.Data) -> phrases.Lines:
    return str(data["text"])


def diff(data: phrases.Data) -> phrases.Lines:
    """Return the patch after a line of counts, with control sequences escaped."""
    if not data["files"]:
        return [f"{data['id']} changed nothing."]
    rows = [(f["path"], phrases.line_counts(f["added"], f["removed"])) for f in data["files"]]
    return phrases.whole([f"{data['id']}: {phrases.counted(len(rows), 'file')}", *phrases.columns(rows), ""]) + (
        "\n" + data["diff"] if data["diff"] else ""
    )


def transcript(data: phrases.Data) -> phrases.Lines:
    lines: list[str] = []
    for row in data["transcripts"]:
        lines += [f"{data['id']} attempt {data['attempt']}, {row['role']}:"]
        lines += [f"  {line}" for line in row["output"].splitlines()]
    return lines


def usage(data: phrases.Data) -> phrases.Lines:
    lines = [f"Run {data['run']} of phase {data['phase']}"]
    lines += [_call(row) for row in data["calls"]] or ["  no agent calls"]
    lines += [f"  {row['by']} {row['name']}: {_sum(row)}" for row in data["sums"]]
    return [*lines, f"Total: {_sum(data['total'])}"]


def _call(row: phrases.Data) -> str:
    about = f"{row['task']} attempt {row['attempt']}" if row["task"] else f"the phase, round {row['attempt']}"
    names = [row[name] for name in ("binding", "model") if row[name]]
    who = f" ({', '.join(name for name in names)})" if names else ""
    took = phrases.duration(row["seconds"]) if row["seconds"] is not None else "an unknown time"
    ended = str(row["failure"] or row["outcome"]).replace("_", " ")
    used = "" if row["adapter"] in spending.FREE else f", {phrases.usage(row)}"
    return f"  {row['role']}{who} on {about}: {ended} in {took}{used}"


def _sum(row: phrases.Data) -> str:
    parts = [phrases.counted(row["calls"], "call"), phrases.duration(row["seconds"])]
    parts.append(f"tokens {phrases.sum_of(row['tokens'], row['unknown_tokens'], str(row['tokens']))}")
    parts.append(f"cost {phrases.sum_of(row['cost_usd'], row['unknown_cost'], phrases.money(row['cost_usd']))}")
    return ", ".join(parts)


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


def debug(data: phrases.Data) -> phrases.Lines:
    """Return the task, its changes, checklist and diagnosis, in this order."""
    why = f": {data['reason']}" if data["reason"] else ""
    lines = [f"Phase {data['phase']}, run {data['run']}: {data['state']}{why}"]
    lines += ["", *_failed_task(data["task"])]
    lines += ["", "What you can do:", *(_remedy(remedy) for remedy in data["checklist"])]
    lines += ["", *_diagnosis(data["diagnosis"])] if data["diagnosis"] else []
    return [*lines, ""]


def _failed_task(task: phrases.Data) -> list[str]:
    kinds = ", ".join(str(task[name]) for name in ("class", "failure", "cause") if task[name])
    why = f": {task['reason']}" if task["reason"] else ""
    ended = "" if task["status"] in outcome.DONE else f" ({kinds})"
    lines = [f"{task['id']} {task['title']}: {task['status']}{ended}{why}"]
    changes = {row["attempt"]: row for row in task["changes"]}
    for attempt in task["attempts"]:
        lines += _failed_attempt(attempt)
        lines += _changes(changes[attempt["attempt"]]) if attempt["attempt"] in changes else []
    for row in task["envelope"]:
        lines += _differing_envelopes(row)
    return lines


def _differing_envelopes(row: phrases.Data) -> list[str]:
    """Return how the environments of two attempts differ, and which parts are unknown."""
    first, second = row["attempts"]
    parts, unknown = ", ".join(row["parts"]), ", ".join(row["unknown"])
    differ = [f"  attempts {first} and {second} had a different {parts}"] if parts else []
    open_ = [f"  unknown whether attempts {first} and {second} had the same {unknown}"] if unknown else []
    return [*differ, *open_]


def _failed_attempt(attempt: phrases.Data) -> list[str]:
    """Return an attempt as `show` has it, with more of each output, and what its builder said."""
    lines = ["", *_attempt(attempt, _MOST_LINES)]
    result = attempt.get("result") or {}
    if result.get("message") and result["message"] != attempt.get("reason"):
        lines.append(f"  the builder: {result['message']}")
    return [*lines, *_quoted(str(result.get("output") or ""), _MOST_LINES, "    | ")]


def _quoted(text: str, most: int, indent: str) -> list[str]:
    return phrases.last_lines(text, most, indent) if text.strip() else []


def _changes(row: phrases.Data) -> list[str]:
    if not row["files"]:
        return [f"    no changes since {row['since']}"]
    counts = [(f["path"], phrases.line_counts(f["added"], f["removed"])) for f in row["files"]]
    lines = [f"    changed since {row['since']}:", *phrases.columns(counts, "      ")]
    lines += [f"      and {row['more']} more"] if row["more"] else []
    diff = phrases.lines_of(row["diff"]) if row["diff"].strip() else []
    lines += [f"      | {line}" for line in diff[:_DIFF_LINES]]
    cut = len(diff) - _DIFF_LINES
    return [*lines, *([f"      | ({phrases.counted(cut, 'more line')})"] if cut > 0 else [])]


def _remedy(row: phrases.Data) -> str:
    command = f"\n      {row['command']}" if row["command"] else ""
    return f"  [ ] {row['text']}{command}"


def _diagnosis(row: phrases.Data) -> list[str]:
    who = str(row["binding"])
    if row["failure"]:
        return [f"No diagnosis from {who}: {row['failure']}"]
    return [f"Diagnosis by {who} (an opinion):", *_quoted(row["text"], 400, "  | ")]
