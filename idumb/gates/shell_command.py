"""Runs one command string with `/bin/sh -c` and says what its end proves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from idumb.domain.plans import empty_checks
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.lazy_dataclass import dataclass
from idumb.system import child_process

SHELL = "/bin/sh"
NOT_FOUND = 127
_NOT_STARTED = {126: "execute", NOT_FOUND: "find"}
NO_PROOF = ("precondition", "setup", "rollback of ")
"""Subjects of commands that prepare or undo work and prove nothing about it."""


@dataclass(frozen=True, slots=True)
class Shell:
    """`limits`, `idle_timeout` (seconds) and `beside` are those of `child_process.run`."""

    redact: Callable[[str], str]
    idle_timeout: float | None = None
    limits: Mapping[str, int] | None = None
    beside: Callable[[int], None] | None = None

    def run(
        self,
        asked: Evidence,
        root: str,
        environment: Mapping[str, str],
        timeout: float | None,
        launcher: Sequence[str] = (),
    ) -> Evidence:
        """Return the evidence `asked` with the result of its command in `root`, an absolute path.

        `launcher` are the arguments of a program that becomes the shell.
        """
        command = asked.command or ""
        asked = dataclasses.replace(asked, result=evidence.ERRORED, argv=(SHELL, "-c", command))
        if "\0" in command:
            return dataclasses.replace(asked, output="the command contains a NUL character")
        try:
            finished = child_process.run(
                (*launcher, *asked.argv),
                cwd=root,
                environment=environment,
                timeout=timeout,
                idle_timeout=self.idle_timeout,
                limits=self.limits,
                beside=self.beside,
            )
        except OSError as problem:
            return dataclasses.replace(asked, output=f"{SHELL} could not be started in {root}: {problem.strerror}")
        output = finished.output.text(self.redact)
        result, note = _judged(asked, finished, output)
        return dataclasses.replace(
            asked,
            result=result,
            exit_code=finished.exit_code,
            output=f"{output.rstrip()}\n[{note}]".lstrip() if note else output,
            output_sha256=finished.output.sha256,
            truncated=finished.output.truncated,
            seconds=finished.seconds,
            cause=finished.cause,
        )


def _judged(asked: Evidence, finished: child_process.Finished, output: str) -> tuple[str, str]:
    """Return the result, and a note that explains what the exit code does not."""
    if finished.timed_out:
        return evidence.TIMED_OUT, finished.words()
    if finished.exit_code in _NOT_STARTED:
        could_not = f"exit {finished.exit_code}: the shell could not {_NOT_STARTED[finished.exit_code]} a program"
        return evidence.ERRORED, finished.words() or f"{could_not}, so nothing was checked"
    if finished.exit_code != 0:
        return evidence.FAILED, finished.words()
    counts = output and not asked.subject.startswith(NO_PROOF) and not finished.output.truncated
    if counts and (no_tests := empty_checks.ran_no_test(asked.command or "", output)):
        # An invariant also holds in a project that has no test yet.
        is_invariant = "invariant" in asked.subject.split(" ")
        return evidence.UNPROVEN if is_invariant else evidence.FAILED, no_tests
    return evidence.PASSED, finished.words()
