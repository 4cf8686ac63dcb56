"""The gates of stages `step` and `post`, in the order of the table. A gate is loaded only if it concerns the change."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import NamedTuple

from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import gate_table
from idumb.domain.proof.gate import NEVER, Deadline, Inputs, Judged
from idumb.domain.proof.symbols import Definitions
from idumb.gates import bounded

Judge = Callable[[Inputs], Judged | None]


class StepGate(NamedTuple):
    """`name` is the setting of its level. `applies` is quick: it reads no file.

    `function` of `module`, below `idumb.gates`, judges.
    """

    name: str
    applies: Callable[[Inputs], bool]
    module: str
    function: str = "judge"

    def load(self) -> Judge:
        judge: Judge = getattr(import_module(f"idumb.gates.{self.module}"), self.function)
        return judge


class StepGates:
    """The gates of stages `step` and `post`. They judge frozen bytes and never touch the workspace.

    `now` returns seconds of a clock that only moves forward.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now

    def judge(self, inputs: Inputs) -> list[tuple[str, Judged]]:
        """Return each gate that concerns the change, by the name of its setting, with its result."""
        judged = [(gate.name, self._judged(gate, inputs)) for gate in GATES if gate.applies(inputs)]
        for name in inputs.asked:
            if name not in gate_table.KNOWN and _runs(name, inputs):
                from idumb.gates.project import own

                judged.append((name, own.judge(name, inputs)))
        return [(name, result) for name, result in judged if result is not None]

    def _judged(self, gate: StepGate, inputs: Inputs) -> Judged | None:
        limits_commands = gate.name in gate_table.WITH_COMMANDS
        deadline = NEVER if limits_commands else Deadline.after(inputs.seconds(gate.name), self._now)
        return bounded.judge(gate.name, gate.load, inputs, deadline)

    def can_read(self, path: str) -> bool:
        """Return whether the symbols of a file can be found, by its name."""
        return path.endswith((".py", ".pyi"))

    def definitions(self, path: str, data: bytes) -> Definitions | None:
        """Return what a file defines, members as `Class.member`; None if that cannot be determined."""
        from idumb.gates import python_source

        return python_source.definitions(path, data)


def _runs(name: str, inputs: Inputs) -> bool:
    return name in inputs.asked and inputs.run is not None and bool(inputs.changes)


def _has_limits(inputs: Inputs) -> bool:
    return (inputs.task.limits or inputs.plan.limits) is not None


_PARSED = (".py", ".pyi", ".json", ".ipynb", ".yaml", ".yml", ".toml")


def _has_parsed_files(inputs: Inputs) -> bool:
    return any(change.new is not None and change.path.lower().endswith(_PARSED) for change in inputs.changes)


def _has_non_goals(inputs: Inputs) -> bool:
    return any(goal.paths or goal.symbols for goal in inputs.plan.non_goals)


def _asked_or_strict(name: str, inputs: Inputs) -> bool:
    return name in inputs.asked or inputs.plan.mode == STRICT


GATES: tuple[StepGate, ...] = (
    StepGate(gate_table.NON_GOALS, _has_non_goals, "non_goals"),
    StepGate(gate_table.SYNTAX, _has_parsed_files, "syntax"),
    StepGate(gate_table.TYPES, partial(_runs, gate_table.TYPES), "project.checkers", "types"),
    StepGate(gate_table.LINT, partial(_runs, gate_table.LINT), "project.checkers", "lint"),
    StepGate(gate_table.SIZE, _has_limits, "size"),
    StepGate(gate_table.SPECIFICATION, partial(_asked_or_strict, gate_table.SPECIFICATION), "specification"),
    StepGate(gate_table.DESIGN, partial(_asked_or_strict, gate_table.DESIGN), "design"),
    StepGate(gate_table.CHANGE_CLASS, lambda inputs: inputs.task.change is not None, "change_class"),
)
