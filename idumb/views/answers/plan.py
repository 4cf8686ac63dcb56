"""Output of `plan`, `plan-phase`, `research`, `discuss`, `check-plan` and `graph`."""

from __future__ import annotations

from collections.abc import Iterator

from idumb.views import forms, phrases

_PROMPT = """
{prompt:?Nothing was run or written.}
{prompt:ruled}
""".strip()
FORMS = {
    "plan_phase": f"""
{_PROMPT}
{{findings:findings}}
objections* plan-checker: {{}}
{{written:?Wrote}} {{path}}: {{tasks:#task}}[ in {{rounds:+round}}].
The last draft is kept in {{kept}}
""",
    "new": """
{findings:findings}
{written:?Wrote} {tasks:5} to {path}.
""",
    "research": f"""
{_PROMPT}
{{written:?Wrote}} {{path}}.
else {{prompt:!}}{{path}} is {{standing}}.
The previous file is kept in {{kept}}
""",
    "discuss": """
questions* {answer:!}{id}: {text}
*     {why}
{questions:#question}[, open: {open}]
The questions are in {path}
""",
    "diff": """
{same:?No changes in} phase {phase} since run {since.number}, version {since.version}.
else Changed in phase {phase} since run {since.number}, version {since.version}:
lines*   {}
{same:!}  contract {contract_hash}
""",
    "amend": """
Phase {phase} continues with version {version} of its contract.
what*   {}
completed_work*   {words}
reset*   {} can be retried
  contract {contract_hash}
""",
}
_IMPORTED = """
{diff:block}
changes* {}
{written:?Wrote} {path}: {tasks:#task} of {kind}.
else {changes:?}{path} was not changed.
else {path} is current: its source has not changed.
unread*40 Not read: {path}:{line}: {text}
Marked as done in the source, not witnessed by idumb: {done:12}
Add files to: {without files:12}
Add a check to: {without a check:12}
Look over x-inferred of: {inferred:12}
"""
_CHECKED = f"""
{{findings:findings}}
{{findings:?}}
Phase {{phase}}: [{{tasks:#task}} in ]{{plans:#plan}}, [mode {{mode}}, ][{{errors:+error}}][{{errors:!no errors}}]\
[, {{warnings:+warning}}].
{phrases.UNCOMMITTED}
"""
_SELF_CHECK = """
  self-check: {answers:counts}
refused*     no: {question}[ {evidence:1}]
"""
_HASHES = """
open_questions*     not judged, {id}: {question}
hashes*   sha256 {sha}  {path}[ (version {version})]
  phase    {phase_hash}  (sha256sum over these lines)
  next free task id: {next_free_id}
"""
_VALID = """
  contract {contract_hash}
limits*   a {name} may use {value}
  approval: {approval.standing}[ ({approval.changed} changed)], by {approval.by} at {approval.validated_at}\
[, until {approval.expires}]
"""


def import_plan(data: phrases.Data) -> phrases.Lines:
    """Return what was imported, what is inferred, and what a person must add."""
    rows = data["tasks"]
    ids = {name: [row["id"] for row in rows if row[name]] for name in ("done", "inferred")}
    ids |= {f"without {word}": [row["id"] for row in rows if word in row["missing"]] for word in ("files", "a check")}
    return forms.fill(_IMPORTED, {**data, **ids})


def check_plan(data: phrases.Data) -> phrases.Lines:
    """Return findings and a summary; for a valid plan also its contract hash and the next command."""
    is_live = (data.get("approval") or {}).get("standing") == "live"
    valid = _valid({**data, "approval": None if is_live else data.get("approval")})
    return [*forms.fill(_CHECKED, data), *valid, *([*_next(data)][:1] if valid else [])]


def verbose(data: phrases.Data) -> phrases.Lines:
    """Return the same with hashes, self-check, next free id, and commands for use without a terminal."""
    given = [each["answer"] for each in data.get("self_check", ())]
    answers = {word: given.count(word) for word in ("yes", "no", "not judged")}
    refused = [each for each in data.get("self_check", ()) if each["answer"] == "no"]
    valid = _valid(data)
    above = [*forms.fill(_CHECKED, data), *forms.fill(_SELF_CHECK, {"answers": answers, "refused": refused})]
    if not valid:
        return above
    versions = data.get("plan_versions", {})
    hashes = [{"sha": sha, "path": path, "version": versions.get(path)} for path, sha in data["plan_hashes"].items()]
    return [*above, *forms.fill(_HASHES, {**data, "hashes": hashes}), *valid, *_next(data)]


def _valid(data: phrases.Data) -> list[str]:
    return [] if data["errors"] or "contract_hash" not in data else forms.fill(_VALID, data)


def _next(data: phrases.Data) -> Iterator[str]:
    """Yield the next command, then that for use without a terminal."""
    phase, is_live = data["phase"], (data.get("approval") or {}).get("standing") == "live"
    if data.get("verified"):
        yield "This contract is verified."
        return
    command, flag = data.get("run_command") or f"idumb execute-phase {phase}", f"--approve {data['consent_hash']}"
    if data["mode"] == "strict" and not is_live:
        question_ids = ",".join(question["id"] for question in data.get("open_questions", ()))
        answers = f" --answer {question_ids}=yes" if question_ids else ""
        command, flag = f"idumb approve {phase}", f"--hash {data['contract_hash']}{answers}"
    elif is_live or data.get("consent"):
        yield f"Next: {command} ({'this contract is approved' if is_live else 'you consented to this contract'})"
        return
    yield f"Next: {command} (it shows what will run, and asks)"
    yield f"  without a terminal: {command} {flag}"


def graph(data: phrases.Data) -> phrases.Lines:
    """Return the graph as text, Mermaid or SVG."""
    return str(data["text"])
