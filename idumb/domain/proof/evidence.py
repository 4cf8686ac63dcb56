"""Evidence: the record of one check that idumb ran itself, on bytes that no builder can change any more."""

from __future__ import annotations

from dataclasses import dataclass

from idumb.domain.proof.validation import ValidatorEvidence

PASSED = "passed"
FAILED = "failed"
ERRORED = "errored"
TIMED_OUT = "timed_out"
WAITING = "waiting"
OPINION = "opinion"
UNPROVEN = "unproven"
TOLERATED = "tolerated"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One check.

    - `subject`: what it proves (`AC-1`, `verify`, `invariant INV-1`, `postcondition 1`).
    - `argv`: what ran (empty for a person's answer). `tree`: the frozen tree it ran on.
    - `exit_code`: None if no process ended by itself; `cause` then says why, as in `idumb.domain.agent.AgentResult`.
    - `output`: head and tail, bounded and redacted. `output_sha256`: of the whole output.
    - `level`: a failure of level 0 is reported and blocks nothing.
    - `shown`: the evidence that a validator gives for its PASS.
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

    @property
    def passed(self) -> bool:
        return self.result == PASSED
