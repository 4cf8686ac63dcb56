"""The process in which an entry point of a package judges a change: `python -m idumb.gates.project.entry_point`.

It prints one line with the answer. Its folder is the tree that checks judge, which has the files that did not change.
"""

from __future__ import annotations

import json
import os
import pickle
import stat
import sys
from importlib import metadata
from typing import Any

from idumb.domain.proof import evidence, gate
from idumb.domain.proof.gate import Inputs, Judged, Violation
from idumb.domain.proof.ledger import Entry
from idumb.gates.project.own import ANSWER

GROUP = "idumb.gates"
_UNCHANGED = "file:"
_REGULAR = 0o100644


def main(name: str, path: str) -> None:
    answers = os.dup(1)
    os.dup2(2, 1)  # what the function prints is no answer
    with open(path, "rb") as file:
        given = pickle.load(file)  # noqa: S301 - written by the process that started this one
    try:
        result, words = _answer(_load(name)(_inputs(given)))
    except BaseException as problem:  # noqa: BLE001 - whatever another's code raises is not a pass
        result, words = evidence.ERRORED, f"{type(problem).__name__}: {problem}"
    line = json.dumps({"result": result, "words": words})
    os.write(answers, f"\n{ANSWER}{line}\n".encode())


def _load(name: str) -> Any:
    for entry in metadata.entry_points(group=GROUP, name=name):
        return entry.load()
    raise LookupError(f"no installed package has the entry point {name} of {GROUP}")


def _answer(answer: object) -> tuple[str, str]:
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
