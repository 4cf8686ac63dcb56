"""Checks and gates, which idumb runs itself to judge the work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from idumb.domain.plans.plan import Condition

if TYPE_CHECKING:  # types that only some commands use; those commands import them
    from idumb.domain.proof.evidence import Evidence


PROTECTED = "protected"
COPIED = "copied"
LINKED = "linked"

HOME = "HOME"
TMPDIR = "TMPDIR"
BESIDE = "../"
"""What the user has around a working tree: a home, a folder for temporary files, and what is beside it (`../NAME`)."""


class Borrowed(NamedTuple):
    """The paths of the user that a working tree of checks has, and how each is provided.

    A check can change LINKED ones. `launcher` are the arguments before those of a check, which protect the PROTECTED
    ones from it. `prepared` are paths that `checks.prepare` made.
    """

    ways: Mapping[str, str] = MappingProxyType({})
    launcher: tuple[str, ...] = ()
    prepared: tuple[str, ...] = ()


class Checks(Protocol):
    """Runs the project's commands and conditions. Only this produces proof.

    `apart`: a check with a `tree` runs in a working tree of its own that holds exactly that tree. Every other check
    runs in the workspace.
    """

    @property
    def apart(self) -> bool: ...

    def command(
        self,
        subject: str,
        text: str,
        command: str,
        *,
        timeout: float | None,
        tree: str | None,
        lent: Sequence[str] = (),
        views: Sequence[str] = (),
    ) -> Evidence:
        """Run a fixed command string with `/bin/sh -c` in the workspace or apart. Codes 126 and 127 are errors.

        `lent` are ignored paths of the workspace that a check apart may use this time. `views` are some of
        `surroundings` that it may see this time, and cannot change.
        """

    def alone(self, subject: str, command: str, *, timeout: float | None, tree: str) -> Evidence:
        """Run a command that sees nothing of earlier ones, where checks run.

        A result of the same tree, command and environment is remembered as long as this object lives, never on disk.
        """

    def surroundings(self, failed: Evidence) -> Sequence[str]:
        """Return what the user has around, and the place of a failed check has not: HOME, TMPDIR, `../NAME`.

        Empty if this machine cannot show that to a check without a risk for it.
        """

    def renew(self) -> None:
        """Make the next check apart not see what earlier ones left."""

    def on_top_of(self, commit: str) -> Checks:
        """Return the same checks, except that HEAD is this commit where a check runs apart."""

    def given(self, variables: Mapping[str, str]) -> Checks:
        """Return the same checks, with these environment variables for every command."""

    def condition(self, subject: str, condition: Condition, *, timeout: float | None, tree: str | None) -> Evidence: ...

    def start_controls(self, commands: Mapping[str, str], *, tree: str, timeout: float, delay: float) -> None:
        """Begin to run commands, each with its subject, on the tree before the work; begin after `delay` seconds.

        They run beside everything else, in a working tree of their own.
        """

    def controls(self, *, wait: bool) -> Mapping[str, str]:
        """Return the result of each control that has ended, by its command; with `wait`, of all."""

    def stop_controls(self) -> None:
        """End the control that runs now, and begin no other."""

    def watch(self, commands: Iterable[str]) -> None:
        """Record which programs these commands start, before the first builder can replace them."""

    def end_processes(self) -> tuple[int, ...]:
        """Kill the processes that builders and checks left; return their ids."""
