"""Output of `show`: a task, what ran it, what it changed and used, and why it failed."""

from __future__ import annotations

from typing import Any

from idumb.domain import outcome
from idumb.domain.proof.ledger import DECLARED, NOT_JUDGED, RECORDED
from idumb.domain.runs import spending
from idumb.views import forms, phrases

FORMS = {
    "envelope": """
{task} attempt {attempt} of run {run} by {builder}, envelope {digest}
parts*   {name:spoken}: | [{absent:!}{value:named}][{absent:?none}][{value or absent:!unknown}]
* {source:tail}
""",
    "transcript": """
transcripts* {above.id} attempt {above.attempt}, {role}:
* {output:indented}
""",
}
_ATTEMPTS = """
attempts* {attempt:?}
* Attempt {attempt}[ by {by}]: [{outcome:spoken}][{outcome:!not finished}][ in {seconds:duration}]\
[, commit {commit:short}][: {reason}]
*   next: {fix}
*   {freed:?its snapshots were freed: its files cannot be shown or restored}
*   Its files are kept in {keeps}:
* kept*5     {}
* used*   used by the {role}[ ({model})]: {words}
*   sandbox: {result.sandbox}
* evidence*   {words}
* * {below:tail}
* ledger*40   {}
* messages*   its commit: {}
* tool_files*   left by a tool: {}
*   the builder: {said}
* {output:tail}
* {change.files:?    changed since} {change.since}:
* else     no changes since {change.since}
* change.files*       {path} | {:changed}
*       and {change.more:+more file}
* {change.diff:quoted}
""".strip()
_TASK = f"""
{{id}} {{task.title}}: {{status}}
  {{plan}}[:{{line}}], kind {{task.kind}}
  {{reason}}
  depends on:   {{task.depends_on}}
  requirements: {{task.requirements}}
  files:        {{claims}}
criteria*   {{id}}: {{text}} — {{proof}}[ `{{command}}`]
{_ATTEMPTS}
decisions*   asked {{id}}: {{what}}
answers*   {{by}} answered {{decision}}: {{choice}}
{{actions:?To unblock it:}}
actions*   {{}}
choices*   {{command}}
*       {{text}}: {{consequence}}
"""
_DEBUG = f"""
Phase {{phase}}, run {{run}}: {{state}}[: {{reason}}]

{{task.id}} {{task.title}}: {{task.status}}[ ({{kinds}})][: {{task.reason}}]
{_ATTEMPTS}
task.envelope*   attempts {{attempts}}: [a different {{parts}}. ][Unknown whether the same: {{unknown}}]

What you can do:
checklist* - {{text}}
*       {{command}}
{{diagnosis:?}}
No diagnosis from {{diagnosis.binding}}: {{diagnosis.failure}}
else Diagnosis by {{diagnosis.binding}} (an opinion):
{{diagnosis.text:indented}}

"""
_USAGE = """
Run {run} of phase {phase}
calls*   {role}[ ({who})] on {about}[ attempt {attempt}]: {failure or outcome:spoken}[ in {seconds:duration}][, {used}]
else   no agent calls
sums*   {by} {name}: {:spent}
Total: {total:spent}
"""


def show(data: phrases.Data) -> phrases.Lines:
    """Return one task: its declaration, then its attempts, newest last."""
    task, proofs = data["task"], data["proofs"]
    claims = [
        f"{c['verb']} {c['path']}" + (f" to {c['target']}" if c.get("target") else "") for c in task["files"] or ()
    ]
    criteria = [
        {**row, "proof": "keeps" if row.get("keeps") else proofs.get(row["id"], row["proof"])}
        for row in task["acceptance"]
    ]
    attempts = [_attempt(each) for each in data.get("attempts", ())]
    return forms.fill(_TASK, {**data, "claims": claims, "criteria": criteria, "attempts": attempts})


def _attempt(attempt: phrases.Data) -> phrases.Data:
    """Return an attempt with how it ended, what is kept of it, and its checks."""
    is_kept = attempt.get("outcome") == "interrupted" and not attempt.get("freed")
    return {
        **attempt,
        "by": attempt.get("builder") if isinstance(attempt.get("builder"), str) else None,
        "keeps": attempt.get("checkpoint") if is_kept else None,
        "kept": attempt.get("kept") if is_kept else None,
        "used": _used(attempt),
        "ledger": [*map(_change, sorted(attempt.get("ledger") or (), key=lambda line: line["status"] == RECORDED))],
        "evidence": [
            {"words": phrases.evidence(row), "below": row.get("output") if phrases.says_why(row) else None}
            for row in attempt.get("evidence", ())
        ],
    }


def _change(line: phrases.Data) -> str:
    """Return how a path or symbol changed, and whether the plan declared that."""
    where = f" in {line['path']}" if line["path"] else ""
    if line["status"] == NOT_JUDGED and "symbol" in line and not line.get("declared"):
        return f"symbols{where}: not judged, because idumb cannot read the language or the file"
    what = f"symbol {line['symbol']}{where}" if "symbol" in line else line["path"]
    actual = line.get("actual") or ("" if "symbol" in line else "unchanged")
    words = f"{actual} {what}".strip()
    if line["status"] == DECLARED:
        return f"{words}, as declared"
    return f"{line['status']}: {words}, declared {line.get('declared') or 'nothing'}"


def _used(attempt: phrases.Data) -> list[phrases.Data]:
    """Return the usage that agents reported; nothing for builders without usage."""
    reports = {"builder": attempt.get("result"), "validator": attempt.get("validator")}
    if attempt.get("adapter") in {None, *spending.FREE}:
        del reports["builder"]
    return [{**row, "role": role, "words": phrases.usage(row.get("usage"))} for role, row in reports.items() if row]


def plan(data: phrases.Data) -> phrases.Lines:
    return str(data["text"])


def diff(data: phrases.Data) -> phrases.Lines:
    """Return the patch after a line of counts, with control sequences escaped."""
    if not data["files"]:
        return [f"{data['id']} changed nothing."]
    lines = forms.fill("{id}: {files:#file}\nfiles*   {path} | {:changed}\n\n", data)
    return phrases.text_of(lines) + str(data["diff"])


def usage(data: phrases.Data) -> phrases.Lines:
    def shown(row: phrases.Data) -> phrases.Data:
        who = [row[name] for name in ("binding", "model") if row[name]]
        used = "" if row["adapter"] in spending.FREE else phrases.usage(row)
        return {**row, "who": who, "about": row["task"] or "the phase,", "used": used}

    return forms.fill(_USAGE, {**data, "calls": [shown(row) for row in data["calls"]]})


def debug(data: phrases.Data) -> phrases.Lines:
    """Return the task, its changes, checklist and diagnosis, in this order."""
    task, changes = data["task"], {row["attempt"]: row for row in data["task"]["changes"]}
    kinds = [str(task[name]) for name in ("class", "failure", "cause") if task[name]]
    attempts = [{**_attempt(each), **_said(each), "change": changes.get(each["attempt"])} for each in task["attempts"]]
    is_failure = task["status"] == outcome.FAILED or task["failure"]
    return forms.fill(_DEBUG, {**data, "kinds": kinds if is_failure else [], "attempts": attempts})


def _said(attempt: phrases.Data) -> dict[str, Any]:
    """Return what the builder said and printed."""
    result = attempt.get("result") or {}
    message = result.get("message")
    return {"said": None if message == attempt.get("reason") else message, "output": result.get("output")}
