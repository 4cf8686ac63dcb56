"""Output of `plan`, `plan-phase`, `research`, `discuss`, `check-plan` and `graph`."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import wording
from idumb.views import phrases


def plan_phase(data: phrases.Data) -> phrases.Lines:
    """Return findings and objections to the last draft, and the path of the plan or the draft."""
    if data.get("prompt"):
        return ["Nothing was run or written.", *phrases.ruled(data["prompt"])]
    lines = phrases.findings(data["findings"])
    lines += [f"plan-checker: {text}" for text in data["objections"]]
    lines += [""] if lines else []
    rounds = f" in {phrases.counted(data['rounds'], 'round')}" if data["rounds"] else ""
    if data["written"]:
        lines.append(f"Wrote {data['path']}: {phrases.tasks(data['tasks'])}{rounds}.")
    if data["kept"]:
        lines.append(f"The last draft is kept in {data['kept']}")
    return lines


def new(data: phrases.Data) -> phrases.Lines:
    """Return the findings, and the written plan with its new tasks."""
    lines = phrases.findings(data["findings"])
    if data["written"]:
        lines.append(f"Wrote {wording.listed(data['tasks'])} to {data['path']}.")
    return lines


def import_plan(data: phrases.Data) -> phrases.Lines:
    """Return what was imported, what is inferred, and what a person must add."""
    path = data["path"]
    rows = data["tasks"]
    lines = phrases.lines_of(data["diff"]) if data["diff"] else []
    lines += data["changes"]
    if not data["written"]:
        lines.append(f"{path} {'was not changed' if data['changes'] else 'is current: its source has not changed'}.")
    else:
        what = "" if data["changes"] else f": {phrases.tasks(len(rows))} of {data['kind']}"
        lines.append(f"Wrote {path}{what}.")
    for row in data["unread"][:_MOST_UNREAD]:
        lines.append(f"Not read: {row['path']}:{row['line']}: {row['text']}")
    more = len(data["unread"]) - _MOST_UNREAD
    lines += [f"Not read: {more} lines more, which --json lists under data.unread"] if more > 0 else []
    done = [row["id"] for row in rows if row["done"]]
    lines += [f"Marked as done in the source, not witnessed by idumb: {wording.listed(done, _MOST)}"] if done else []
    for word in ("files", "a check"):
        ids = [row["id"] for row in rows if word in row["missing"]]
        lines += [f"Add {word} to: {wording.listed(ids, _MOST)}"] if ids else []
    inferred = [row["id"] for row in rows if row["inferred"]]
    lines += [f"Look over x-inferred of: {wording.listed(inferred, _MOST)}"] if inferred else []
    return lines


_MOST, _MOST_UNREAD = 12, 40


def research(data: phrases.Data) -> phrases.Lines:
    if data.get("prompt"):
        return ["Nothing was run or written.", *phrases.ruled(data["prompt"])]
    path = data["path"]
    if not data["written"]:
        return [f"{path} is current."] if data["standing"] == "current" else ""
    kept = [f"The previous file is kept in {data['kept']}"] if data["kept"] else []
    return [f"Wrote {path}.", *kept]


def discuss(data: phrases.Data) -> phrases.Lines:
    """Return the open questions and the number of answered ones."""
    lines = []
    for question in data["questions"]:
        if question["answer"] is None:
            lines.append(f"{question['id']}: {question['text']}")
            lines += [f"    {question['why']}"] if question["why"] else []
    done = len(data["questions"]) - len(data["open"])
    lines += [f"{done} of {phrases.counted(len(data['questions']), 'question')} answered."]
    lines += [f"The questions are in {data['path']}"] if data["path"] else []
    return lines


def check_plan(data: phrases.Data) -> phrases.Lines:
    """Return findings and a summary; for a valid plan also its contract hash and the next command."""
    lines = _findings(data)
    if data["errors"] or "contract_hash" not in data:
        return lines
    approval = data.get("approval") or {}
    doubtful = _approval(approval) if approval.get("standing", "live") != "live" else []
    return [*lines, f"  contract {data['contract_hash']}", *_limits(data), *doubtful, *_next(data)[:1]]


def _limits(data: phrases.Data) -> list[str]:
    return [f"  a {scope} may use {words}" for scope, words in data.get("limits", {}).items()]


def verbose(data: phrases.Data) -> phrases.Lines:
    """Return the same with hashes, self-check, next free id, and commands for use without a terminal."""
    lines = [*_findings(data), *_self_check(data.get("self_check", ()))]
    if data["errors"] or "contract_hash" not in data:
        return lines
    lines += [f"    not judged, {each['id']}: {each['question']}" for each in data.get("open_questions", ())]
    versions = {path: f" (version {version})" for path, version in data.get("plan_versions", {}).items()}
    hashes = data["plan_hashes"].items()
    lines += [f"  sha256 {sha}  {path}{versions.get(path, '')}" for path, sha in hashes]
    lines += [f"  phase    {data['phase_hash']}  (sha256sum over these lines)"] if "phase_hash" in data else []
    lines += [f"  contract {data['contract_hash']}", f"  next free task id: {data['next_free_id']}"]
    return [*lines, *_limits(data), *_approval(data.get("approval")), *_next(data)]


def _findings(data: phrases.Data) -> list[str]:
    lines = phrases.findings(data["findings"])
    lines += [""] if lines else []
    lines.append(f"Phase {data['phase']}: {_tasks(data)}{_summed(data)}.")
    return [*lines, *(f"  {line}" for line in phrases.uncommitted(data))]


def _next(data: phrases.Data) -> list[str]:
    """Return the next command, also for use without a terminal."""
    if data.get("verified"):
        return ["This contract is verified."]
    command = data.get("run_command") or f"idumb execute-phase {data['phase']}"
    if (data.get("approval") or {}).get("standing") == "live":
        return [f"Next: {command} (this contract is approved)"]
    if data["mode"] == "strict":
        question_ids = ",".join(question["id"] for question in data.get("open_questions", ()))
        answers = f" --answer {question_ids}=yes" if question_ids else ""
        phase = data["phase"]
        return [
            f"Next: idumb approve {phase} (it shows what will run, and asks)",
            f"  without a terminal: idumb approve {phase} --hash {data['contract_hash']}{answers}",
        ]
    if data.get("consent"):
        return [f"Next: {command} (you already consented to this contract)"]
    return [
        f"Next: {command} (it shows what will run, and asks)",
        f"  without a terminal: {command} --approve {data['consent_hash']}",
    ]


def _self_check(answers: Sequence[phrases.Data]) -> list[str]:
    """Return the number of self-check answers, and each question answered no."""
    if not answers:
        return []
    given = [answer["answer"] for answer in answers]
    counted = [f"{given.count(word)} {word}" for word in ("yes", "no", "not judged") if word in given]
    lines = [f"  self-check: {', '.join(counted)}"]
    negative = (each for each in answers if each["answer"] == "no")
    return [*lines, *(f"    no: {each['question']} {wording.listed(each['evidence'], 1)}" for each in negative)]


def _approval(approval: phrases.Data | None) -> list[str]:
    if approval is None:
        return []
    changed = f" ({', '.join(approval['changed'])} changed)" if approval["changed"] else ""
    until = f", until {approval['expires']}" if approval["expires"] else ""
    by = f"by {approval['by']} at {approval['validated_at']}{until}"
    return [f"  approval: {approval['standing']}{changed}, {by}"]


def _tasks(data: phrases.Data) -> str:
    plans = phrases.counted(len(data["plans"]), "plan")
    return f"{phrases.tasks(data['tasks'])} in {plans}, mode {data['mode']}, " if "tasks" in data else f"{plans}, "


def _summed(data: phrases.Data) -> str:
    wrong = phrases.counted(data["errors"], "error") if data["errors"] else "no errors"
    return f"{wrong}, {phrases.counted(data['warnings'], 'warning')}" if data["warnings"] else wrong


def diff(data: phrases.Data) -> phrases.Lines:
    since = data["since"]
    subject = f"phase {data['phase']} since {_locked(since)}"
    if data["same"]:
        return [f"No changes in {subject}."]
    lines = (f"  {line}" for line in data["lines"])
    return [f"Changed in {subject}:", *lines, f"  contract {data['contract_hash']}"]


def _locked(since: phrases.Data) -> str:
    version = f", version {since['version']}" if since["version"] > 1 else ""
    return f"run {since['number']}{version}"


def amend(data: phrases.Data) -> phrases.Lines:
    """Return the new contract version, its changes, and the tasks that can be retried."""
    lines = [f"Phase {data['phase']} continues with version {data['version']} of its contract."]
    lines += [f"  {line}" for line in data["what"]]
    lines += [f"  {completed['words']}" for completed in data["completed_work"]]
    lines += [f"  {task} can be retried" for task in data["reset"]]
    lines.append(f"  contract {data['contract_hash']}")
    return lines


def graph(data: phrases.Data) -> phrases.Lines:
    """Return the graph as text, Mermaid or SVG."""
    return str(data["text"])
