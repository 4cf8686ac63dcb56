"""What can be done about a failed task, by the way in which it failed: a reason, and the command that goes with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from idumb.domain import agent, failures, listing, outcome


@dataclass(frozen=True, slots=True)
class Failure:
    """How a task's last attempt failed. `checks` are (subject, command) of what did not hold; `phase`, `task` ids."""

    phase: str
    task: str
    ended: str | None
    cause: str | None = None
    failure: str | None = None
    checks: Sequence[tuple[str, str | None]] = ()
    deviations: Sequence[str] = ()
    repeated: bool = False
    envelope: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Remedy:
    """`command` is None where a person must do something that no command does."""

    text: str
    command: str | None = None


_OF_FAILURE: Mapping[str, str] = {
    agent.MISSING: "The agent's program is not there: install it, or name another binding in .idumb/config.yaml.",
    agent.NOT_LOGGED_IN: "The agent is not logged in: start it once by hand and log in, or give it its key.",
    agent.UNKNOWN_MODEL: "The agent does not know its model: write one that it lists as `model` in .idumb/config.yaml.",
    agent.DECLINED: "The agent declined the work: read what it said, and say in the plan why it is to be done.",
    agent.RATE_LIMITED: "The model's limit was reached: wait, or bind another model; then try it again.",
    agent.NETWORK: "The model could not be reached: look at the network and the address; then try it again.",
    agent.MALFORMED: "The agent's answer could not be read: look at its output, and at the version of its program.",
    agent.STALL: "The agent stopped saying anything: see whether it waited for a word, or raise run.idle_timeout.",
    agent.CONTEXT_EXHAUSTED: "The work was more than the model's context holds: split the task in two.",
    agent.OVER_BUDGET: "A ceiling was reached: raise it in .idumb/config.yaml if the work is worth it.",
}
_OF_CAUSE: Mapping[str, str] = {
    "resources": "The machine ran short: free memory or disk, or raise `limits` in .idumb/config.yaml.",
    "deadlock": "Its processes waited for each other: look for a prompt or a lock that nobody answers.",
    "model-stall": "The model said nothing for too long: try it again, or raise run.idle_timeout.",
    "external": "Somebody or something else ended it: look at the system's log; then try it again.",
}
_OF_OUTCOME: Mapping[str, str] = {
    outcome.TIMED_OUT: "Its time was up: give the task a longer Timeout, or split it.",
    outcome.REFUSED: "It did not begin, because a precondition does not hold: make that true first.",
    outcome.ERRORED: "The builder itself failed: look at its output.",
}


def remedies(found: Failure) -> tuple[Remedy, ...]:
    """In the order in which they are worth trying; never empty."""
    return tuple(dict.fromkeys(_all(found)))


def _all(found: Failure) -> Iterator[Remedy]:
    known = _OF_FAILURE.get(found.failure or "") or _OF_CAUSE.get(found.cause or "")
    special = known or _OF_OUTCOME.get(found.ended or "")
    if special is not None:
        yield Remedy(special)
    if found.deviations:
        yield Remedy("It changed files that it does not declare: see whether they belong to it.", _diff(found))
        words = " ".join(f"--accept-deviation {found.task} {path}" for path in found.deviations if " " not in path)
        yield Remedy("If they do, widen its files.", f"idumb amend {found.phase} {words}" if words else None)
    for subject, command in found.checks:
        if command is None:
            yield Remedy(f"{subject} does not hold: see what was found.", f"idumb show {found.task}")
        else:
            yield Remedy(f"{subject} fails: run it by hand, and see whether the work or the check is wrong.", command)
    if found.repeated:
        yield Remedy("Two attempts failed alike: more of them will too, so change the task first.")
        yield Remedy("Make the task smaller, or say more in it.", f"idumb amend {found.phase} --from-file")
    if found.envelope:
        names = listing.listed(found.envelope)
        yield Remedy(f"The last attempts ran under another {names}.", f"idumb envelope show {found.task}")
    yield Remedy("See what it changed.", _diff(found))
    if found.failure in failures.STOPPING:  # the task has not failed, and takes no word but to go on
        yield Remedy("When the cause is removed, go on.", f"idumb {failures.command(found.failure)} {found.phase}")
        return
    yield Remedy("When the cause is mended, try it again.", f"idumb dlq retry {found.task}")
    yield Remedy("Take its work as it is.", f"idumb accept {found.task} --why REASON")
    yield Remedy("Leave it out; what depends on it stays blocked.", f"idumb skip {found.task} --why REASON")


def _diff(found: Failure) -> str:
    return f"idumb diff {found.task}"
