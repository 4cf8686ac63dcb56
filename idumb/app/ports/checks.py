"""Checks and gates: what idumb runs itself to judge the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from idumb.domain.plans.plan import Condition, Plan, Task
from idumb.domain.proof.ledger import Change

if TYPE_CHECKING:  # what only some commands pass around is loaded by those that make it
    from idumb.domain.proof.evidence import Evidence


class Checks(Protocol):
    """Runs the project's own commands and conditions; the only way a proof is made."""

    def command(self, subject: str, text: str, command: str, *, timeout: float | None, tree: str | None) -> Evidence:
        """Run a fixed command string by `/bin/sh -c` in the workspace; exit 126 and 127 are errors."""

    def condition(self, subject: str, condition: Condition, *, timeout: float | None, tree: str | None) -> Evidence: ...

    def end_processes(self) -> tuple[int, ...]:
        """End every process that builders and checks left behind; their ids."""


class Symbols(Protocol):
    def defined(self, path: str, data: bytes) -> frozenset[str] | None:
        """Names that a file defines, members as `Class.member`; None where nobody can tell."""


class Gate(Protocol):
    """A check of our own, made from what changed; pure, so it never touches the workspace."""

    name: str

    def judge(
        self,
        task: Task,
        plan: Plan,
        changes: Sequence[Change],
        line_counts: Mapping[str, tuple[int | None, int | None]],
    ) -> tuple[Evidence, ...]: ...
