"""What a gate of stage `step` or `post` judges, what it answers, and in which time: frozen bytes in, violations out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.domain.plans.plan import Plan, Task
from idumb.domain.proof import evidence, gate_table
from idumb.domain.proof.evidence import GATE, Evidence
from idumb.domain.proof.ledger import Change, Entry
from idumb.domain.settings import GateSettings

LineCounts = Mapping[str, tuple[int | None, int | None]]

_SHOWN = 20
_LONGEST_TEXT = 1024 * 1024


class Run(Protocol):
    def __call__(self, gate: str, command: str, *, before: bool) -> Evidence: ...


class Inputs(Struct, frozen=True):
    """The change of one attempt.

    `changes` compare the tree before the task with the frozen files. `read` returns the bytes of a file of either tree,
    never of the folder; None if there is no file, if it is a link or submodule, or if it has more bytes than the limit.
    `line_counts` are computed when a gate needs them. `proofs` are the results of the checks. `asked` are the gates
    that the configuration names, with their settings. `entry` finds a file of the frozen tree by its path, `before` one
    of the tree before the task. `run` runs a command of a gate as checks run, on the frozen files or on the tree before
    the task; it returns None if it cannot show that tree. Without `run`, no gate runs anything of the project's.
    `seconds` is how long a gate without commands may take, by its name in the settings. `strict` is whether the run is.
    """

    task: Task
    plan: Plan
    changes: Sequence[Change]
    read: Callable[[Entry | None, int], bytes | None]
    line_counts: Callable[[], LineCounts]
    proofs: Sequence[Evidence] = ()
    asked: Mapping[str, GateSettings] = field(default_factory=dict)
    entry: Callable[[str], Entry | None] = lambda _: None
    before: Callable[[str], Entry | None] = lambda _: None
    run: Run | None = None
    seconds: Callable[[str], float] = lambda _: math.inf
    strict: bool = False

    def text(self, entry: Entry | None) -> str | None:
        """Return the text of a file, without a byte-order mark; None above 1 MiB, or if it is not UTF-8."""
        data = self.read(entry, _LONGEST_TEXT)
        try:
            return None if data is None else data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None


class Violation(NamedTuple):
    """`line` counts from 1; 0 if the whole file is meant. `path` is "" if no file is."""

    path: str
    line: int
    words: str


class Judged(NamedTuple):
    """What a gate found: violations, or `words` about what it judged. `proofs` is evidence of its own form.

    Without `result`, it passed unless there are violations. Evidence of level 0 keeps that level: it says what the gate
    did not judge.
    """

    violations: Sequence[Violation] = ()
    words: str = ""
    proofs: tuple[Evidence, ...] = ()
    result: str = ""


def evidence_of(name: str, judged: Judged, level: int) -> tuple[Evidence, ...]:
    """Return the evidence of a gate that applied."""
    if judged.proofs:
        return tuple(replace(proof, level=level if proof.level else 0) for proof in judged.proofs)
    summary = row.summary if (row := gate_table.of_name(name)) is not None else name
    result = judged.result or (evidence.FAILED if judged.violations else evidence.PASSED)
    words = lines(judged.violations) if judged.violations else judged.words
    return (Evidence(f"{GATE}{name}", summary, result, output=words, level=level),)


def end_of_output(ran: Evidence) -> str:
    """Return the last words of a command, in a sentence."""
    end = ran.output.strip()[-600:]
    return f"Its output ends with: {end}" if end else "It wrote nothing"


def lines(violations: Sequence[Violation]) -> str:
    """Return the first violations, one per line."""
    shown = [_line(violation) for violation in violations[:_SHOWN]]
    more = len(violations) - _SHOWN
    return "\n".join([*shown, f"and {more} more"] if more > 0 else shown)


def _line(violation: Violation) -> str:
    place = f"{violation.path}:{violation.line}" if violation.line else violation.path
    return f"{place}: {violation.words}" if place else violation.words


class OutOfTimeError(Exception):
    """A gate cannot judge something in its time."""


class Deadline(Struct, frozen=True):
    """`seconds` after it was set, it has passed. `now` returns seconds of a clock that only moves forward.

    What must keep to it asks before each unit of work, whose size it limits: nothing is ever stopped in the middle.
    """

    seconds: float
    ends: float
    now: Callable[[], float]

    @classmethod
    def after(cls, seconds: float, now: Callable[[], float]) -> Deadline:
        return cls(seconds, now() + seconds, now)

    @property
    def passed(self) -> bool:
        return self.now() > self.ends


NEVER = Deadline(float("inf"), float("inf"), lambda: 0.0)
