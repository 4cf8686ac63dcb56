"""The gate `specification`: public functions that a task adds or changes say what callers must know.

That is inputs, outputs, errors and side effects in Python; other languages are not judged.
Only what the source shows counts. Problems that a function had before are none of the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from idumb.domain.plans import run_files
from idumb.domain.proof.gate import Before, Inputs, Judged, Violation
from idumb.domain.proof.ledger import Change


class Function(NamedTuple):
    """One public function: the line of its start, its source text, and what it does not declare."""

    line: int
    text: str
    problems: tuple[str, ...]


def judge(inputs: Inputs) -> Judged | None:
    """Return what new and changed public functions do not declare; None if there is no such function."""
    wrong: list[Violation] = []
    judged = 0
    elsewhere = Before(inputs, lambda change: _functions(inputs, change, old=True))
    for change in inputs.changes:
        if change.new is None or run_files.has_no_callers(change.path):
            continue
        after, before = (_functions(inputs, change, old=old) for old in (False, True))
        for name, function in after.items():
            old = before.get(name) or elsewhere.find(name)
            if old is None or old.text != function.text:
                judged += 1
                known = () if old is None else old.problems
                problems = [each for each in function.problems if each not in known]
                wrong += [Violation(change.path, function.line, f"{name} {each}") for each in problems]
    return Judged(wrong, f"{judged} new or changed public functions are specified") if judged else None


def _functions(inputs: Inputs, change: Change, *, old: bool) -> Mapping[str, Function]:
    text = inputs.text(change.old if old else change.new) if change.path.endswith(".py") else None
    if text is None or any(words in text[:_HEADER] for words in _GENERATED):
        return {}
    return dict(_of_python(text, change.path))


_HEADER = 1000
_GENERATED = ("DO NOT EDIT", "@generated")
"""What generators write at the top: nobody adds a comment there."""


def _of_python(text: str, path: str) -> Iterator[tuple[str, Function]]:
    from idumb.gates.languages import python_functions

    for each in python_functions.public(text, path):
        yield each.name, Function(each.line, each.text, tuple(each.problems()))
