"""A fresh clone in which checks run again, and the rows that say what this proves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from idumb.app.attempt import task_checks
from idumb.app.core.run_lookup import Place
from idumb.app.core.services import Checks, Result, Services, fields
from idumb.domain import errors, rerun, wording
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.proof.evidence import Evidence
from idumb.domain.rerun import Check

if TYPE_CHECKING:
    from idumb.git.checkouts.checkout import Checkout

Row = dict[str, Any]


class Proof(Struct):
    """One clone with the checks that ran in it. A command that several tasks share runs once."""

    services: Services
    contract: Contract
    tree: str
    checks: Checks
    notes: list[str]
    ran: dict[tuple[str, bool], Evidence] = field(default_factory=dict)


class Rerun(Struct, frozen=True):
    """The results of a rerun: rows of tasks, rows of the phase, and notes for a person."""

    tasks: Sequence[Row]
    criteria: Sequence[Row] = ()
    notes: Sequence[str] = ()

    @property
    def checks(self) -> tuple[Row, ...]:
        return (*self.criteria, *(check for row in self.tasks for check in row["checks"]))


@contextmanager
def cloned(services: Services, contract: Contract, place: Place, left: frozenset[str]) -> Iterator[Proof | None]:
    """Open a fresh clone that shows what a place has; None if that no longer exists."""
    head = place.commit or place.head
    with services.interrupts.armed(), services.open_fresh_clone(head, left) as (clone, checks):
        tree = _tree(services, clone, place)
        if tree is None:
            yield None
            return
        clone.show(tree, head)
        provided = f"{', '.join(clone.provided)} is copied from your working tree (checkout.provide)"
        notes = [*([f"{provided}; another clone does not have it"] if clone.provided else []), *clone.missing]
        yield Proof(services, contract, tree, checks.given(contract.variables), notes)


def _tree(services: Services, clone: Checkout, place: Place) -> str | None:
    """Return the tree to prove: that of the commit, or what a commit of a checkpoint's paths would hold; or None."""
    if place.commit is not None:
        return services.history.tree_of(place.commit)
    try:
        kept = services.trees.tree_at(place.snapshot or "")
    except (Refusal, KeyError):
        return None
    return clone.committed(place.head, kept, place.paths)


def run_again(proof: Proof, checks: Sequence[Check], recorded: dict[str, Mapping[str, Any]]) -> list[Row]:
    """Run checks of the plan, and compare each with its recorded evidence, which is taken out of `recorded`."""
    return [_rerun_check(proof, check, recorded.pop(check.subject, None)) for check in checks]


def _rerun_check(proof: Proof, check: Check, recorded: Mapping[str, Any] | None) -> Row:
    was = None if recorded is None else str(recorded["result"])
    now = _now(proof, check)
    result, why = rerun.compare(was, now), ""
    same = (check.command, proof.services.redactor.redact(check.command or ""))  # the log keeps no secret
    if recorded is not None and check.command is not None and recorded.get("command") not in same:
        why = f"the evidence was recorded for another command: {recorded['command']}"
        result = rerun.CHANGED_COMMAND if now.passed else rerun.NOW_FAILS
    return {
        **fields(check, "subject", "text", "command"),
        "recorded": was,
        "result": result,
        "now": now.result,
        "exit_code": now.exit_code,
        "output": "" if now.passed else now.output,
        "seconds": round(now.seconds, 3),
        "why": why,
    }


def _now(proof: Proof, check: Check) -> Evidence:
    if check.command is None:
        return task_checks.run(proof.checks, check, proof.tree)
    key = (check.command, "invariant" in check.subject.split())  # an invariant also holds if there is no test yet
    if key not in proof.ran:
        proof.ran[key] = task_checks.run(proof.checks, check, proof.tree)
        proof.checks.end_processes()
        # the clone itself names what it borrows
        proof.notes += [reason for reason in proof.ran[key].weaker if not reason.endswith("(checkout.provide)")]
    return proof.ran[key]


def not_rerun(subject: str, text: str, why: str, recorded: str | None = None, command: str | None = None) -> Row:
    """Return the row of evidence that no check of the plan repeats."""
    shown: Row = {"subject": subject, "text": text, "command": command, "recorded": recorded}
    return {**shown, "now": None, "exit_code": None, "output": "", "seconds": 0.0, "result": rerun.NOT_RUN, "why": why}


def row(id: str, status: str, place: Place | None, result: str, why: str = "", checks: Sequence[Row] = ()) -> Row:
    return {"id": id, "status": status, "result": result, **_named(place), "why": why, "checks": list(checks)}


def _named(place: Place | None) -> Row:
    named = place or Place(None)
    return {"commit": named.commit, "checkpoint": named.snapshot}


def unproven(rows: Sequence[Row]) -> list[str]:
    return [row["id"] for row in rows if row["result"] in (rerun.MISMATCH, rerun.NO_COMMIT)]


def answer(phase: str, run: str | None, place: Place | None, again: Rerun, ways: Sequence[Action | str]) -> Result:
    """Return the answer of `prove`; `ways` are the commands that help if something is not proven."""
    failing = (row["subject"] for row in again.criteria if row["result"] in rerun.FAILS)
    wrong = [*unproven(again.tasks), *failing]
    proven = rerun.result_of(again.checks) == rerun.PROVEN and not wrong
    data = {"phase": phase, "run": run, **_named(place), "proven": proven}
    data |= {"tasks": list(again.tasks), "criteria": list(again.criteria)}
    warnings = tuple(dict.fromkeys(again.notes))
    if proven:
        return Result(data, warnings=warnings)
    words = "Nothing is proven: the plan has no check that can be rerun."
    if wrong:
        words = f"{wording.listed(wrong)} {'is' if len(wrong) == 1 else 'are'} not proven in a fresh clone."
    failure = ("prove.mismatch", words, ways[0])
    return Result({**data, "next": list(ways)}, errors.EXIT_FAILED, warnings, failure, {"phase": phase})
