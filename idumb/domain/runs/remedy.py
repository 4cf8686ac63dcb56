"""Remedies for a failed task, by the kind of failure: a reason and a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from idumb.domain import failures
from idumb.domain.action import Action
from idumb.domain.plans.numbered_phases import WORKFLOW_RUNS
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """How a task's last attempt failed. `checks` are the failed ones as (subject, command).

    `phase` and `task` are ids, `variables` the inputs of a workflow by environment variable.
    """

    phase: str
    task: str
    ended: str | None
    cause: str | None = None
    failure: str | None = None
    checks: Sequence[tuple[str, str | None]] = ()
    deviations: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    def by_hand(self, command: str) -> str:
        """Return a check for the user's shell, with those inputs of a workflow that it uses."""
        used = {name: value for name, value in self.variables.items() if re.search(rf"\b{name}\b", command)}
        if not used:
            return command
        return f"(export {' '.join(f'{name}={shlex.quote(value)}' for name, value in used.items())}; {command})"


@dataclass(frozen=True, slots=True)
class Remedy:
    """`command` is None if a person must do something that no command does."""

    text: str
    command: Action | str | None = None


def remedies(failure: Failure) -> tuple[Remedy, ...]:
    """Return the remedies, most useful first; never empty."""
    return tuple(dict.fromkeys(_all(failure)))


def _all(failure: Failure) -> Iterator[Remedy]:
    kind = failures.of_attempt(failure.ended, failure.cause, failure.failure)
    if kind.remedy:
        yield Remedy(kind.remedy)
    if failure.deviations:
        yield Remedy("It changed undeclared files: check whether they belong to the task.", _diff(failure))
        flags = [word for path in failure.deviations for word in ("--accept-deviation", failure.task, path)]
        if WORKFLOW_RUNS.number_of(failure.phase) is not None:  # only a person edits the plan of a workflow's run
            flags = ["--from-file"]
        yield Remedy("If they do, declare them.", Action.of("amend", failure.phase, *flags))
    for subject, command in failure.checks:
        if command is None:
            yield Remedy(f"{subject} does not hold: see the evidence.", Action.of("show", failure.task))
        else:
            yield Remedy(
                f"{subject} fails: run it by hand to see whether the work or the check is wrong.",
                failure.by_hand(command),
            )
    yield Remedy("See the changes of the task.", _diff(failure))
    if kind.stops:  # the task has not failed; it can only continue
        yield Remedy("When you have removed the cause, continue.", Action.of(kind.again, failure.phase))
        return
    yield Remedy("When you have fixed the cause, retry.", Action.of("dlq", "retry", failure.task))


def _diff(failure: Failure) -> Action:
    return Action.of("show", failure.task, "--diff")
