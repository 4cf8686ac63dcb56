"""The project's own gates: a command that must exit with 0, or an entry point that judges the change.

The entry point is a function `judge(inputs: Inputs) -> Judged | None` of an installed package, and loaded only if the
configuration names it. It runs like a check: in a process of its own, limited by the sandbox and the time of checks:
`python -m idumb.gates.own_gate`, which prints one line with the answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import shlex
import stat
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from msgspec.structs import replace

from idumb.domain.proof import evidence, gate
from idumb.domain.proof.evidence import GATE, Evidence
from idumb.domain.proof.gate import Inputs, Judged, Violation
from idumb.domain.proof.ledger import Entry
from idumb.domain.settings import GateSettings

ANSWER = "idumb-gate-answer "
"""How the line of the answer begins."""
PYTHON = f"{shlex.quote(sys.executable)} -I"
"""Isolated: it finds what is installed, and nothing in a working tree or in PYTHONPATH."""
_LONGEST = 16 * 1024 * 1024
_MOST = 64 * 1024 * 1024
"""Bytes of one file, and of all, that a function can read."""
GROUP = "idumb.gates"
_UNCHANGED = "file:"
_REGULAR = 0o100644


def judge(name: str, inputs: Inputs) -> Judged | None:
    own = inputs.asked[name]
    if own.entry_point is not None:
        return _of_entry_point(name, own, inputs)
    return Judged(proofs=tuple(replace(_ran(name, c, inputs), subject=f"{GATE}{name}", text=c) for c in own.run))


def _ran(name: str, command: str, inputs: Inputs) -> Evidence:
    assert inputs.run is not None  # noqa: S101 - the registry asks only then
    return inputs.run(name, command, before=False)


def _of_entry_point(name: str, own: GateSettings, inputs: Inputs) -> Judged | None:
    with _given(inputs) as path:
        arguments = shlex.join([own.entry_point or "", path])
        ran = _ran(name, f"{PYTHON} -m idumb.gates.own_gate {arguments}", inputs)
    result, words = _answer(own, ran)
    if result == "":
        return None
    text = f"entry point {own.entry_point}"
    proof = replace(ran, subject=f"{GATE}{name}", text=text, result=result, output=words)
    return Judged(proofs=(replace(proof, command=None, argv=(), exit_code=None, output_sha256=None),))


def _answer(own: GateSettings, ran: Evidence) -> tuple[str, str]:
    """Return result and words; "" as the result if the gate does not concern the change."""
    if ran.result == evidence.TIMED_OUT:
        return evidence.TIMED_OUT, f"it did not answer within {own.timeout}s"
    if ran.changed:
        return evidence.FAILED, "it changed files that it should judge"
    line = next((line for line in reversed(ran.output.splitlines()) if line.startswith(ANSWER)), "")
    if line and ran.exit_code == 0:
        answer = json.loads(line.removeprefix(ANSWER))
        return str(answer["result"]), str(answer["words"])
    return evidence.ERRORED, f"it gave no answer. {gate.end_of_output(ran)}"


@contextlib.contextmanager
def _given(inputs: Inputs) -> Iterator[str]:
    """Write what the function gets into a private file, and return its path."""
    left, files = _MOST, dict[str, bytes]()
    for change in inputs.changes:
        for entry in (change.old, change.new):
            data = inputs.read(entry, min(left, _LONGEST))
            if entry is not None and data is not None and entry.oid not in files:
                files[entry.oid] = data
                left -= len(data)
    given: dict[str, Any] = {
        "task": inputs.task,
        "plan": inputs.plan,
        "changes": tuple(inputs.changes),
        "line_counts": dict(inputs.line_counts()),
        "proofs": tuple(inputs.proofs),
        "files": files,
    }
    handle, path = tempfile.mkstemp(prefix="idumb-gate-")
    try:
        with os.fdopen(handle, "wb") as file:
            pickle.dump(given, file)
        yield path
    finally:
        os.unlink(path)


def main(name: str, path: str) -> None:
    """Judge in the process of its own, whose folder is the tree that checks judge: it has the unchanged files."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what the function prints is no answer
    with open(path, "rb") as file:
        given = pickle.load(file)  # noqa: S301 - written by the process that started this one
    try:
        result, words = _judged(_load(name)(_inputs(given)))
    except BaseException as problem:  # noqa: BLE001 - whatever another's code raises is not a pass
        result, words = evidence.ERRORED, f"{type(problem).__name__}: {problem}"
    line = json.dumps({"result": result, "words": words})
    os.write(answers, f"\n{ANSWER}{line}\n".encode())


def _load(name: str) -> Any:
    for entry in metadata.entry_points(group=GROUP, name=name):
        return entry.load()
    raise LookupError(f"no installed package has the entry point {name} of {GROUP}")


def _judged(answer: object) -> tuple[str, str]:
    if answer is None:
        return "", ""
    if not isinstance(answer, Judged) or answer.proofs:
        raise TypeError("it returned neither None nor idumb.domain.proof.gate.Judged with violations or words")
    wrong = [Violation(*each) for each in answer.violations]
    return (evidence.FAILED, gate.lines(wrong)) if wrong else (evidence.PASSED, answer.words)


def _inputs(given: dict[str, Any]) -> Inputs:
    changed = {change.path: change for change in given["changes"]}
    files: dict[str, bytes] = given["files"]

    def entry(path: str) -> Entry | None:
        return changed[path].new if path in changed else _present(path)

    def before(path: str) -> Entry | None:
        return changed[path].old if path in changed else _present(path)

    def read(entry: Entry | None, limit: int) -> bytes | None:
        if entry is None:
            return None
        if entry.oid.startswith(_UNCHANGED):
            with open(entry.oid.removeprefix(_UNCHANGED), "rb") as file:
                data: bytes | None = file.read(limit + 1)
        else:
            data = files.get(entry.oid)
        return None if data is None or len(data) > limit else data

    return Inputs(
        given["task"],
        given["plan"],
        given["changes"],
        read,
        lambda: given["line_counts"],
        given["proofs"],
        entry=entry,
        before=before,
    )


def _present(path: str) -> Entry | None:
    """Return a file that the task did not change; None if there is none, or if it is a link."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return Entry(_REGULAR, f"{_UNCHANGED}{path}") if stat.S_ISREG(status.st_mode) else None


if __name__ == "__main__":
    main(*sys.argv[1:])
