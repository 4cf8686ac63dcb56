"""The part of the gate `completion` that no check shows: what nobody proved, and open warnings.

Graph, invariants, tests, checks and files are judged by `idumb/app/verify/`. A pure function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence, levels, validation

WEAK = {evidence.OPINION: "is covered only by an opinion", evidence.UNPROVEN: "has no proof"}
"""Results of criteria that prove nothing, in words."""
_BY_PERSON = "validator"
"""The subject of a person's yes to a whole task."""


def judge(tasks: Iterable[Task], rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[str, ...]:
    """Return what is open of completed tasks, in words. A person decided accepted tasks.

    `rows` is the evidence of each task's last attempt, as in `evidence.recorded`.
    """
    words: list[str] = []
    for task in tasks:
        newest = {row["subject"]: row for row in rows.get(task.id, ())}
        words += [*_unproven(task, newest), *_warnings(task.id, newest)]
    return tuple(words)


def _unproven(task: Task, newest: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the criteria that neither a command, nor a person, nor the evidence of a validator proves."""
    if task.is_human or newest.get(_BY_PERSON, {}).get("result") == evidence.PASSED:
        return
    shown = [row for each in newest.values() if each["result"] == evidence.PASSED for row in each.get("shown", ())]
    proven = validation.proven_criteria(task, (row["criterion"] for row in shown))
    for criterion in task.acceptance:
        result = newest.get(criterion.id, {}).get("result")
        if result in WEAK and criterion.id not in proven:
            yield f"{task.id} {criterion.id} {WEAK[result]}"


def _warnings(task: str, newest: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the gates that could block and were not decided."""
    for subject, row in newest.items():
        level = row.get("level", levels.ADVISORY)
        if subject.startswith(evidence.GATE) and level > levels.INFORMATIONAL and row["result"] != evidence.PASSED:
            reason = str(row.get("output") or "").partition("\n")[0]
            words = f"{task} has an open warning: {subject} is {row['result'].replace('_', ' ')}"
            yield f"{words}: {reason}" if reason else words
