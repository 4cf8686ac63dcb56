"""The gates of stages `step` and `post`, in the order of the table. A gate is loaded only if it concerns the change.

A built-in gate runs within its time: the deadline is compared before each file that it reads, because what runs in this
process cannot be stopped halfway. Whatever goes wrong inside it is a value: evidence that is no pass.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import NamedTuple, ParamSpec, TypeVar

from msgspec.structs import replace

from idumb.domain.errors import IdumbError
from idumb.domain.proof import evidence, gate_table
from idumb.domain.proof.gate import NEVER, Deadline, Inputs, Judged, OutOfTimeError
from idumb.domain.proof.ledger import Definitions

Judge = Callable[[Inputs], Judged | None]
_Given = ParamSpec("_Given")
_Returned = TypeVar("_Returned")


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
                from idumb.gates import own_gate

                judged.append((name, own_gate.judge(name, inputs)))
        return [(name, result) for name, result in judged if result is not None]

    def _judged(self, gate: StepGate, inputs: Inputs) -> Judged | None:
        limits_commands = gate.name in gate_table.WITH_COMMANDS
        deadline = NEVER if limits_commands else Deadline.after(inputs.seconds(gate.name), self._now)
        return _bounded(gate.name, gate.load, inputs, deadline)

    def can_read(self, path: str) -> bool:
        """Return whether the symbols of a file can be found, by its name."""
        return path.endswith((".py", ".pyi"))

    def definitions(self, path: str, data: bytes) -> Definitions | None:
        """Return what a file defines, members as `Class.member`; None if that cannot be determined."""
        from idumb.gates import python_source

        return python_source.definitions(path, data)


def _bounded(
    name: str, load: Callable[[], Callable[[Inputs], Judged | None]], inputs: Inputs, deadline: Deadline
) -> Judged | None:
    """Return what the gate that `load` returns says, or evidence that it had no time, or has an error at a file.

    Raises only an interruption, or what the repository or a command refused.
    """
    sides = ((change.path, entry) for change in inputs.changes for entry in (change.old, change.new))
    paths: dict[object, str] = {entry: path for path, entry in sides if entry is not None}
    judged = ""

    def timed(function: Callable[_Given, _Returned]) -> Callable[_Given, _Returned]:
        def call(*given: _Given.args, **named: _Given.kwargs) -> _Returned:
            nonlocal judged
            file: object = given[0]
            judged = file if isinstance(file, str) else paths.get(file, judged)
            if deadline.passed:
                words = f"not judged within {deadline.seconds:.0f}s. Split the task, or set `timeout` of the gate"
                raise OutOfTimeError(words)
            return function(*given, **named)

        return call

    try:
        return load()(replace(inputs, read=timed(inputs.read), entry=timed(inputs.entry), before=timed(inputs.before)))
    except OutOfTimeError as expired:
        return Judged(words=f"{judged} was {expired}", result=evidence.TIMED_OUT)
    except IdumbError:
        raise
    except Exception as problem:  # noqa: BLE001 - whatever is wrong in a gate, the work must not be lost to it
        return Judged(words=_words(name, problem, judged), result=evidence.ERRORED)


def _words(name: str, problem: Exception, path: str) -> str:
    """Return what a report about the error must have, and how to continue without the gate."""
    frame = traceback.extract_tb(problem.__traceback__)[-1]
    module = "/".join(frame.filename.split("/")[-2:])
    at = f", when it judged {path}" if path else ""
    return (
        f"an error in the gate, not in the work{at}: {type(problem).__name__}: {problem} ({module}:{frame.lineno})."
        f" Report this line and the file to the authors of idumb. Until it is fixed, `gates: {{{name}: {{level: 0}}}}`"
        " continues without the gate."
    )


def _runs(name: str, inputs: Inputs) -> bool:
    return name in inputs.asked and inputs.run is not None and bool(inputs.changes)


_PARSED = (".py", ".pyi", ".json", ".ipynb", ".yaml", ".yml", ".toml")


def _has_parsed_files(inputs: Inputs) -> bool:
    return any(change.new is not None and change.path.lower().endswith(_PARSED) for change in inputs.changes)


def _has_non_goals(inputs: Inputs) -> bool:
    return any(goal.paths or goal.symbols for goal in inputs.plan.non_goals)


def _asked_or_strict(name: str, inputs: Inputs) -> bool:
    return name in inputs.asked or inputs.strict


GATES: tuple[StepGate, ...] = (
    StepGate(gate_table.NON_GOALS, _has_non_goals, "limits", "non_goals"),
    StepGate(gate_table.SYNTAX, _has_parsed_files, "syntax"),
    StepGate(gate_table.TYPES, partial(_runs, gate_table.TYPES), "checkers", "types"),
    StepGate(gate_table.LINT, partial(_runs, gate_table.LINT), "checkers", "lint"),
    StepGate(gate_table.SIZE, lambda inputs: (inputs.task.limits or inputs.plan.limits) is not None, "limits", "size"),
    StepGate(gate_table.SPECIFICATION, partial(_asked_or_strict, gate_table.SPECIFICATION), "specification"),
    StepGate(gate_table.DESIGN, partial(_asked_or_strict, gate_table.DESIGN), "design"),
    StepGate(gate_table.CHANGE_CLASS, lambda inputs: inputs.task.change is not None, "change_class"),
)
