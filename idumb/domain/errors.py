"""Every error that a user can see, with its exit code. Failed work is an `Outcome`, never one of these."""

from __future__ import annotations

TYPE_CHECKING = (
    False  # importing `typing` is slow, and `idumb status` imports this module; type checkers know this name
)
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from idumb.domain.action import Action
    from idumb.domain.finding import Finding

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INVALID = 3
EXIT_REFUSED = 4
EXIT_WAITING = 5
EXIT_INTERNAL = 70
EXIT_HUNG_UP = 129
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class IdumbError(Exception):
    """What happened, and what to do next.

    - `code`: part of the public interface (`git.not-a-repository`); the wording of `message` is not.
    - `step`: what to do next: one command, or words. `hint`: the same as a text.
    - `details`: JSON-serialisable.
    """

    exit_code = EXIT_INTERNAL

    def __init__(
        self, code: str, message: str, *, hint: Action | str | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.step = hint
        self.details: dict[str, Any] = dict(details or {})

    @property
    def hint(self) -> str | None:
        return None if self.step is None else str(self.step)


class UsageError(IdumbError):
    """The command line is invalid."""

    exit_code = EXIT_USAGE


class InputError(IdumbError):
    """A plan or the configuration is invalid. Carries all problems at once."""

    exit_code = EXIT_INVALID

    def __init__(
        self,
        code: str,
        message: str,
        *,
        findings: Sequence[Finding] = (),
        hint: Action | str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(code, message, hint=hint, details=details)
        self.findings = tuple(findings)


class Refusal(IdumbError):
    """idumb refuses: wrong repository state, no consent, a held lock, or access denied by the system.

    Nothing has changed, except if the system denied access; then everything recorded before is kept.
    """

    exit_code = EXIT_REFUSED


class Waiting(Refusal):
    """A refusal that only a person's answer can resolve: the question was recorded and is open."""

    exit_code = EXIT_WAITING


class WorkFailed(IdumbError):
    """Work failed and the failure cannot be returned as a value, for example if git refused a commit."""

    exit_code = EXIT_FAILED


class AdapterError(IdumbError):
    """An agent or tool could not be used: it is missing, not executable, or its answer is malformed."""

    exit_code = EXIT_FAILED


class StoreError(IdumbError):
    """The event log is corrupt, newer than this program, or refuses the write."""

    exit_code = EXIT_REFUSED


class Interrupted(IdumbError):
    """The user or the system interrupted the command; `exit_code` is 128 plus the signal number."""

    def __init__(self, signal_number: int) -> None:
        super().__init__("run.interrupted", "interrupted", hint="to see the state of the run: idumb status")
        self.signal_name = {1: "SIGHUP", 2: "SIGINT", 15: "SIGTERM"}.get(signal_number, f"signal {signal_number}")
        self.exit_code = 128 + signal_number
