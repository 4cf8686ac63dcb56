"""Every kind of failure that is not one of the work: what it means, what fixes it, and what follows from it.

One thing that follows is the circuit breaker of an agent and its model: after consecutive failures, calls are refused
for a while.

    closed --(consecutive failures)--> open --(time is over)--> half-open --(success)--> closed
    half-open --(failure)--> open

Pure: times are the text of the clock port, and the caller stores each new state of the breaker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.domain import agent, outcome
from idumb.domain.action import Action
from idumb.domain.plans.phase_ids import WORKFLOW_RUNS

NOT_PREPARED = "not-prepared"
"""No check could run, because a command of `checkout.prepare` failed."""
GATE_ERROR = "gate-error"
"""A gate could not judge the work: it has an error, had too little time, or knows no command to run."""
PASSED_BEFORE = "passed-before"
"""A check passed before the work too, so it does not show that the work was done."""
AND_SAID = ", and said: "
"""Separates why an attempt failed from the words of its agent, which differ from attempt to attempt."""
BROKEN_HEAD = "broken-head"
"""A check fails on the user's new commit without the work too."""
PATH_COMMITTED = "path-committed"
"""During a strict run, the user committed a path that the plan declares."""

TRANSIENT, PERMANENT, SYSTEM = CLASSES = ("transient", "permanent", "system")
"""A retry can succeed; it fails until plan, prompt or files change; the machine or the agent must be fixed first."""
CONFIGURATION = "execute-phase"
"""A run keeps the configuration that it was approved with: after a change, the next run adopts the completed tasks."""


class Kind(NamedTuple):
    """`says` follows the name of the agent, or is a sentence about the checks. `fix` is the next step.

    - `stops`: another attempt would meet it again, so the run stops, and the attempt does not count.
    - `counts`: the attempt counts. `again`: the command that continues when the cause is fixed.
    - `retried`: the call is repeated at once. `connection`: the breaker of the agent counts it.
    """

    failure_class: str
    says: str = ""
    fix: str = ""
    stops: bool = False
    counts: bool = True
    again: str = "resume"
    retried: bool = False
    connection: bool = False

    @property
    def remedy(self) -> str:
        """Return what happened and what fixes it, for a person who looks at the failed task later."""
        fix = self.fix.format(install="Install or update its program", login="Start it once and log in")
        what = self.says if self.says[:1].isupper() else f"The agent {self.says}"
        return f"{what}: {fix[0].lower()}{fix[1:]}." if fix else ""


_CONFIG = ".idumb/config.yaml"
# fmt: off
KINDS: Mapping[str, Kind] = {
    agent.MISSING: Kind(SYSTEM, "cannot be started", "{install}", stops=True),
    agent.NOT_LOGGED_IN: Kind(SYSTEM, "is not logged in", "{login}", stops=True),
    agent.UNKNOWN_MODEL: Kind(SYSTEM, "does not know the model that it is configured for",
                              f"Correct or omit `model` in {_CONFIG}", stops=True, again=CONFIGURATION),
    agent.DECLINED: Kind(PERMANENT, "declined the work",
                         "Read its answer, and change the task or choose another builder"),
    agent.RATE_LIMITED: Kind(TRANSIENT, "is limited by its provider", "Wait for the limit to pass",
                             stops=True, retried=True, connection=True),
    agent.NETWORK: Kind(TRANSIENT, "could not reach its model", "Check the network and the address that it uses",
                        stops=True, retried=True, connection=True),
    agent.MALFORMED: Kind(PERMANENT, "gave an unreadable answer", "Read its output with idumb show"),
    agent.STALL: Kind(TRANSIENT, "stopped responding",
                      "Check whether it waited for input, or raise idle_timeout", connection=True),
    agent.CONTEXT_EXHAUSTED: Kind(PERMANENT, "filled its context window", "Split the task with idumb amend",
                                  counts=False),
    agent.OVER_BUDGET: Kind(SYSTEM, "reached its budget",
                            f"Add credit with its provider, or raise the ceiling in {_CONFIG}", stops=True),
    NOT_PREPARED: Kind(SYSTEM, "A command of `checkout.prepare` failed", f"Correct it in {_CONFIG}",
                       stops=True, again=CONFIGURATION),
    GATE_ERROR: Kind(SYSTEM, "A gate could not judge the work", f"Correct `gates` of {_CONFIG} as its evidence says",
                     stops=True, again=CONFIGURATION),
    PASSED_BEFORE: Kind(PERMANENT, "A check passed before the work",
                        "Correct it, or write `keeps:` for a property that must stay true", stops=True),
    BROKEN_HEAD: Kind(PERMANENT, counts=False),
    PATH_COMMITTED: Kind(PERMANENT, "You committed a path of the plan", "Look at your commit", stops=True),
}
CAUSES: Mapping[str, Kind] = {
    "resources": Kind(SYSTEM, "The machine ran out of resources",
                      f"Free memory or disk space, or raise `limits` in {_CONFIG}"),
    "deadlock": Kind(PERMANENT, "Its processes waited for each other", "Look for an unanswered prompt or a lock"),
    "model-stall": Kind(TRANSIENT, "The model produced no output for too long", "Retry, or raise run.idle_timeout"),
    "external": Kind(TRANSIENT, "Another process or a user ended it", "Check the system log, then retry"),
}
ENDS: Mapping[str, Kind] = {
    outcome.TIMED_OUT: Kind(TRANSIENT, "It timed out", "Give the task a longer Timeout, or split it"),
    outcome.REFUSED: Kind(PERMANENT, "It did not start because a precondition does not hold",
                          "Meet the precondition first"),
    outcome.ERRORED: Kind(SYSTEM, "The builder itself failed", "Check its output"),
    outcome.CANCELLED: Kind(TRANSIENT),
}
# fmt: on
_OF_THE_WORK = Kind(PERMANENT)


def kind(failure: str | None) -> Kind:
    """Return the kind of a failure; without one, or for one of a newer version, the work itself failed."""
    return KINDS.get(failure or "", _OF_THE_WORK)


def of_attempt(ended: str | None, cause: str | None, failure: str | None) -> Kind:
    """Return the kind of a failed attempt: by what its agent says, else why it was ended, else how it ended."""
    return KINDS.get(failure or "") or CAUSES.get(cause or "") or ENDS.get(ended or "", _OF_THE_WORK)


def class_of(ended: str | None, cause: str | None, failure: str | None) -> str:
    return of_attempt(ended, cause, failure).failure_class


_PROGRAMS: Mapping[str, tuple[str, str, str]] = {
    "claude": ("@anthropic-ai/claude-code", "ANTHROPIC_API_KEY", "start claude and type /login"),
    "codex": ("@openai/codex", "OPENAI_API_KEY", "codex login"),
    "gemini": ("@google/gemini-cli", "GEMINI_API_KEY", "start gemini once"),
    "qwen": ("@qwen-code/qwen-code", "OPENAI_API_KEY", "start qwen once"),
    "copilot": ("@github/copilot", "GH_TOKEN", "start copilot and type /login"),
    "opencode": ("opencode-ai", "its provider's key", "opencode auth login"),
}
"""Package, key and login of the agents that idumb knows."""


def install_command(program: str) -> str | None:
    """Return the command that installs a known program, or None."""
    known = _PROGRAMS.get(program)
    return f"npm install -g {known[0]}" if known is not None else None


def how_to_log_in(program: str) -> str:
    """Return both ways to log an agent in."""
    _, key, command = _PROGRAMS.get(program, ("", "its key", f"with {program} itself"))
    return f"Set {key} and name it in the binding's `environment`; or log in ({command}) and set `home: user`"


class FailureMessage(Struct, frozen=True):
    """A failure in words: what happened, what fixes it, and the command that continues then, unless `fix` names it."""

    kind: str
    message: str
    fix: str
    command: str = ""

    @property
    def next_step(self) -> str:
        return f"{self.fix}, then {self.command}" if self.command else self.fix


def failure_message(kind: str, name: str, program: str, message: str, go_on: str) -> FailureMessage:
    """Return the message.

    `program` is what the binding `name` starts, `message` the agent's own words, `go_on` the next command.
    """
    row = KINDS[kind]
    install = f"Install or update it: {known}" if (known := install_command(program)) else f"Install {program}"
    fix = f"{row.fix.format(install=install, login=how_to_log_in(program))}, then {go_on}"
    return FailureMessage(kind, f"{name} {row.says}" + (f": {message.rstrip('.')}" if message else ""), fix)


class Failure(Struct, frozen=True):
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
        import shlex  # noqa: PLC0415 (few commands show a failed task)

        return f"(export {' '.join(f'{name}={shlex.quote(value)}' for name, value in used.items())}; {command})"


Remedy = tuple[str, Action | str | None]
"""What helps, and its command; None if a person must do something that no command does."""


def remedies(failure: Failure) -> tuple[Remedy, ...]:
    """Return the remedies, most useful first; never empty."""
    return tuple(dict.fromkeys(_remedies(failure)))


def _remedies(failure: Failure) -> Iterator[Remedy]:
    row = of_attempt(failure.ended, failure.cause, failure.failure)
    if row.remedy:
        yield row.remedy, None
    if failure.deviations:
        yield "It changed undeclared files: check whether they belong to the task.", _diff(failure)
        flags = [word for path in failure.deviations for word in ("--accept-deviation", failure.task, path)]
        if WORKFLOW_RUNS.number_of(failure.phase) is not None:  # only a person edits the plan of a workflow's run
            flags = ["--from-file"]
        yield "If they do, declare them.", Action.of("amend", failure.phase, *flags)
    for subject, command in failure.checks:
        if command is None:
            yield f"{subject} does not hold: see the evidence.", Action.of("show", failure.task)
        else:
            by_hand = failure.by_hand(command)
            yield f"{subject} fails: run it by hand to see whether the work or the check is wrong.", by_hand
    yield "See the changes of the task.", _diff(failure)
    if row.stops:  # the task has not failed; it can only continue
        yield "When you have removed the cause, continue.", Action.of(row.again, failure.phase)
        return
    yield "When you have fixed the cause, retry.", Action.of("dlq", "retry", failure.task)


def _diff(failure: Failure) -> Action:
    return Action.of("show", failure.task, "--diff")


CLOSED, OPEN, HALF_OPEN = "closed", "open", "half-open"


class Breaker(Struct, frozen=True):
    """`failures` are consecutive; `since` is when it opened or half-opened, "" while it is closed."""

    state: str = CLOSED
    failures: int = 0
    since: str = ""
    failure: str = ""

    @classmethod
    def recorded(cls, payload: Mapping[str, Any]) -> Breaker:
        return cls(payload["state"], payload["failures"], payload["since"], payload["failure"])


class BreakerRule(Struct, frozen=True):
    """The number of consecutive failures that open it, and for how many seconds."""

    failures: int = 5
    seconds: int = 60


def before_call(breaker: Breaker, now: str, rule: BreakerRule) -> tuple[Breaker, float]:
    """Return the new state, and the seconds to wait before the call (0 permits it).

    Half-open permits one call. If its result was never recorded because the process was killed, another call is
    permitted after the same time.
    """
    if breaker.state == CLOSED:
        return breaker, 0.0
    passed = (datetime.fromisoformat(now) - datetime.fromisoformat(breaker.since)).total_seconds()
    if 0 <= passed < rule.seconds:  # below 0 if the clock was set back
        return breaker, rule.seconds - passed
    return replace(breaker, state=HALF_OPEN, since=now), 0.0


def after_call(breaker: Breaker, failure: str | None, now: str, rule: BreakerRule) -> Breaker:
    """Return the state after a call; a failure that does not count shows that the agent can be reached."""
    if not kind(failure).connection:
        return Breaker()
    count = breaker.failures + 1
    if breaker.state == HALF_OPEN or count >= rule.failures:
        return Breaker(OPEN, count, now, failure or "")
    return Breaker(CLOSED, count, "", failure or "")
