"""The gates in the order in which they run, one row each, with their stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from idumb.app.ports.checks import Gate

STEP = "step"
STAGES = ("planning", "pre", STEP, "post", "completion")


@dataclass(frozen=True, slots=True)
class Row:
    """`stage` is when the gate runs. `idumb.domain.levels` says what its failure means, by its name."""

    name: str
    stage: str
    make: Callable[[], Gate]


def _limits() -> Gate:
    from idumb.gates.limits import LimitsGate

    return LimitsGate()


ROWS: tuple[Row, ...] = (Row("limits", STEP, _limits),)


def build(stage: str = STEP) -> tuple[Gate, ...]:
    """Return the gates of a stage, in order."""
    return tuple(row.make() for row in ROWS if row.stage == stage)
