"""Evidence: the record of one check that idumb ran itself, on bytes that no builder can change any more.

Ledger and evidence decide the verdict of an attempt, and what the next attempt learns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from idumb.domain import outcome, wording
from idumb.domain.proof import gate_table, ledger
from idumb.domain.proof.judgement import ValidatorEvidence
from idumb.domain.proof.ledger import Ledger

PASSED = "passed"
FAILED = "failed"
ERRORED = "errored"
TIMED_OUT = "timed_out"
WAITING = "waiting"
OPINION = "opinion"
UNPROVEN = "unproven"
TOLERATED = "tolerated"
NOT_RUN = "not run"
"""How a control begins that was not run; the reason follows."""
BROKEN = frozenset({FAILED, ERRORED, TIMED_OUT})
_OF_GATES = {FAILED: "failed", ERRORED: "could not run", TIMED_OUT: "timed out"}

GATE = "gate "
"""How the subject of a gate's evidence begins; its name follows."""

SECRET = "secret"
"""The subject of a person's answer about a known secret in the work, which proves nothing about the work."""


class Evidence(Struct, frozen=True):
    """One check.

    - `subject`: what it proves (`AC-1`, `verify`, `invariant INV-1`, `postcondition 1`).
    - `argv`: what ran (empty for a person's answer). `tree`: the frozen tree it ran on.
    - `exit_code`: None if no process ended by itself; `cause` then says why, as in `idumb.domain.agent.AgentResult`.
    - `output`: head and tail, bounded and redacted. `output_sha256`: of the whole output.
    - `level`: a failure of level 0 is reported and blocks nothing.
    - `shown`: the evidence that a validator gives for its PASS.
    - `weaker`: why it proves less than a check that sees only the commit, in words.
    - `locations`: the user's toolchains that the check saw. `changed_programs`: paths that decide which
      program or package a check runs, and that changed during the run.
    - `changed`: committed files that the check changed, and idumb restored. If it judges one of them, it has failed.
    - `may_need`: what the check may have failed for, other than the work; it is not recorded.
    - `violation`: which task broke what held before; "" if it holds.
    - `control`: the result of the same check before the work, or NOT_RUN with the reason; "" if it has no control.
    - `sandbox`: what limited it, or why nothing did; "" if no sandbox was configured.
    """

    subject: str
    text: str
    result: str
    command: str | None = None
    argv: tuple[str, ...] = ()
    exit_code: int | None = None
    output: str = ""
    output_sha256: str | None = None
    truncated: bool = False
    tree: str | None = None
    seconds: float = 0.0
    cause: str | None = None
    level: int = 1
    shown: tuple[ValidatorEvidence, ...] = ()
    weaker: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    changed_programs: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    control: str = ""
    may_need: str = ""
    violation: str = ""
    sandbox: str = ""

    @property
    def passed(self) -> bool:
        return self.result == PASSED

    @property
    def words(self) -> str:
        """Return subject and result in words."""
        if self.changed and self.exit_code == 0 and not self.passed:
            return f"{self.subject} changed {wording.listed(self.changed)}, which it should judge"
        if self.violation:
            return f"{self.subject} {self.result}: {self.violation}"
        if self.subject.startswith(GATE) and self.result in _OF_GATES and self.output:
            first, _, others = self.output.partition("\n")
            return f"{self.subject} {_OF_GATES[self.result]}: {first}{' …' if others else ''}"
        return f"{self.subject} {self.result}" + (f" (it may need {self.may_need})" if self.may_need else "")

    def as_dict(self) -> dict[str, Any]:
        """Return the fields of `evidence.recorded`."""
        row = asdict(self) | {"argv": list(self.argv), "seconds": round(self.seconds, 3)}
        row |= {name: list(row[name]) for name in _LISTS} | {"shown": [item.as_dict() for item in self.shown]}
        empty = {name for name in (*_LISTS, "shown", "control", "violation", "sandbox") if not row[name]}
        omitted = {*empty, "may_need", *(["level"] if self.level == gate_table.ADVISORY else [])}
        return {name: value for name, value in row.items() if name not in omitted}


_LISTS = ("weaker", "locations", "changed_programs", "changed")


def standing(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the recorded rows of an attempt that no later one replaces: an answer, or the check on another tree."""
    kept: dict[tuple[str, str | None], list[Mapping[str, Any]]] = {}
    for row in rows:
        same = kept.setdefault((row["subject"], row["command"]), [])
        same[:] = [*(each for each in same if each["result"] != WAITING and each["tree"] == row["tree"]), row]
    return [row for same in kept.values() for row in same]


def verdict(compared: Ledger, proofs: Sequence[Evidence]) -> tuple[str, str]:
    """Return PASS, PARTIAL, FAIL or waiting, and why. PASS needs a ledger that holds and one real proof."""
    wrong = [line for line in compared.lines if line.status != ledger.DECLARED]
    words = [_ledger_words(line) for line in wrong] + [s.words for s in compared.symbols if not s.holds]
    if words:
        return outcome.FAIL, wording.listed(words, between="; ")
    proofs = [e for e in proofs if e.level > gate_table.INFORMATIONAL]
    failed = [e for e in proofs if e.result in BROKEN]
    tolerated = [e for e in proofs if e.result == TOLERATED]
    passed = [e for e in proofs if e.passed and not _proves_nothing(e.subject)] + tolerated
    if failed:
        names = wording.listed(e.words for e in failed)
        return (outcome.PARTIAL if passed else outcome.FAIL), names
    if any(e.result == WAITING for e in proofs):
        return WAITING, "waits for a person"
    if not passed:
        return outcome.FAIL, "nothing proves this task"
    return outcome.PASS, wording.listed((e.text for e in tolerated), between="; ") if tolerated else ""


def proves(proofs: Iterable[Evidence]) -> bool:
    """Return whether some of this evidence proves the work."""
    real = (e for e in proofs if e.level > gate_table.INFORMATIONAL and not _proves_nothing(e.subject))
    return any(e.passed or e.result == TOLERATED for e in real)


def _proves_nothing(subject: str) -> bool:
    """Return whether evidence is only about the change itself or its secrets, or about the state before it."""
    return subject.startswith(("precondition", "limit ", GATE)) or subject.endswith(" before") or subject == SECRET


def _ledger_words(line: ledger.Line) -> str:
    if line.status == ledger.MISSING:
        return f"{line.path} was declared ({line.declared}) and did not change" + (
            f", but {line.rule}" * bool(line.rule)
        )
    if line.status == ledger.MISMATCH:
        return f"{line.path} was {line.actual}, declared {line.declared}"
    if line.status == ledger.PROTECTED:
        return f"{line.path} is protected by {line.rule} and was {line.actual}"
    return f"{line.path} was {line.actual} and is not declared"


def feedback(reason: str, compared: Ledger, proofs: Sequence[Evidence]) -> str:
    """Return what the next attempt learns: the reason, the ledger's complaints, and the end of each failed check."""
    lines = [reason] if reason else []
    lines += [_ledger_words(line) for line in compared.lines if line.status != ledger.DECLARED]
    lines += [line.words for line in compared.symbols if not line.holds]
    for e in proofs:
        if e.result in BROKEN:
            exit_words = "" if e.exit_code is None else f", exit {e.exit_code}"
            lines.append(f"{e.subject} ({e.text}): {e.result}{exit_words}")
            if e.command:
                lines.append(f"$ {e.command}")
            if e.output:
                lines.append(e.output[-2000:].rstrip())
    return "\n".join(dict.fromkeys(lines))
