"""Replays a recorded run: each attempt leaves the files and returns the message of the recorded attempt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from idumb.agents.adapter import Adapter
from idumb.domain import agent, contract, outcome, wording
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest, AgentResult, RecordedAttempt
from idumb.domain.errors import AdapterError, Refusal

if TYPE_CHECKING:
    from idumb.app.history.recordings import Recordings


class ReplayAgent(Adapter):
    """Replays `binding.options.run`. Without recordings in the equipment it can only be inspected."""

    options = MappingProxyType({"run": str})

    def describe(self) -> Sequence[str]:
        """Check the options without starting anything. Raises AdapterError if the run does not exist."""
        run, recordings = self._run(), self._equipment.recordings
        if recordings is not None and not recordings.has_run(run):
            raise AdapterError(
                "agent.no-recording",
                f"The event log has no run {run}.",
                hint="To list the runs of a phase, run `idumb log`. Each clone records only its own runs.",
            )
        return ()

    def _run(self) -> str:
        self._require_options()
        run = str(self._binding.options.get("run", ""))
        if not run:
            raise self._bad_option("needs the id of a run: `options: {run: ID}`, from `idumb status` or `idumb log`")
        return run

    def run(self, request: AgentRequest) -> AgentResult:
        began = time.monotonic()
        result = self._played(request)
        return replace(result, seconds=time.monotonic() - began)

    def _played(self, request: AgentRequest) -> AgentResult:
        recordings = self._equipment.recordings
        if request.task is None or request.role not in {BUILDER, VALIDATOR} or recordings is None:
            return _not_there(f"recordings contain only builders and validators; the role is {request.role}")
        try:
            self.describe()
        except AdapterError as problem:
            return agent.unusable(problem)
        run = self._run()
        attempt = recordings.find(run, request.task.id, request.attempt)
        if attempt is None:
            return _not_there(f"run {run} has no attempt of {request.task.id}")
        if attempt.digest != contract.task_digest(request.task):
            words = f"{request.task.id} has changed since run {run}, so its recording proves nothing"
            return AgentResult(outcome.ERRORED, words)
        if request.role == VALIDATOR:
            return self._judged(attempt, request, recordings)
        return self._built(attempt, recordings)

    def _judged(self, attempt: RecordedAttempt, request: AgentRequest, recordings: Recordings) -> AgentResult:
        """Return the recorded verdict of the validator if it judged exactly these files."""
        if attempt.judged is None:
            return _not_there(f"{request.subject} was not validated in run {self._run()}")
        others = recordings.differing(attempt, request.candidate)
        if others is None:
            return AgentResult(outcome.ERRORED, "the files that the recording judged no longer exist")
        if others:
            return AgentResult(outcome.ERRORED, f"the recording judged different files: {wording.listed(others)}")
        return attempt.judged

    def _built(self, attempt: RecordedAttempt, recordings: Recordings) -> AgentResult:
        self._equipment.guard()
        try:
            conflicts = recordings.play(attempt)
        except Refusal as refusal:  # kept trees can be lost with their repository
            return _not_there(refusal.message)
        if conflicts:
            message = wording.listed((f"{c.path} {c.why}" for c in conflicts), between="; ")
            return AgentResult(outcome.ERRORED, message)
        return attempt.built


def _not_there(words: str) -> AgentResult:
    return AgentResult(outcome.ERRORED, words, failure=agent.MISSING)
