"""Replays a recorded run: each attempt leaves the files and returns the message of the recorded attempt."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from idumb.app.ports.repository import Conflict
from idumb.domain import agent, contract, outcome, wording
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest, AgentResult
from idumb.domain.errors import AdapterError, Refusal
from idumb.domain.runs.recorded_attempt import RecordedAttempt
from idumb.domain.settings import Binding

_FORMAT = "1"


class Recordings(Protocol):
    """Reads the attempts of a recorded run and applies them again."""

    def known(self, run: str) -> bool: ...

    def find(self, run: str, task: str, number: int) -> RecordedAttempt | None: ...

    def differing(self, recorded: RecordedAttempt, candidate: str) -> tuple[str, ...] | None: ...

    def play(self, recorded: RecordedAttempt) -> tuple[Conflict, ...]: ...


class ReplayAgent:
    """Replays `binding.options.run`. Without `recordings` the adapter can only be inspected."""

    name = "replay"
    version = _FORMAT
    continues = True

    def __init__(self, binding: Binding, recordings: Recordings | None, guard: Callable[[], None]) -> None:
        self._binding = binding
        self._recordings = recordings
        self._guard = guard

    def describe(self) -> Sequence[str]:
        """Check the options without starting anything. Raises AdapterError if the run does not exist."""
        run = self._run()
        if self._recordings is not None and not self._recordings.known(run):
            raise AdapterError(
                "agent.no-recording",
                f"The event log has no run {run}.",
                hint="To list the runs of a phase, run `idumb log`. Each clone records only its own runs.",
            )
        return ()

    def _run(self) -> str:
        run = self._binding.options.get("run")
        unknown = sorted(set(self._binding.options) - {"run"})
        if not isinstance(run, str) or not run or unknown:
            named = f"no option {unknown[0]}" if unknown else "one option, `run`"
            raise AdapterError(
                "agent.bad-option",
                f"bindings.{self._binding.name} replays a run and requires {named}.",
                hint="Set `options: {run: ID}`, with an id from `idumb status` or `idumb log`.",
            )
        return run

    def run(self, request: AgentRequest) -> AgentResult:
        began = time.monotonic()
        result = self._played(request)
        return dataclasses.replace(result, seconds=time.monotonic() - began)

    def _played(self, request: AgentRequest) -> AgentResult:
        if request.task is None or request.role not in {BUILDER, VALIDATOR} or self._recordings is None:
            return _not_there(f"recordings contain only builders and validators; the role is {request.role}")
        try:
            self.describe()
        except AdapterError as problem:
            return agent.unusable(problem)
        run = self._run()
        found = self._recordings.find(run, request.task.id, request.attempt)
        if found is None:
            return _not_there(f"run {run} has no attempt of {request.task.id}")
        if found.digest != contract.task_digest(request.task):
            words = f"{request.task.id} has changed since run {run}, so its recording proves nothing"
            return AgentResult(outcome.ERRORED, words)
        if request.role == VALIDATOR:
            return self._judged(found, request, self._recordings)
        return self._built(found)

    def _judged(self, found: RecordedAttempt, request: AgentRequest, recordings: Recordings) -> AgentResult:
        """Return the recorded verdict of the validator if it judged exactly these files."""
        if found.judged is None:
            return _not_there(f"{request.subject} was not validated in run {self._run()}")
        others = recordings.differing(found, request.candidate)
        if others is None:
            return AgentResult(outcome.ERRORED, "the files that the recording judged no longer exist")
        if others:
            return AgentResult(outcome.ERRORED, f"the recording judged different files: {wording.listed(others)}")
        return found.judged

    def _built(self, found: RecordedAttempt) -> AgentResult:
        if self._recordings is None:
            return found.built
        self._guard()
        try:
            conflicts = self._recordings.play(found)
        except Refusal as refusal:  # kept trees can be lost with their repository
            return _not_there(refusal.message)
        if conflicts:
            named = wording.listed((f"{c.path} {c.why}" for c in conflicts), between="; ")
            return AgentResult(outcome.ERRORED, named)
        return found.built


def _not_there(words: str) -> AgentResult:
    return AgentResult(outcome.ERRORED, words, failure=agent.MISSING)
