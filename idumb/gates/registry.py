"""The gates, in the order in which they are asked: one row a gate, with its stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from idumb.app.ports.checks import Gate

STEP = "step"
STAGES = ("planning", "pre", STEP, "post", "completion")


@dataclass(frozen=True, slots=True)
class Row:
    """`stage` is when the gate is asked. What its failure means is in `idumb.domain.levels`, by its name."""

    name: str
    stage: str
    make: Callable[[], Gate]


def _limits() -> Gate:
    from idumb.gates.limits import LimitsGate

    return LimitsGate()


ROWS: tuple[Row, ...] = (Row("limits", STEP, _limits),)


def build(stage: str = STEP) -> tuple[Gate, ...]:
    """The gates of a stage, in order."""
    return tuple(row.make() for row in ROWS if row.stage == stage)
