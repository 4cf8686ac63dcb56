"""The project's own gates: a command that must exit with 0, or an entry point that judges the change.

The entry point is a function `judge(inputs: Inputs) -> Judged | None` of an installed package. It is loaded only if the
configuration names it.
"""

from __future__ import annotations

import dataclasses
import threading
from importlib import metadata
from typing import Any

from idumb.domain.proof import evidence, gate
from idumb.domain.proof.evidence import GATE, Evidence
from idumb.domain.proof.gate import Inputs, Judged, Violation
from idumb.domain.proof.ledger import Entry
from idumb.domain.settings import GateSettings

ENTRY_POINTS = "idumb.gates"


def judge(name: str, inputs: Inputs) -> Judged | None:
    own = inputs.asked[name]
    if own.entry_point is not None:
        return _of_entry_point(name, own, inputs)
    return Judged(proofs=tuple(_of_command(name, command, inputs) for command in own.run))


def _of_command(name: str, command: str, inputs: Inputs) -> Evidence:
    ran = inputs.run(name, command, before=False) if inputs.run is not None else None
    assert ran is not None  # noqa: S101 - only the tree before the task may be missing
    return dataclasses.replace(ran, subject=f"{GATE}{name}", text=command)


def _of_entry_point(name: str, own: GateSettings, inputs: Inputs) -> Judged | None:
    """Run the function in a thread, which cannot read the change any more after its time."""
    expired = threading.Event()
    answers: list[Judged | None] = []

    def read(entry: Entry | None, limit: int) -> bytes | None:
        if expired.is_set():
            raise TimeoutError
        return inputs.read(entry, limit)

    def run() -> None:
        try:
            answers.append(_answer(name, own, _load(own)(dataclasses.replace(inputs, read=read))))
        except BaseException as problem:  # noqa: BLE001 - whatever another's code raises is not a pass
            answers.append(_judged(name, own, evidence.ERRORED, f"{type(problem).__name__}: {problem}"))

    thread = threading.Thread(target=run, name=f"gate {name}", daemon=True)
    thread.start()
    thread.join(own.timeout)
    if thread.is_alive():
        expired.set()
        return _judged(name, own, evidence.TIMED_OUT, f"it did not answer within {own.timeout}s")
    return answers[0]


def _load(own: GateSettings) -> Any:
    for entry in metadata.entry_points(group=ENTRY_POINTS, name=own.entry_point or ""):
        return entry.load()
    raise LookupError(f"no installed package has the entry point {own.entry_point} of {ENTRY_POINTS}")


def _answer(name: str, own: GateSettings, answer: object) -> Judged | None:
    if answer is None:
        return None
    if not isinstance(answer, Judged) or answer.proofs:
        raise TypeError("it returned neither None nor idumb.domain.proof.gate.Judged with violations or words")
    wrong = [Violation(*each) for each in answer.violations]
    if wrong:
        return _judged(name, own, evidence.FAILED, gate.lines(wrong))
    return _judged(name, own, evidence.PASSED, answer.words)


def _judged(name: str, own: GateSettings, result: str, words: str) -> Judged:
    return Judged(proofs=(Evidence(f"{GATE}{name}", f"entry point {own.entry_point}", result, output=words),))
