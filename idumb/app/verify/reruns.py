"""Runs the checks of a contract again in a fresh clone, and makes the rows that `prove` answers with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Checks, Services
from idumb.domain import errors, rerun, wording
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import Plan
from idumb.domain.proof.evidence import Evidence
from idumb.domain.rerun import Check
from idumb.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from idumb.git.checkouts.checkout import Checkout

PROVEN, MISMATCH, NO_COMMIT, NOTHING_TO_RUN = "proven", "mismatch", "no_commit", "nothing_to_run"

Row = dict[str, Any]


@dataclass(slots=True)
class Proof:
    """One clone with the checks that ran in it. A command that several tasks share runs once.

    `plans` are those of `contract`, by task.
    """

    services: Services
    contract: Contract
    plans: Mapping[str, Plan]
    tree: str
    checks: Checks
    notes: list[str]
    ran: dict[tuple[str, bool], Evidence] = field(default_factory=dict)


def notes(clone: Checkout) -> list[str]:
    """Return what another clone would not have, and what this one lacks."""
    provided = f"{', '.join(clone.provided)} is copied from your working tree (checkout.provide)"
    return [*([f"{provided}; another clone does not have it"] if clone.provided else []), *clone.missing]


def chosen(contract: Contract, task: str) -> str:
    """Return the id of a task that a person named. InputError if the contract has none such."""
    _, id = run_lookup.find_task(task)
    run_lookup.require_task(contract.tasks, id, contract.phase)
    return id


def run(proof: Proof, check: Check, recorded: Mapping[str, Any] | None) -> Row:
    """Run a check of the locked plan, and compare."""
    was = None if recorded is None else str(recorded["result"])
    now = _now(proof, check)
    result, why = rerun.compare(was, now), ""
    same = (check.command, proof.services.redaction.redact(check.command or ""))  # the log keeps no secret
    if recorded is not None and check.command is not None and recorded.get("command") not in same:
        why = f"the evidence was recorded for another command: {recorded['command']}"
        result = rerun.CHANGED_COMMAND if now.passed else rerun.NOW_FAILS
    return {
        "subject": check.subject,
        "text": check.text,
        "command": check.command,
        "recorded": was,
        "result": result,
        "now": now.result,
        "exit_code": now.exit_code,
        "output": "" if now.passed else now.output,
        "seconds": round(now.seconds, 3),
        "why": why,
    }


def _now(proof: Proof, check: Check) -> Evidence:
    limit = float(proof.services.settings.run.check_timeout)
    if check.condition is not None and check.command is None:
        return proof.checks.condition(check.subject, check.condition, timeout=limit, tree=proof.tree)
    command = check.command or ""
    key = (command, "invariant" in check.subject.split())  # an invariant also holds if there is no test yet
    if key not in proof.ran:
        proof.ran[key] = proof.checks.command(check.subject, check.text, command, timeout=limit, tree=proof.tree)
        proof.checks.end_processes()
        # the clone itself names what it borrows
        proof.notes += [reason for reason in proof.ran[key].weaker if not reason.endswith("(checkout.provide)")]
    return proof.ran[key]


def not_run(subject: str, text: str, why: str, recorded: str | None = None, command: str | None = None) -> Row:
    """Return the row of evidence that no check of the plan repeats."""
    shown: Row = {"subject": subject, "text": text, "command": command, "recorded": recorded}
    return {**shown, "now": None, "exit_code": None, "output": "", "seconds": 0.0, "result": rerun.NOT_RUN, "why": why}


def result_of(checks: Sequence[Mapping[str, Any]]) -> str:
    """Return the result of a task: a mismatch if a check fails now, proven if at least one ran."""
    results = {row["result"] for row in checks}
    if rerun.NOW_FAILS in results:
        return MISMATCH
    return PROVEN if results - {rerun.NOT_RUN} else NOTHING_TO_RUN


def unproven(rows: Sequence[Row]) -> list[str]:
    return [row["id"] for row in rows if row["result"] in (MISMATCH, NO_COMMIT)]


def result(
    facts: Row, rows: list[Row], criteria: list[Row], notes: Sequence[str], ways: Sequence[Action | str]
) -> Result:
    """Return the answer of `prove`; `ways` are the commands that help if something is not proven."""
    wrong = [*unproven(rows), *(row["subject"] for row in criteria if row["result"] == rerun.NOW_FAILS)]
    data = {**facts, "proven": not wrong, "tasks": rows, "criteria": criteria}
    warnings = tuple(dict.fromkeys(notes))
    if not wrong:
        return Result(data, warnings=warnings)
    words = f"{wording.listed(wrong)} {'is' if len(wrong) == 1 else 'are'} not proven in a fresh clone."
    failure = ("prove.mismatch", words, ways[0])
    return Result({**data, "next": list(ways)}, errors.EXIT_FAILED, warnings, failure, {"phase": facts["phase"]})
