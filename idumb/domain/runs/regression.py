"""The question about a completed task whose own check fails after a later task, and its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from idumb.domain import outcome, wording
from idumb.domain.decision import Choice, Decision
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.runs.run import REGRESSION, RunState

ACCEPT, ROLL_BACK = "accept", "roll-back"
_WORDS = {evidence.TIMED_OUT: "timed out", evidence.ERRORED: "cannot run"}


class Broken(NamedTuple):
    """A check of the completed task `owner` that the task `culprit` broke."""

    owner: str
    check: Evidence
    culprit: str

    @property
    def line(self) -> str:
        """Return the line of the question's evidence, by which an acceptance is recognised."""
        words = _WORDS.get(self.check.result, self.check.result)
        return f"{self.check.subject} ({words}): {self.check.command or self.check.text}"


def question(state: RunState, broken: Sequence[Broken]) -> Decision:
    """Return the question about checks that one task broke."""
    culprit, owners = broken[0].culprit, list(dict.fromkeys(each.owner for each in broken))
    name = f"{culprit}.regression.{state.tasks[culprit].attempt.number}"
    ids = (name, *(f"{name}.{again}" for again in range(2, len(state.answers) + 3)))
    id = next(i for i in ids if i not in state.answers)
    subjects = wording.listed((each.check.subject for each in broken), 3)
    verb = "fails" if len(broken) == 1 else "fail"
    lines: list[str] = []
    for each in broken:
        lines += [each.line, *(f"  {line}" for line in each.check.output.splitlines()[-5:])]
    return Decision(
        id=id,
        kind=REGRESSION,
        task=culprit,
        what=f"{culprit} broke the work of {wording.listed(owners)}: {subjects} {verb}",
        why=f"Before {culprit}, every check of {wording.listed(owners)} passed. No task starts until you decide."
        " If you commit a fix, idumb resume runs the checks again.",
        evidence=tuple(lines),
        choices=(
            Choice(
                ROLL_BACK,
                f"roll back to before {culprit}",
                f"a new commit restores its files, and those of later tasks; idumb resume builds {culprit} again, and"
                " its builder learns what broke",
                f"idumb decide {id} {ROLL_BACK}",
            ),
            Choice(
                ACCEPT,
                "continue although the check fails",
                "the run continues; the check no longer stops it, and the verification names it as accepted by you",
                f"idumb decide {id} {ACCEPT} --guidance REASON",
            ),
        ),
    )


def is_current(state: RunState, question: Mapping[str, Any]) -> bool:
    """Return whether a question without an answer still waits: its task was not rolled back since."""
    task = state.tasks.get(str(question.get("task")))
    return task is not None and task.status == outcome.COMPLETED


def waiting(state: RunState) -> tuple[str, ...]:
    """Return the ids of the questions that wait."""
    rows = (row for row in state.decisions.values() if row["kind"] == REGRESSION and row["id"] not in state.answers)
    return tuple(row["id"] for row in rows if is_current(state, row))


def accepted(state: RunState) -> dict[str, str]:
    """Return the subject of each check that a person accepted as failing, with the person's name."""
    subjects: dict[str, str] = {}
    for row in state.decisions.values():
        answer = state.answers.get(row["id"], {}) if row["kind"] == REGRESSION else {}
        if answer.get("choice") == ACCEPT:
            lines = (line for line in row["evidence"] if not line.startswith(" "))
            subjects.update((line.partition(" (")[0], str(answer["by"])) for line in lines)
    return subjects
