"""What a gate of stage `step` judges, and what it answers: frozen bytes in, evidence out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from idumb.domain.plans.plan import Plan, Task
from idumb.domain.proof import evidence, gate_table
from idumb.domain.proof.evidence import GATE, Evidence
from idumb.domain.proof.ledger import LINK, SUBMODULE, Change, Entry

LineCounts = Mapping[str, tuple[int | None, int | None]]

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Inputs:
    """The change of one attempt.

    `changes` compare the tree before the task with the frozen files. `read` returns the bytes of an entry of either
    tree, never of the folder; None if there are more than the limit. `line_counts` are computed when a gate needs them.
    `proofs` are the results of the checks.
    """

    task: Task
    plan: Plan
    changes: Sequence[Change]
    read: Callable[[Entry, int], bytes | None]
    line_counts: Callable[[], LineCounts]
    proofs: Sequence[Evidence] = ()

    def bytes_of(self, entry: Entry | None, limit: int) -> bytes | None:
        """Return the bytes of a file; None if it does not exist, is a link or submodule, or is too large."""
        if entry is None or entry.mode in (LINK, SUBMODULE):
            return None
        return self.read(entry, limit)


@dataclass(frozen=True, slots=True)
class Violation:
    """`line` counts from 1; 0 if the whole file is meant."""

    path: str
    line: int
    words: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.words}" if place else self.words


def conclude(name: str, violations: Sequence[Violation], judged: str) -> tuple[Evidence, ...]:
    """Return the evidence of a gate; `judged` says what it judged, if nothing is wrong."""
    row = gate_table.of_name(name)
    summary = name if row is None else row.summary
    if not violations:
        return (Evidence(f"{GATE}{name}", summary, evidence.PASSED, output=judged),)
    lines = [str(violation) for violation in violations[:_SHOWN]]
    lines += [f"and {len(violations) - _SHOWN} more"] if len(violations) > _SHOWN else []
    return (Evidence(f"{GATE}{name}", summary, evidence.FAILED, output="\n".join(lines)),)
