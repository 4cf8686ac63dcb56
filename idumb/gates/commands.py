"""A command as a check: its exit decides, and an exit that says "could not run" is an error, no failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.system.processes import child_process

SHELL = "/bin/sh"
NOT_EXECUTABLE = 126
NOT_FOUND = 127


def check(
    subject: str,
    text: str,
    command: str,
    *,
    root: str,
    environment: Mapping[str, str],
    timeout: float | None,
    tree: str | None,
    redact: Callable[[str], str],
    idle_timeout: float | None = None,
    limits: Mapping[str, int] | None = None,
) -> Evidence:
    """Run one fixed string by `/bin/sh -c` in `root`, which is an absolute path. Times are in seconds."""
    argv = (SHELL, "-c", command)
    if "\0" in command:
        return Evidence(subject, text, evidence.ERRORED, command, argv, output="the command holds a NUL character")
    try:
        finished = child_process.run(
            argv, cwd=root, environment=environment, timeout=timeout, idle_timeout=idle_timeout, limits=limits
        )
    except OSError as problem:
        words = f"{SHELL} could not be started in {root}: {problem.strerror}"
        return Evidence(subject, text, evidence.ERRORED, command, argv, output=words, tree=tree)
    note = _note(finished)
    output = finished.output.text(redact)
    return Evidence(
        subject=subject,
        text=text,
        result=_result(finished),
        command=command,
        argv=argv,
        exit_code=finished.exit_code,
        output=f"{output.rstrip()}\n[{note}]".lstrip() if note else output,
        output_sha256=finished.output.sha256,
        truncated=finished.output.truncated,
        tree=tree,
        seconds=finished.seconds,
        cause=finished.cause,
    )


def _result(finished: child_process.Finished) -> str:
    if finished.timed_out:
        return evidence.TIMED_OUT
    if finished.exit_code == 0:
        return evidence.PASSED
    return evidence.ERRORED if finished.exit_code in {NOT_EXECUTABLE, NOT_FOUND} else evidence.FAILED


def _note(finished: child_process.Finished) -> str:
    """What the exit alone does not tell a reader."""
    if words := finished.words():
        return words
    if finished.exit_code == NOT_FOUND:
        return "exit 127: the shell did not find a program; nothing was checked"
    if finished.exit_code == NOT_EXECUTABLE:
        return "exit 126: the shell could not execute a program; nothing was checked"
    return ""
