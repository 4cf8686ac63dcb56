"""Runs a command-line agent that idumb knows: starts it per request in a private home and reads its report.

Neither its exit nor its last message is proof: a success is a claim, as with every agent.
"""

from __future__ import annotations

import json
from importlib import import_module
from types import MappingProxyType

from msgspec.structs import replace

from idumb.agents import answers
from idumb.agents.adapter import Equipment
from idumb.agents.answers import Ending, Report
from idumb.agents.known_agent import KnownProgram, Preset
from idumb.agents.program import HOME, HOMES, InputFiles, of_process, scratch, write_input
from idumb.agents.transcript import Transcript
from idumb.app.ports import Hear
from idumb.domain import agent, outcome, wording
from idumb.domain.agent import VALIDATOR, AgentRequest, AgentResult
from idumb.domain.settings import Binding
from idumb.system import child_process
from idumb.system.supervision import Captured

_KEPT = 4 * 1024 * 1024
_ASKED = 20.0  # seconds in which it says whether it is logged in


class PresetAgent(KnownProgram):
    """Runs one command-line agent. `argv` of the binding names another program and extra arguments."""

    options = MappingProxyType({HOME: HOMES, "shell": (True, False), "project": (True, False)})

    def __init__(self, binding: Binding, equipment: Equipment, preset: Preset | None = None) -> None:
        self._preset: Preset = preset or import_module(f"idumb.agents.{binding.adapter}").PRESET
        super().__init__(binding, equipment, self._preset)

    def _says_login(self) -> bool | None:
        with scratch(self._equipment.inputs) as folder:
            try:
                asked = child_process.run(
                    (self.describe()[0], *self._preset.status),
                    cwd=folder,
                    environment={**self._environment, **self._equipment.environment(self._preset.places)},
                    timeout=_ASKED,
                    agent=True,
                )
            except OSError:
                return None
        return None if asked.timed_out or asked.exit_code not in (0, 1) else asked.exit_code == 0

    def _run(self, request: AgentRequest, hear: Hear | None) -> AgentResult:
        with self._inputs(request) as inputs:
            kept = _Printed(self._transcript(request), self._preset)
            finished = self._launched(
                request,
                inputs,
                hear,
                _schema(request, inputs),
                in_sandbox=self._preset.in_sandbox,
                reported=lambda: kept.reported,
                stdin=request.prompt.encode("utf-8", "surrogateescape"),
                sink=kept,
            )
        errors = finished.errors.head + finished.errors.tail if finished.errors is not None else b""
        return self._result(request, finished, kept, errors)

    def _result(
        self, request: AgentRequest, finished: child_process.Finished, kept: _Printed, errors: bytes
    ) -> AgentResult:
        transcript = kept.close()
        if kept.reported and finished.timed_out:  # it did not exit after its report
            finished = replace(finished, timed_out=False, exit_code=0, signal=None, cause=None)
        printed = kept.whole(finished.output)
        said = b"\n".join([errors, *(line for line in printed.splitlines() if not line.lstrip().startswith(b"{"))])
        report = self._preset.read(printed, said)
        ended = self._ending(finished, report, answers.error_line(said))
        if request.role == VALIDATOR and ended.outcome == outcome.COMPLETED:
            ended = answers.judged(report.reply)
        redact = self._redact
        return AgentResult(
            outcome=ended.outcome,
            message=redact(ended.message),
            session=agent.session_id(redact(report.session or "")),
            usage=report.usage,
            transcript=transcript,
            output=finished.output.text(redact) + (redact(errors.decode("utf-8", "backslashreplace"))),
            failure=ended.failure,
            reply=redact(report.reply),
            model=redact(report.model) if report.model is not None else None,
            **of_process(finished),
        )

    def _ending(self, finished: child_process.Finished, report: Report, said: str) -> Ending:
        """Return the worst of how it ended, its exit code and its report. Without a session it has not begun.

        A shell exits with more than 128 after a signal, which another attempt may not meet.
        """
        if words := finished.words():
            if finished.timed_out:
                failure = report.failure or (agent.STALL if finished.limit == "idle" else None)
                return Ending(outcome.TIMED_OUT, _joined(words, report.error if report.failure else ""), failure)
            return Ending(outcome.FAILED, words)
        exited = f"exit {finished.exit_code}" if finished.exit_code else ""
        begun = not 0 < (finished.exit_code or 0) <= 128 or report.session or report.ended
        if report.failure is not None or not begun:
            return answers.failed(_joined(report.error, exited), report.failure or agent.MISSING)
        if exited or report.error not in ("", said):
            return answers.failed(_joined(exited, report.error or said), None)
        if not report.ended:
            return answers.failed(_joined(f"{self.name} exited without its final report", said), agent.MALFORMED)
        denied = f"its permissions denied {wording.listed(report.denied)}" if report.denied else ""
        return Ending(outcome.COMPLETED, denied)


def _schema(request: AgentRequest, inputs: InputFiles) -> dict[str, str]:
    """Return the JSON Schema of the reply, as text and as the path of a file; nothing for a plain reply."""
    schema = answers.schema_of(request)
    if schema is None:
        return {}
    text = json.dumps(schema)
    return {"schema": text, "schema_file": write_input(inputs.folder, "schema.json", text)}


class _Printed:
    """Receives the output: keeps its end, which contains the report, and writes what the agent does as it happens.

    `reported`: its last event ends the report.
    """

    def __init__(self, transcript: Transcript, preset: Preset) -> None:
        self.reported = False
        self._transcript = transcript
        self._preset = preset
        self._last = bytearray()
        self._rest = bytearray()

    def __call__(self, data: bytes) -> None:
        self._last += data
        if len(self._last) > 2 * _KEPT:
            del self._last[:-_KEPT]
        *whole, self._rest = (self._rest[-_KEPT:] + data[-_KEPT:]).split(b"\n")
        for line in whole:
            self._tell(bytes(line))

    def _tell(self, line: bytes) -> None:
        if not line.strip():
            return
        event = next(answers.objects(line), None)
        if event is not None:
            self.reported = event.get("type") in self._preset.final
        for words in [line.decode("utf-8", "replace")] if event is None else self._preset.lines(event):
            self._transcript.line(words)

    def whole(self, output: Captured) -> bytes:
        """Return the output, or its beginning and end if it is long."""
        head = b"" if output.size <= len(self._last) else output.head[: output.head.rfind(b"\n") + 1]
        return head + bytes(self._last)

    def close(self) -> str | None:
        self._tell(bytes(self._rest))
        return self._transcript.close()


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
