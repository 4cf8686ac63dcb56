"""Remedies for a failed task, by the kind of failure: a reason and a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from idumb.domain import agent, failures, outcome, wording
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
    repeated: bool = False
    envelope: Sequence[str] = ()
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
    command: str | None = None


_OF_FAILURE: Mapping[str, str] = {
    agent.MISSING: "The agent's program was not found: install it, or choose another binding in .idumb/config.yaml.",
    agent.NOT_LOGGED_IN: "The agent is not logged in: start it once by hand and log in, or set its key.",
    agent.UNKNOWN_MODEL: "The agent does not know its model: set `model` in .idumb/config.yaml to one that it lists.",
    agent.DECLINED: "The agent declined the work: read its answer, and explain in the plan why the work is needed.",
    agent.RATE_LIMITED: "The model's rate limit was reached: wait or bind another model, then retry.",
    agent.NETWORK: "The model could not be reached: check the network and the address, then retry.",
    agent.MALFORMED: "The agent's answer could not be read: check its output and the version of its program.",
    agent.STALL: "The agent stopped producing output: check whether it waited for input, or raise run.idle_timeout.",
    agent.CONTEXT_EXHAUSTED: "The work exceeded the model's context window: split the task in two.",
    failures.NOT_PREPARED: "A command of `checkout.prepare` failed: correct it in .idumb/config.yaml.",
    failures.GATE_ERROR: "A gate could not judge the work: correct `gates` of .idumb/config.yaml as its evidence says.",
    failures.PASSED_BEFORE: "A check passed before the work: correct it, or write `keeps:` for a property that must"
    " stay true.",
    agent.OVER_BUDGET: "A ceiling was reached: if the work is worth it, raise the ceiling in .idumb/config.yaml.",
}
_OF_CAUSE: Mapping[str, str] = {
    "resources": "The machine ran out of resources: free memory or disk space, or raise `limits` in"
    " .idumb/config.yaml.",
    "deadlock": "Its processes waited for each other: look for an unanswered prompt or a lock.",
    "model-stall": "The model produced no output for too long: retry, or raise run.idle_timeout.",
    "external": "Another process or a user ended it: check the system log, then retry.",
}
_OF_OUTCOME: Mapping[str, str] = {
    outcome.TIMED_OUT: "It timed out: give the task a longer Timeout, or split it.",
    outcome.REFUSED: "It did not start because a precondition does not hold: meet the precondition first.",
    outcome.ERRORED: "The builder itself failed: check its output.",
}


def remedies(failure: Failure) -> tuple[Remedy, ...]:
    """Return the remedies, most useful first; never empty."""
    return tuple(dict.fromkeys(_all(failure)))


def _all(failure: Failure) -> Iterator[Remedy]:
    cause = _OF_FAILURE.get(failure.failure or "") or _OF_CAUSE.get(failure.cause or "")
    special = cause or _OF_OUTCOME.get(failure.ended or "")
    if special is not None:
        yield Remedy(special)
    if failure.deviations:
        yield Remedy("It changed undeclared files: check whether they belong to the task.", _diff(failure))
        words = " ".join(f"--accept-deviation {failure.task} {path}" for path in failure.deviations if " " not in path)
        if WORKFLOW_RUNS.number_of(failure.phase) is not None:  # only a person edits the plan of a workflow's run
            words = "--from-file"
        yield Remedy("If they do, declare them.", f"idumb amend {failure.phase} {words}" if words else None)
    for subject, command in failure.checks:
        if command is None:
            yield Remedy(f"{subject} does not hold: see the evidence.", f"idumb show {failure.task}")
        else:
            yield Remedy(
                f"{subject} fails: run it by hand to see whether the work or the check is wrong.",
                failure.by_hand(command),
            )
    if failure.repeated:
        yield Remedy("Two attempts failed in the same way: change the task before you retry.")
        yield Remedy(
            "Make the task smaller, or describe it in more detail.", f"idumb amend {failure.phase} --from-file"
        )
    if failure.envelope:
        names = wording.listed(failure.envelope)
        yield Remedy(f"The last attempts ran with a different {names}.", f"idumb show {failure.task} --envelope")
    yield Remedy("See the changes of the task.", _diff(failure))
    if failure.failure in failures.STOPPING:  # the task has not failed; it can only continue
        yield Remedy(
            "When you have removed the cause, continue.", f"idumb {failures.command(failure.failure)} {failure.phase}"
        )
        return
    yield Remedy("When you have fixed the cause, retry.", f"idumb dlq retry {failure.task}")
    yield Remedy("Accept its work as it is.", f"idumb accept {failure.task} --why REASON")
    yield Remedy("Skip it; tasks that depend on it stay blocked.", f"idumb skip {failure.task} --why REASON")


def _diff(failure: Failure) -> str:
    return f"idumb show {failure.task} --diff"
