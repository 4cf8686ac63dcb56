"""How agents start processes: the environment they add, and the meaning of an exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from idumb.domain import outcome
from idumb.domain.agent import AgentRequest
from idumb.system.processes import child_process

NOT_EXECUTABLE = 126
NOT_FOUND = 127


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of one tool call. `outcome` is one of `idumb.domain.outcome`, `text` the message for the user.

    `output` is the output of a process, bounded and without secrets. `cause` is that of `AgentResult`.
    """

    outcome: str
    text: str
    output: str = ""
    cause: str | None = None


def with_request(environment: Mapping[str, str], request: AgentRequest) -> dict[str, str]:
    """Return the allow-listed environment, plus the variables that identify the task to the process."""
    return {
        **environment,
        **request.environment,
        "IDUMB_TASK": request.subject,
        "IDUMB_ATTEMPT": str(request.attempt),
        "IDUMB_ROLE": request.role,
        **child_process.run_cookies(request.run_id, request.workspace),
    }


def not_started(argv: Sequence[str], problem: OSError) -> str:
    """Say why a program could not be started, and where to look."""
    reason = problem.strerror or str(problem)
    if problem.filename is not None and os.fspath(problem.filename) != argv[0]:
        return f"{argv[0]} could not be started in {problem.filename}: {reason}"
    return f"{argv[0]} could not be started: {reason}; check that it is installed and on PATH"


def step(
    argv: Sequence[str],
    request: AgentRequest,
    environment: Mapping[str, str],
    timeout: float | None,
    expected: int,
    redact: Callable[[str], str],
) -> Reply:
    """Run one `run` step. Redact before truncating: half a secret would not be recognised."""
    try:
        finished = child_process.run(
            argv,
            cwd=request.workspace,
            environment=environment,
            timeout=timeout,
            idle_timeout=request.idle_timeout,
            limits=request.limits,
            guarded=True,
        )
    except OSError as problem:
        return Reply(outcome.ERRORED, not_started(argv, problem))
    output = finished.output.text(redact)
    ended, words = _ending(argv, finished, expected)
    last = last_words(output) if ended != outcome.COMPLETED else ""
    return Reply(ended, f"{words}: {last}" if last else words, output, finished.cause)


def _ending(argv: Sequence[str], finished: child_process.Finished, expected: int) -> tuple[str, str]:
    code = finished.exit_code
    if code == expected and not finished.timed_out:
        return outcome.COMPLETED, f"exit {code}"
    if words := finished.words():
        return outcome.TIMED_OUT if finished.timed_out else outcome.FAILED, words
    if code in {NOT_EXECUTABLE, NOT_FOUND} and argv[:2] == ["/bin/sh", "-c"]:
        return outcome.ERRORED, f"exit {code}: {shell_error(code)}"
    return outcome.FAILED, f"exit {code}, expected {expected}"


def last_words(output: str, lines: int = 5, longest: int = 400) -> str:
    """Return the end of the output, short enough for a message."""
    text = "\n".join(output.strip().splitlines()[-lines:])
    return text if len(text) <= longest else f"...{text[-longest:]}"


def shell_error(code: int | None) -> str:
    """Explain exit codes 126 and 127."""
    return "a program was not found" if code == NOT_FOUND else "a program is not executable"
