"""The part of the gate `completion` that no check shows: open warnings, and files that no task explains.

Graph, invariants, tests, criteria and files are judged by `idumb/app/verify/`. A pure function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from idumb.domain import outcome
from idumb.domain.proof import evidence, levels


def judge(
    statuses: Mapping[str, str],
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
) -> tuple[str, ...]:
    """Return what is open at the end of a phase, in words.

    `rows` is the evidence of each task's last attempt, as in `evidence.recorded`.
    """
    return tuple(words for task, status in statuses.items() for words in _open(task, status, rows.get(task, ())))


def _open(task: str, status: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the gates of a completed task that could block and were not decided. A person decided accepted tasks."""
    newest = {row["subject"]: row for row in rows}
    for subject, row in newest.items() if status == outcome.COMPLETED else ():
        level = row.get("level", levels.ADVISORY)
        if subject.startswith(evidence.GATE) and level > levels.INFORMATIONAL and row["result"] != evidence.PASSED:
            yield f"{task} has an open warning: {subject} is {row['result'].replace('_', ' ')}"
