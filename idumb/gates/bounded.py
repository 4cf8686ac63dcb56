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
from idumb.domain.proof.evidence import GATE, Evidence
from idumb.domain.proof.gate import Deadline, Inputs, Judged, OutOfTimeError

_Given = ParamSpec("_Given")
_Returned = TypeVar("_Returned")


def judge(
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
        return load()(
            dataclasses.replace(inputs, read=timed(inputs.read), entry=timed(inputs.entry), before=timed(inputs.before))
        )
    except OutOfTimeError as expired:
        return _no_pass(name, evidence.TIMED_OUT, f"{judged} was {expired}")
    except IdumbError:
        raise
    except Exception as problem:  # noqa: BLE001 - whatever is wrong in a gate, the work must not be lost to it
        return _no_pass(name, evidence.ERRORED, _words(name, problem, judged))


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
