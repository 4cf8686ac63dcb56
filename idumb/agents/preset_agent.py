"""Runs a command-line agent that idumb knows: starts it per request in a private home and reads its report.

Neither its exit nor its last message is proof: a success is a claim, as with every agent.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

from idumb.agents import answers
from idumb.agents.adapter import Equipment
from idumb.agents.answers import Report, last_line
from idumb.agents.presets.preset import Invocation, Preset
from idumb.agents.program import (
    HOME,
    HOMES,
    IDLE_TIMEOUT,
    InputFiles,
    ProgramAgent,
    home_variables,
    make_home,
    with_request,
)
from idumb.agents.state_file import StateFileWatch
from idumb.agents.transcript import Transcript
from idumb.app.ports.agents import Hear
from idumb.domain import agent, outcome, wording
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest, AgentResult, Capabilities
from idumb.domain.errors import AdapterError
from idumb.domain.settings import Binding
from idumb.system.processes import child_process
from idumb.system.processes.supervision import Captured

_KEPT = 4 * 1024 * 1024
_LISTS = 20.0  # seconds in which it lists its models, or says whether it is logged in
_OF_WORK = frozenset({agent.CONTEXT_EXHAUSTED, agent.DECLINED, agent.OVER_BUDGET})
_NEXT: Mapping[str, str] = {
    agent.RATE_LIMITED: "wait, then resume the run",
    agent.NETWORK: "check the connection and the server address, then resume the run",
    agent.CONTEXT_EXHAUSTED: "split the task, or use a model with a larger context window",
    agent.OVER_BUDGET: "check the account, then resume the run",
    agent.MALFORMED: "check the transcript, or try another version of the agent",
    agent.DECLINED: "check what the task asks for, or use another agent",
}


class PresetAgent(ProgramAgent):
    """Runs one command-line agent. `argv` of the binding names another program and extra arguments."""

    options = MappingProxyType({HOME: HOMES, "shell": (True, False), "project": (True, False), "resume": (True, False)})

    def __init__(self, binding: Binding, equipment: Equipment, preset: Preset | None = None) -> None:
        super().__init__(binding, equipment)
        self.name = binding.adapter
        self._preset: Preset = preset or import_module(f"idumb.agents.presets.{binding.adapter}").PRESET
        self.version = self._version(self._program)
        resumable = binding.options.get("resume") is True
        self.capabilities = Capabilities(
            reports_progress=True, resumable=resumable, idle_timeout=IDLE_TIMEOUT, sandboxed=True
        )

    def describe(self) -> Sequence[str]:
        """Return the arguments that start a builder. Raises AdapterError if they are unusable."""
        self._require_options()
        return self._arguments(self._invocation())

    def _needs_login(self) -> bool:
        return True

    def _says_login(self) -> bool | None:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="idumb-") as folder:
            try:
                asked = child_process.run(
                    (self._program(), *self._preset.status),
                    cwd=folder,
                    environment=self._variables(self._invocation()),
                    timeout=_LISTS,
                    agent=True,
                )
            except OSError:
                return None
        return None if asked.timed_out or asked.exit_code not in (0, 1) else asked.exit_code == 0

    def _run(self, request: AgentRequest, hear: Hear | None) -> AgentResult:
        with self._inputs(request) as inputs:
            call = self._invocation(request, self._home(request, inputs.folder), _schema(request, inputs))
            watch = StateFileWatch(inputs.state, self._redact, hear)
            return self._answered(request, call, inputs, watch)

    def _answered(
        self, request: AgentRequest, call: Invocation, inputs: InputFiles, watch: StateFileWatch
    ) -> AgentResult:
        """Run the agent; if the conversation to resume is unknown, start a new one."""
        result, unknown = self._run_once(request, call, inputs, watch)
        if call.session is None or not unknown:
            return dataclasses.replace(result, resumed=call.session is not None)
        remaining = None if request.deadline is None else max(0.001, request.deadline - result.seconds)
        request = dataclasses.replace(request, deadline=remaining)
        call = dataclasses.replace(call, session=None)
        fresh, _ = self._run_once(request, call, inputs, watch)
        return dataclasses.replace(fresh, seconds=result.seconds + fresh.seconds)

    def _run_once(
        self, request: AgentRequest, call: Invocation, inputs: InputFiles, watch: StateFileWatch
    ) -> tuple[AgentResult, bool]:
        """Return the answer, and whether the conversation was unknown before any work was done."""
        environment = with_request(self._variables(call), request)
        environment |= {**inputs.variables, **self._preset.variables(call)}
        argv = self._arguments(call)
        kept = _Printed(self._transcript(request), self._preset.lines)
        if call.home is not None:
            make_home(call.home, "codex")
        finished = self._start(
            argv,
            request,
            environment,
            inputs.folder,
            *self._state(call),
            in_sandbox=self._preset.in_sandbox,
            stdin=request.prompt.encode("utf-8", "surrogateescape"),
            separate_errors=True,
            sink=kept,
            watch=watch,
            progress=answers.Progress(),
        )
        errors = finished.errors.head + finished.errors.tail if finished.errors is not None else b""
        answer = self._preset.read(kept.whole(finished.output), errors)
        idle = not finished.timed_out and not answer.usage.tokens_out and bool(answer.error)
        words = f"{answer.error}\n{errors.decode('utf-8', 'replace')}"
        result = self._result(request, finished, kept, answer, errors)
        if result.failure == agent.UNKNOWN_MODEL:
            accepted = answers.described_models(self._models(argv[0], request, call, environment, inputs.folder))
            result = dataclasses.replace(result, message=_joined(result.message, self._redact(accepted)))
        return result, idle and answers.says_session_is_unknown(words)

    def _models(
        self, program: str, request: AgentRequest, call: Invocation, environment: Mapping[str, str], scratch: str
    ) -> tuple[str, ...]:
        """Return the model ids that the agent lists."""
        if not self._preset.lists:
            return ()
        command = (program, *self._preset.lists)
        try:
            with self._limited(command, request, environment, scratch, self._state(call)) as (argv, variables, _):
                listed = child_process.run(
                    argv,
                    cwd=call.home or scratch,
                    environment=variables,
                    timeout=_LISTS,
                    agent=True,
                    separate_errors=True,
                )
        except (OSError, AdapterError):
            return ()
        return self._preset.listed(listed.output.head + listed.output.tail)

    def _result(
        self, request: AgentRequest, finished: child_process.Finished, kept: _Printed, report: Report, errors: bytes
    ) -> AgentResult:
        ended, message, failure = self._ending(finished, report, errors)
        if request.role == VALIDATOR and ended == outcome.COMPLETED:
            ended, message, failure = answers.judged(report.reply)
        redact = self._redact
        return AgentResult(
            outcome=ended,
            message=redact(message),
            session=agent.session_id(redact(report.session or "")),
            usage=report.usage,
            transcript=kept.close(),
            exit_code=finished.exit_code,
            output=finished.output.text(redact) + (redact(errors.decode("utf-8", "backslashreplace"))),
            output_sha256=finished.output.sha256,
            truncated=finished.output.truncated,
            seconds=finished.seconds,
            cause=finished.cause,
            crashed=finished.crashed,
            sandbox=finished.sandbox,
            failure=failure,
            reply=redact(report.reply),
            handover=redact(report.reply) if failure == agent.CONTEXT_EXHAUSTED else "",
            model=redact(report.model) if report.model is not None else None,
        )

    def _ending(self, finished: child_process.Finished, report: Report, errors: bytes) -> tuple[str, str, str | None]:
        """Return (outcome, message, failure): the worst of how it ended, its exit code and its report."""
        if words := finished.words():
            if finished.timed_out:
                failure = report.failure or (agent.STALL if finished.limit == "idle" else None)
                return outcome.TIMED_OUT, _joined(words, report.error if report.failure else ""), failure
            return outcome.FAILED, words, None
        exited = f"exit {finished.exit_code}" if finished.exit_code else ""
        failure = report.failure
        if failure is not None:
            ended = outcome.FAILED if failure in _OF_WORK else outcome.ERRORED
            return ended, _joined(report.error, exited, _NEXT.get(failure, "")), failure
        if exited or report.error:
            return outcome.FAILED, _joined(exited, report.error or last_line(errors)), None
        if not report.ended:
            words = f"{self.name} exited without its final report"
            return outcome.ERRORED, _joined(words, _NEXT[agent.MALFORMED]), agent.MALFORMED
        denied = f"its permissions denied {wording.listed(report.denied)}" if report.denied else ""
        return outcome.COMPLETED, denied, None

    def _program(self) -> str:
        return self._resolve(self._binding.argv[0] if self._binding.argv else self._preset.name)

    def _arguments(self, call: Invocation) -> tuple[str, ...]:
        return (self._program(), *self._preset.arguments(call), *self._binding.argv[1:])

    def _invocation(
        self, request: AgentRequest | None = None, home: str | None = None, schema: tuple[str, str] = ("", "")
    ) -> Invocation:
        """Return the call for a request, or for a builder without a request yet."""
        options = self._binding.options
        model = request.model if request is not None else None
        return Invocation(
            writes=request is None or request.role != VALIDATOR,
            shell=options.get("shell") is True,
            project=options.get("project") is True,
            model=model or self._binding.model,
            session=agent.session_id(request.session) if request is not None else None,
            schema=schema[0],
            schema_file=schema[1],
            home=home,
            git_folder=_git_folder(request.workspace) if request is not None and request.role == BUILDER else None,
            environment=self._environment,
        )

    def _variables(self, call: Invocation) -> dict[str, str]:
        if call.home is None:
            return {**self._environment, **self._equipment.environment(self._preset.places)}
        return {**self._environment, **home_variables(call.home)}

    def _state(self, call: Invocation) -> tuple[str, ...]:
        """Return the folders where the agent keeps its state: its own home, or its places in the user's home."""
        if call.home is not None:
            return (call.home,)
        variables = self._variables(call)
        home = variables.get("HOME", "")
        places = (variables[name] for name in self._preset.places if variables.get(name))
        return (*places, *(os.path.join(home, path) for path in self._preset.state if home))


def _schema(request: AgentRequest, inputs: InputFiles) -> tuple[str, str]:
    """Return the JSON Schema of the reply, as text and as the path of a file; twice "" for a plain reply."""
    schema = answers.schema_of(request)
    if schema is None:
        return "", ""
    text = json.dumps(schema)
    return text, inputs.write("schema.json", text)


class _Printed:
    """Receives the output: keeps its end, which contains the report, and writes what the agent does as it happens."""

    def __init__(self, transcript: Transcript | None, lines: Callable[[Mapping[str, Any]], Iterator[str]]) -> None:
        self._transcript = transcript
        self._lines = lines
        self._last = bytearray()
        self._begun = bytearray()

    def __call__(self, data: bytes) -> None:
        self._last += data
        if len(self._last) > 2 * _KEPT:
            del self._last[:-_KEPT]
        *whole, self._begun = (self._begun + data[-_KEPT:]).split(b"\n")
        for line in whole if self._transcript is not None else ():
            self._tell(bytes(line))

    def _tell(self, line: bytes) -> None:
        if self._transcript is None or not line.strip():
            return
        events = list(answers.objects(line))
        words = [each for event in events for each in self._lines(event)]
        for each in words if events else [line.decode("utf-8", "replace")]:
            self._transcript.line(each)

    def whole(self, output: Captured) -> bytes:
        """Return the output, or its beginning and end if it is long."""
        if output.size <= len(self._last):
            return bytes(self._last)
        return output.head[: output.head.rfind(b"\n") + 1] + bytes(self._last)

    def close(self) -> str | None:
        self._tell(bytes(self._begun))
        return self._transcript.close() if self._transcript is not None else None


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _git_folder(workspace: str) -> str:
    from idumb.agents import sandboxed  # few builders commit

    return sandboxed.git_folder(workspace)
