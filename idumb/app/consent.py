"""Consent: nothing of a plan runs before a person agreed to exactly this contract and configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from idumb.app import approvals, binding_words, going_on, irreversible, loading, programs
from idumb.app.approvals import Lost
from idumb.app.programs import Move
from idumb.app.services import Services
from idumb.domain import contract as contracts
from idumb.domain import ledger, listing
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import Refusal
from idumb.domain.plan import BUILD, IRREVERSIBLE, STRICT, Task

SHOWN_PATHS = 8
_WHY = (
    "A plan can run commands on this machine. It runs only when you agree to exactly this contract and configuration,"
    " and to these programs."
)


def ensure(
    services: Services,
    contract: Contract,
    *,
    approve: str | None,
    mode: str | None,
    approval: str | None = None,
    rehearsal: bool = False,
    earlier: Collection[str] = (),
    again: str | None = None,
) -> None:
    """Consent that was given before, by `--approve`, or at the terminal now; Refusal otherwise.

    `earlier` are versions of the contract that the run had before a person's answers and amendments: to name one of
    them gives no new consent, and is no contradiction where the present version has it.
    A strict plan, and any plan in strict mode, needs an approval that holds; `approval` is a file with a signed one.
    `again` is the command to which `--approve HASH` is added; None is that of the contract's phase.
    A `rehearsal` starts no irreversible task, so it needs no word about them.
    """
    if approval is not None:
        approvals.take_in(services, contract, approval)
    if STRICT in (contract.mode, mode):
        approvals.require(services, contract)
    else:
        present = approve in earlier and approvals.given(services, contract)
        asked = _Asked(again or f"idumb execute-phase {contract.phase}{' --dry-run' * rehearsal}", rehearsal)
        _ensure_guided(services, contract, None if present else approve, asked)
    if not rehearsal:
        irreversible.require_all(services, contract, asks=STRICT not in (contract.mode, mode))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the consent is for: `again` is the command that runs under it, in a throw-away copy where `rehearsal`."""

    again: str
    rehearsal: bool = False

    def what(self, subject: str) -> str:
        return f"Dry run: rehearse {subject} in a throw-away copy" if self.rehearsal else f"Run {subject}"

    @property
    def why(self) -> str:
        if not self.rehearsal:
            return _WHY
        return f"{_WHY} A dry run runs the same commands, in a copy of the work tree that is removed afterwards."

    def yes(self, contract: Contract) -> tuple[str, str]:
        """The choice that agrees, and its consequence."""
        if self.rehearsal:
            return "run the dry run", "the commands run in a copy; no file of yours changes, and no consent is kept"
        return "run it", f"consent is recorded for contract {contract.hash[:16]}"


def _ensure_guided(services: Services, contract: Contract, approve: str | None, asked: _Asked) -> None:
    """Plain consent. Where it was to other programs, it must be given anew, and by a hash that tells them too."""
    moved = programs.moves(services, contract)
    whole = programs.whole_hash(services, contract)
    if approve is not None and approve not in {contract.hash, whole}:
        raise Refusal(
            "consent.other-contract",
            f"--approve names {approve[:16]}, but phase {contract.phase} is {contract.hash[:16]} now:"
            " its plan or the configuration changed.",
            hint=f"idumb check-plan {contract.phase} --json shows the present data.contract_hash",
            details={"phase": contract.phase, "expected": whole if moved else contract.hash},
        )
    if services.consent.given(contract.hash) and not moved:
        return
    if (approve is None or moved) and approvals.newest_live(services, contract) is not None:
        return
    how = "--approve"
    # Looked at before the question, so that the word is to what was shown, whatever is put in its place meanwhile.
    shown = programs.bound(services, contract)
    if approve is None or (moved and approve != whole):
        gone = None if services.consent.given(contract.hash) else approvals.lost(services, contract)
        question = decision(services, contract, asked, moved, gone)
        answer = services.asker.ask(question) if approve is None else None
        if answer is None or answer.choice != "run":
            raise _refusal(contract, question, moved, gone)
        how = "terminal"
    services.consent.record(contract.hash, phase=contract.phase, how=how, at=services.clock.now(), agreed=shown)


def _refusal(contract: Contract, question: Decision, moved: Sequence[Move], gone: Lost | None) -> Refusal:
    code, words = "consent.missing", approvals.missing(contract, gone)
    differs = dict(gone.details) if gone is not None else {}
    if moved:
        code = "consent.other-program"
        words = f"Consent to phase {contract.phase} was to other programs: {'; '.join(move.words for move in moved)}."
        differs = {"changed": [dataclasses.asdict(move) for move in moved]}
    return Refusal(
        code,
        words,
        hint=question.choices[0].command,
        details={
            **differs,
            "what": question.what,
            "why": question.why,
            "evidence": list(question.evidence),
            "choices": going_on.rows(question.choices),
            "contract_hash": contract.hash,
            "decision": question.id,
        },
    )


def decision(
    services: Services, contract: Contract, asked: _Asked, moved: Sequence[Move] = (), gone: Lost | None = None
) -> Decision:
    """The question; `moved` and `gone` say what differs from what was agreed to, or approved, before."""
    before = () if gone is None else (gone.words, *gone.evidence)
    known = programs.whole_hash(services, contract) if moved else contract.hash
    subject = f"phase {contract.phase}: {len(contract.tasks)} tasks of {', '.join(p.path for p in contract.plans)}"
    text, consequence = asked.yes(contract)
    return Decision(
        id=f"consent.{known[:12]}",
        kind="consent",
        what=asked.what(subject),
        why=asked.why,
        evidence=(*(move.words for move in moved), *before, *lines(services, contract)),
        choices=(
            Choice(
                "run",
                text,
                consequence,
                f"{asked.again} --approve {known}",
            ),
            Choice("no", "do not run it", "nothing happens"),
        ),
    )


def lines(services: Services, contract: Contract) -> Iterable[str]:
    """What will run and what will be written, one line each."""
    yield from plan_lines(contract)
    for name, models in approvals.models(services.settings, contract).items():
        yield f"agent {name}: {binding_words.line(services, name, models=models)}"
    for path in contracts.consent_paths(contract):
        yield f"writes {path}, which is protected unless declared"
    yield from warning_lines(services, contract)


def warning_lines(services: Services, contract: Contract, most: int = SHOWN_PATHS) -> Iterable[str]:
    """The warnings of `check-plan`, one line each; of many the first."""
    found = loading.warnings(services, contract)
    yield from (f"warning {one.place}: {one.message}" for one in found[:most])
    if len(found) > most:
        yield f"{len(found) - most} more warnings: idumb check-plan {contract.phase}"


def plan_lines(contract: Contract, shown_paths: int = SHOWN_PATHS) -> Iterable[str]:
    """What the tasks and the plans themselves run and write."""
    for plan in contract.plans:
        for task in plan.tasks:
            yield from _task_lines(task, shown_paths)
    for plan in contract.plans:
        yield from (f"after each task: {invariant.check}" for invariant in plan.invariants)
        yield from (f"at the end: {c.command}" for c in plan.success_criteria if c.command)


def _task_lines(task: Task, shown_paths: int) -> Iterable[str]:
    yield f"{task.id} {task.title}"
    written = ledger.written_paths(task.files)
    if written:
        yield f"  writes {listing.listed(written, shown_paths)}"
    for command in approvals.commands(task):
        yield f"  runs   {command}"
    for command in task.rollback.commands:
        yield f"  runs   {command}, when it is rolled back"
    if task.rollback.kind == IRREVERSIBLE:
        yield f"  cannot be taken back: {task.rollback.reason}"
    if task.kind != BUILD:
        yield f"  asks   a person ({task.kind})"
