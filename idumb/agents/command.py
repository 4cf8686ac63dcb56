"""Runs any program as builder or validator: it gets the prompt, works in the workspace, and its exit is the result.

For a validator, a failing exit is never a PASS; a last line of JSON can lower or explain the verdict, not raise it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from idumb.agents import executable, process_environment, state_file, verdict_parsing
from idumb.agents.agent_inputs import AgentInputs
from idumb.agents.state_file import StateFileWatch
from idumb.agents.transcript import Stream, spooled
from idumb.app.ports.agents import Hear
from idumb.domain import canonical_json, outcome
from idumb.domain.agent import MISSING, STALL, VALIDATOR, AgentRequest, AgentResult, Capabilities, unusable
from idumb.domain.errors import AdapterError
from idumb.domain.settings import Binding
from idumb.system.processes import child_process

PROMPT_FILE = "{prompt_file}"

_FORMAT = "1"
_VERDICTS = (outcome.PASS, outcome.PARTIAL, outcome.FAIL)


class CommandAgent:
    """Starts `binding.argv` for each request.

    `environment` is all that the program gets besides the request's variables; the program must be outside
    `repository`. `transcripts` is a folder for output too long for the result, `papers` one for prompts and feedback
    while the program runs (default: the system's temporary folder).
    """

    name = "command"
    version = _FORMAT
    continues = True
    capabilities = Capabilities(reports_progress=True)

    def __init__(
        self,
        binding: Binding,
        repository: str,
        environment: Mapping[str, str],
        redact: Callable[[str], str],
        transcripts: str | None = None,
        stream: Callable[[], Stream] | None = None,
        papers: str | None = None,
    ) -> None:
        self._binding = binding
        self._papers = papers
        self._repository = repository
        self._environment = environment
        self._redact = redact
        self._transcripts = transcripts
        self._stream = stream
        self._resolved: tuple[str, ...] | None = None

    def describe(self) -> Sequence[str]:
        """Return the argument list with the program as an absolute path. Raises AdapterError if it is unusable."""
        if self._resolved is None:
            argv = self._binding.argv
            if not argv:
                raise AdapterError(
                    "agent.no-command",
                    f"Binding {self._binding.name} has no program.",
                    hint=f"Add `argv` to bindings.{self._binding.name} in .idumb/config.yaml.",
                )
            program = executable.resolve(argv[0], self._environment.get("PATH", ""), self._repository)
            self._resolved = (program, *argv[1:])
        return self._resolved

    def run(self, request: AgentRequest, hear: Hear | None = None) -> AgentResult:
        try:
            argv = self.describe()
        except AdapterError as problem:
            return unusable(problem)
        as_file = self._binding.prompt == "file" or PROMPT_FILE in argv
        with AgentInputs(request, self._papers, as_file=as_file) as papers:
            environment = {**process_environment.with_request(self._environment, request), **papers.variables}
            argv = [papers.prompt if part == PROMPT_FILE else part for part in argv]
            transcript = spooled(request, self._transcripts, self._stream)
            stdin = None if papers.prompt else request.prompt.encode("utf-8", "surrogateescape")
            try:
                finished = child_process.run(
                    argv,
                    cwd=request.workspace,
                    environment=environment,
                    stdin=stdin,
                    timeout=request.deadline,
                    idle_timeout=request.idle_timeout,
                    limits=request.limits,
                    agent=True,
                    guarded=True,
                    sink=transcript,
                    watch=StateFileWatch(papers.state, self._redact, hear),
                )
            except OSError as problem:
                return AgentResult(outcome.ERRORED, process_environment.not_started(argv, problem), failure=MISSING)
            said = state_file.read(papers.state, self._redact)
        return self._result(request, finished, transcript.close() if transcript else None, said)

    def _result(
        self,
        request: AgentRequest,
        finished: child_process.Finished,
        transcript: str | None,
        said: state_file.SelfReport,
    ) -> AgentResult:
        output = finished.output.text(self._redact)
        ended, message = _ending(finished)
        if request.role == VALIDATOR and not finished.timed_out:
            ended, message = _judged(ended, message, finished)
        if said.failure is not None:
            # Ignore the exit code: an agent that reports a failure did not do the work.
            ended, message = outcome.FAILED if ended == outcome.COMPLETED else ended, said.message or message
        failure = said.failure or (STALL if finished.limit == "idle" else None)
        return AgentResult(
            outcome=ended,
            message=self._redact(message),
            transcript=transcript,
            exit_code=finished.exit_code,
            output=output,
            output_sha256=finished.output.sha256,
            truncated=finished.output.truncated,
            seconds=finished.seconds,
            cause=finished.cause,
            crashed=finished.crashed,
            failure=failure,
            usage=said.usage,
            model=said.model,
            handover=said.handover,
            reply=self._reply(request, finished, transcript, output),
        )

    def _reply(
        self, request: AgentRequest, finished: child_process.Finished, transcript: str | None, output: str
    ) -> str:
        """Return the message; for a validator the verdict's line, because earlier lines may be quotations."""
        if request.role == VALIDATOR:
            return self._redact(_last_line(finished.output.tail or finished.output.head))
        return _whole(transcript) if finished.output.truncated else output


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").rstrip().splitlines()
    return lines[-1] if lines else ""


def _whole(transcript: str | None) -> str:
    """Return long output from the spool without secrets; "" if it was not spooled."""
    if transcript is None:
        return ""
    try:
        with open(transcript, "rb") as stream:
            return stream.read().decode("utf-8", "backslashreplace")
    except OSError:
        return ""


def _ending(finished: child_process.Finished) -> tuple[str, str]:
    if words := finished.words():
        return outcome.TIMED_OUT if finished.timed_out else outcome.FAILED, words
    if finished.exit_code:
        return outcome.FAILED, f"exit {finished.exit_code}"
    return outcome.COMPLETED, ""


def _judged(ended: str, message: str, finished: child_process.Finished) -> tuple[str, str]:
    """Combine the exit and the last line of a validator; the worse result counts."""
    said = last_verdict(finished.output.tail or finished.output.head)
    if said is None:
        return ended, message
    verdict, findings = said
    reasons = "; ".join(findings)
    if verdict == outcome.PASS:
        return (ended, reasons) if ended == outcome.COMPLETED else (ended, f"{message}, although its verdict was PASS")
    return outcome.FAILED, f"{verdict}: {reasons}" if reasons else verdict


def last_verdict(output: bytes) -> tuple[str, tuple[str, ...]] | None:
    """Return `{"verdict": ..., "findings": [...]}` from the last line that is not blank, or None."""
    last = _last_line(output)
    if not last.lstrip().startswith("{"):
        return None
    try:
        said = canonical_json.decode(last)
    except ValueError:
        return None
    if not isinstance(said, dict) or said.get("verdict") not in _VERDICTS:
        return None
    found = said.get("findings", [])
    return said["verdict"], tuple(verdict_parsing.finding(f) for f in found) if isinstance(found, list) else (
        verdict_parsing.finding(found),
    )
