"""Output of `plan`, `plan-phase`, `research`, `discuss`, `check-plan` and `graph`."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import wording
from idumb.views import markup, phrases, quantities

_RULE = "-" * 72


def plan_phase(data: phrases.Data) -> str:
    """Return findings and objections to the last draft, and the path of the plan or the draft."""
    if data.get("prompt"):
        return _prompt(data)
    lines = [line for finding in data["findings"] for line in phrases.finding(finding)]
    lines += [f"plan-checker: {markup.one_line(text)}" for text in data["objections"]]
    lines += [""] if lines else []
    rounds = f" in {quantities.counted(data['rounds'], 'round')}" if data["rounds"] else ""
    if data["written"]:
        lines.append(f"Wrote {markup.one_line(data['path'])}: {phrases.tasks(data['tasks'])}{rounds}.")
    if data["kept"]:
        lines.append(f"The last draft is kept in {markup.one_line(data['kept'])}")
    output = "\n".join([*lines, *phrases.commands(data)]).rstrip("\n")
    return f"{output}\n" if output else ""


def new_plan(data: phrases.Data) -> str:
    """Return the findings, and the written plan with its new tasks."""
    lines = [line for finding in data["findings"] for line in phrases.finding(finding)]
    if data["written"]:
        lines.append(f"Wrote {wording.listed(data['tasks'])} to {markup.one_line(data['path'])}.")
    return "".join(f"{line}\n" for line in (*lines, *phrases.commands(data)))


def import_plan(data: phrases.Data) -> str:
    """Return what was imported, what is inferred, and what a person must add."""
    path = markup.one_line(data["path"])
    rows = data["tasks"]
    lines = phrases.visible_lines(data["diff"]) if data["diff"] else []
    lines += map(markup.one_line, data["changes"])
    if not data["written"]:
        lines.append(
            f"{path} was not changed." if data["changes"] else f"{path} is current: its source has not changed."
        )
    elif data["changes"]:
        lines.append(f"Wrote {path}.")
    else:
        lines.append(f"Wrote {path}: {phrases.tasks(len(rows))} of {markup.one_line(data['kind'])}.")
    for row in data["unread"][:_MOST_UNREAD]:
        lines.append(f"Not read: {markup.one_line(row['path'])}:{row['line']}: {markup.one_line(row['text'])}")
    more = len(data["unread"]) - _MOST_UNREAD
    lines += [f"Not read: {more} lines more, which --json lists under data.unread"] if more > 0 else []
    done = [row["id"] for row in rows if row["done"]]
    lines += [f"Marked as done in the source, not witnessed by idumb: {wording.listed(done, _MOST)}"] if done else []
    for word in ("files", "a check"):
        ids = [row["id"] for row in rows if word in row["missing"]]
        lines += [f"Add {word} to: {wording.listed(ids, _MOST)}"] if ids else []
    inferred = [row["id"] for row in rows if row["inferred"]]
    lines += [f"Look over x-inferred of: {wording.listed(inferred, _MOST)}"] if inferred else []
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


_MOST, _MOST_UNREAD = 12, 40


def _prompt(data: phrases.Data) -> str:
    """Return the prompt between rules."""
    shown = [_RULE, *phrases.visible_lines(data["prompt"]), _RULE]
    return "\n".join(["Nothing was run or written.", *shown, *phrases.commands(data)]) + "\n"


def research(data: phrases.Data) -> str:
    if data.get("prompt"):
        return _prompt(data)
    path = markup.one_line(data["path"])
    if not data["written"]:
        message = f"{path} is current.\n" if data["standing"] == "current" else ""
        return message + "".join(f"{line}\n" for line in phrases.commands(data) if message)
    kept = [f"The previous file is kept in {markup.one_line(data['kept'])}"] if data["kept"] else []
    return "\n".join([f"Wrote {path}.", *kept, *phrases.commands(data)]) + "\n"


def discuss(data: phrases.Data) -> str:
    """Return the open questions and the number of answered ones."""
    lines = []
    for question in data["questions"]:
        if question["answer"] is None:
            lines.append(f"{question['id']}: {markup.one_line(question['text'])}")
            lines += [f"    {markup.one_line(question['why'])}"] if question["why"] else []
    done = len(data["questions"]) - len(data["open"])
    lines += [f"{done} of {quantities.counted(len(data['questions']), 'question')} answered."]
    lines += [f"The questions are in {markup.one_line(data['path'])}"] if data["path"] else []
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def check_plan(data: phrases.Data) -> str:
    """Return findings and a summary; for a valid plan also its contract hash and the next command."""
    lines = _findings(data)
    if data["errors"] or "contract_hash" not in data:
        return "\n".join(lines) + "\n"
    approval = data.get("approval")
    lines.append(f"  contract {data['contract_hash']}")
    lines += _approval(approval) if approval is not None and approval["standing"] != "live" else []
    return "\n".join([*lines, *_next(data)[: 2 if data.get("verified") else 1]]) + "\n"


def check_plan_in_full(data: phrases.Data) -> str:
    """Return the same with hashes, self-check, next free id, and commands for use without a terminal."""
    lines = [*_findings(data), *_self_check(data.get("self_check", ()))]
    if data["errors"] or "contract_hash" not in data:
        return "\n".join(lines) + "\n"
    lines += [
        f"    not judged, {question['id']}: {question['question']}" for question in data.get("open_questions", ())
    ]
    versions = {path: f" (version {version})" for path, version in data.get("plan_versions", {}).items()}
    hashes = data["plan_hashes"].items()
    lines += [f"  sha256 {sha}  {markup.one_line(path)}{versions.get(path, '')}" for path, sha in hashes]
    lines += [f"  phase    {data['phase_hash']}  (sha256sum over these lines)"] if "phase_hash" in data else []
    lines.append(f"  contract {data['contract_hash']}")
    lines.append(f"  next free task id: {data['next_free_id']}")
    return "\n".join([*lines, *_approval(data.get("approval")), *_next(data)]) + "\n"


def _findings(data: phrases.Data) -> list[str]:
    lines = [line for finding in data["findings"] for line in phrases.finding(finding)]
    lines += [""] if lines else []
    lines.append(f"Phase {markup.one_line(data['phase'])}: {_tasks(data)}{_summed(data)}.")
    return [*lines, *(f"  {line}" for line in phrases.uncommitted(data))]


def _next(data: phrases.Data) -> list[str]:
    """Return the next command, also for use without a terminal."""
    if data.get("verified"):
        return ["This contract is verified.", *phrases.commands(data)]
    command = markup.one_line(data.get("run_command") or f"idumb execute-phase {data['phase']}")
    if (data.get("approval") or {}).get("standing") == "live":
        return [f"Next: {command} (this contract is approved)"]
    if data["mode"] == "strict":
        question_ids = ",".join(question["id"] for question in data.get("open_questions", ()))
        answers = f" --answer {question_ids}=yes" if question_ids else ""
        phase = markup.one_line(data["phase"])
        return [
            f"Next: idumb approve {phase} (it shows what will run, and asks)",
            f"  without a terminal: idumb approve {phase} --hash {data['contract_hash']}{markup.one_line(answers)}",
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
    counted = {word: sum(1 for answer in answers if answer["answer"] == word) for word in ("yes", "no", "not judged")}
    lines = [f"  self-check: {phrases.counts(counted, ('yes', 'no', 'not judged'))}"]
    for answer in answers:
        if answer["answer"] == "no":
            evidence = wording.listed(map(markup.one_line, answer["evidence"]), _SHOWN)
            lines.append(f"    no: {answer['question']} {evidence}")
    return lines


_SHOWN = 1


def _approval(approval: phrases.Data | None) -> list[str]:
    if approval is None:
        return []
    changed = f" ({', '.join(approval['changed'])} changed)" if approval["changed"] else ""
    until = f", until {approval['expires']}" if approval["expires"] else ""
    by = f"by {markup.one_line(approval['by'])} at {approval['validated_at']}{until}"
    return [f"  approval: {approval['standing']}{changed}, {by}"]


def _tasks(data: phrases.Data) -> str:
    plans = quantities.counted(len(data["plans"]), "plan")
    return f"{phrases.tasks(data['tasks'])} in {plans}, mode {data['mode']}, " if "tasks" in data else f"{plans}, "


def _summed(data: phrases.Data) -> str:
    wrong = quantities.counted(data["errors"], "error") if data["errors"] else "no errors"
    return f"{wrong}, {quantities.counted(data['warnings'], 'warning')}" if data["warnings"] else wrong


def graph(data: phrases.Data) -> str:
    """Return the graph as text, Mermaid or SVG."""
    return str(data["text"])
