"""Checks and gates, which idumb runs itself to judge the work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from idumb.domain.plans.plan import Condition

if TYPE_CHECKING:  # types that only some commands use; those commands import them
    from idumb.domain.proof.evidence import Evidence


class Checks(Protocol):
    """Runs the project's commands and conditions. Only this produces proof.

    A check with a `tree` runs in a working tree of its own that holds exactly that tree. `tree=None` is for what
    judges the machine instead: set-up, preconditions, and commands that take work back run in the workspace.
    """

    def command(
        self,
        subject: str,
        text: str,
        command: str,
        *,
        timeout: float | None,
        tree: str | None,
    ) -> Evidence:
        """Run a fixed command string with `/bin/sh -c` on a tree or in the workspace. Codes 126 and 127 are errors."""

    def alone(self, subject: str, command: str, *, timeout: float | None, tree: str) -> Evidence:
        """Run a command that sees nothing of earlier ones, where checks run.

        A result of the same tree, command and environment is remembered as long as this object lives, never on disk.
        """

    def renew(self) -> None:
        """Make the next check not see what earlier ones left."""

    def given(self, variables: Mapping[str, str]) -> Checks:
        """Return the same checks, with these environment variables for every command."""

    def condition(self, subject: str, condition: Condition, *, timeout: float | None, tree: str | None) -> Evidence: ...

    def start_controls(self, commands: Mapping[str, str], *, tree: str, timeout: float) -> None:
        """Begin to run commands, each with its subject, on the tree before the work.

        They run beside the builder, where checks run: no check may run before `end_controls`.
        """

    def end_controls(self, *, limit: float | None) -> Mapping[str, str]:
        """Return the result of each control, by its command. After `limit` seconds, one that still runs is killed.

        Nothing that they left takes part in a later check.
        """

    def end_processes(self) -> tuple[int, ...]:
        """Kill the processes that builders and checks left; return their ids."""
