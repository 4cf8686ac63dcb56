"""Runs a built-in gate within its time. Whatever goes wrong inside it is a value: evidence that is no pass.

The deadline is compared before each file that the gate reads: what runs in this process cannot be stopped halfway. Each
gate limits what it reads of one file, so that it takes seconds at most.
"""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from idumb.domain.errors import IdumbError
from idumb.domain.proof import evidence, gate_table
from idumb.domain.proof.deadline import Deadline, OutOfTimeError
from idumb.domain.proof.evidence import GATE, Evidence
from idumb.domain.proof.gate import Inputs, Judged

_Arguments = ParamSpec("_Arguments")
_Returned = TypeVar("_Returned")


def judge(
    name: str, load: Callable[[], Callable[[Inputs], Judged | None]], inputs: Inputs, deadline: Deadline
) -> Judged | None:
    """Return what the gate that `load` returns says, or evidence that it had no time, or has an error at a file.

    Raises only what did not begin in the gate: an interruption, or what the repository or a command refused.
    """
    watched = _Watched(inputs, deadline)
    try:
        return load()(watched.inputs())
    except OutOfTimeError as expired:
        return _no_pass(name, evidence.TIMED_OUT, f"{watched.path} was {expired}")
    except IdumbError:
        raise
    except Exception as problem:  # whatever is wrong in a gate, the work must not be lost to it
        if problem is watched.outside:
            raise
        return _no_pass(name, evidence.ERRORED, _words(name, problem, watched.path))


class _Watched:
    """What a gate gets from outside: `path` is the file that it asked for last, `outside` an error that came there."""

    def __init__(self, inputs: Inputs, deadline: Deadline) -> None:
        self.path = ""
        self.outside: Exception | None = None
        self._inputs = inputs
        self._deadline = deadline
        sides = ((change.path, entry) for change in inputs.changes for entry in (change.old, change.new))
        self._paths: dict[object, str] = {entry: path for path, entry in sides if entry is not None}

    def inputs(self) -> Inputs:
        given = self._inputs
        return dataclasses.replace(
            given,
            read=self._from_outside(given.read, entered=True),
            entry=self._from_outside(given.entry, entered=True),
            before=self._from_outside(given.before, entered=True),
            line_counts=self._from_outside(given.line_counts),
            run=None if given.run is None else self._from_outside(given.run),
        )

    def _from_outside(
        self, function: Callable[_Arguments, _Returned], *, entered: bool = False
    ) -> Callable[_Arguments, _Returned]:
        """Return the function; `entered`: its first argument is a file, which is judged only if there is time."""

        def call(*args: _Arguments.args, **named: _Arguments.kwargs) -> _Returned:
            if entered:
                self._enter(args[0])
            try:
                return function(*args, **named)
            except Exception as problem:
                self.outside = problem
                raise

        return call

    def _enter(self, file: object) -> None:
        self.path = file if isinstance(file, str) else self._paths.get(file, self.path)
        if self._deadline.passed:
            words = f"not judged within {self._deadline.seconds:.0f}s. Split the task, or set `timeout` of the gate"
            raise OutOfTimeError(words)


def _words(name: str, problem: Exception, path: str) -> str:
    """Return what a report about the error must have, and how to continue without the gate."""
    frame = traceback.extract_tb(problem.__traceback__)[-1]
    module = "/".join(frame.filename.split("/")[-2:])
    at = f", when it judged {path}" if path else ""
    return (
        f"an error in the gate, not in the work{at}: {type(problem).__name__}: {problem} ({module}:{frame.lineno})."
        f" Report this line and the file to the authors of idumb. {_without(name)}"
    )


def _without(name: str) -> str:
    row = gate_table.of_name(name)
    if row is not None and row.lowest == 0:
        return f"Until it is fixed, `gates: {{{row.name}: {{level: 0}}}}` continues without the gate."
    return "Until it is fixed, omit the gate from the configuration."


def _no_pass(name: str, result: str, words: str) -> Judged:
    row = gate_table.of_name(name)
    return Judged(proofs=(Evidence(f"{GATE}{name}", name if row is None else row.summary, result, output=words),))
