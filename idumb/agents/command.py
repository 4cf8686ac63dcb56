"""Runs any program as builder or validator: it gets the prompt, works in the workspace, and its exit is the result.

For a validator, a failing exit is never a PASS; a last line of JSON can lower or explain the verdict, not raise it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from idumb.agents import answers
from idumb.agents.program import ProgramAgent, of_process, with_request, write_input
from idumb.app.ports import Hear
from idumb.domain import outcome
from idumb.domain.agent import STALL, VALIDATOR, AgentRequest, AgentResult, Capabilities
from idumb.system import child_process
from idumb.system.supervision import Captured

PROMPT_FILE = "{prompt_file}"


class CommandAgent(ProgramAgent):
    """Starts `binding.argv` for each request. The program gets no more variables than the equipment allows."""

    capabilities = Capabilities(reports_progress=True, sandboxed=True)

    def describe(self) -> Sequence[str]:
        """Return the argument list with the program as an absolute path. Raises AdapterError if it is unusable."""
        program, *arguments = self._binding.argv
        return (self._resolve(program), *arguments)

    def _run(self, request: AgentRequest, hear: Hear | None) -> AgentResult:
        argv, stdin = self.describe(), request.prompt.encode("utf-8", "surrogateescape")
        with self._inputs(request) as inputs:
            if as_file := self._binding.prompt == "file" or PROMPT_FILE in argv:
                path = write_input(inputs.folder, "prompt.md", request.prompt)
                argv = [path if part == PROMPT_FILE else part for part in argv]
            transcript = self._transcript(request)
            finished = self._start(
                argv,
                request,
                {**with_request(self._environment, request), **inputs.variables},
                inputs,
                hear,
                stdin=None if as_file else stdin,
                sink=transcript,
            )
            self_report = answers.read_state_file(inputs.state, self._redact)
        return self._result(request, finished, transcript.close(), self_report)

    def _result(
        self, request: AgentRequest, finished: child_process.Finished, transcript: str | None, report: answers.Report
    ) -> AgentResult:
        output = finished.output.text(self._redact)
        ended, message = _ending(finished)
        if request.role != VALIDATOR and finished.exit_code:  # a validator says why in its output, which is evidence
            said = answers.error_line(output.encode())
            message = f"{message}: {said}" if said else message
        elif request.role == VALIDATOR and not finished.timed_out:
            ended, message = _judged(ended, message, finished)
        if report.failure is not None:
            # Ignore the exit code: an agent that reports a failure did not do the work.
            ended, message = outcome.FAILED if ended == outcome.COMPLETED else ended, report.error or message
        failure = report.failure or (STALL if finished.limit == "idle" else None)
        return AgentResult(
            outcome=ended,
            message=self._redact(message),
            transcript=transcript,
            output=output,
            failure=failure,
            usage=report.usage,
            model=report.model,
            handover=report.handover,
            reply=self._reply(request, finished, transcript, output),
            **of_process(finished),
        )

    def _reply(
        self, request: AgentRequest, finished: child_process.Finished, transcript: str | None, output: str
    ) -> str:
        """Return the message; for a validator the verdict's line, because earlier lines may be quotations."""
        if request.role == VALIDATOR:
            return self._redact(_last_line(finished.output))
        return _whole(transcript) if finished.output.truncated else output


def _last_line(output: Captured) -> str:
    lines = (output.tail or output.head).decode("utf-8", "replace").rstrip().splitlines()
    return lines[-1] if lines else ""


def _whole(transcript: str | None) -> str:
    """Return long output from the spool without secrets; "" if it was not spooled."""
    with contextlib.suppress(OSError), open(transcript or os.devnull, "rb") as stream:
        return stream.read().decode("utf-8", "backslashreplace")
    return ""


def _ending(finished: child_process.Finished) -> tuple[str, str]:
    words = finished.words() or (f"exit {finished.exit_code}" if finished.exit_code else "")
    ended = outcome.FAILED if words else outcome.COMPLETED
    return outcome.TIMED_OUT if finished.timed_out else ended, words


def _judged(ended: str, message: str, finished: child_process.Finished) -> tuple[str, str]:
    """Combine the exit and the last line of a validator; the worse result counts."""
    last = _last_line(finished.output)
    verdict = answers.judged(last) if last.lstrip().startswith("{") else None
    if verdict is None or verdict.failure is not None:
        return ended, message
    if verdict.outcome != outcome.COMPLETED:
        return outcome.FAILED, verdict.message
    return ended, verdict.message if ended == outcome.COMPLETED else f"{message}, although its verdict was PASS"
