"""The checks of one task that are about its own work, to run again after other tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from idumb.app.ports.checks import Checks
from idumb.domain import contract as contracts
from idumb.domain.plans.plan import CHECK, Condition, Task
from idumb.domain.proof.evidence import Evidence


class OwnCheck(NamedTuple):
    """A criterion's check, a Verify command, a test (`is_test`) or, with `condition`, a postcondition."""

    subject: str
    text: str
    command: str
    condition: Condition | None = None
    is_test: bool = False

    def run(self, checks: Checks, timeout: float, tree: str | None) -> Evidence:
        if self.condition is not None:
            return checks.condition(self.subject, self.condition, timeout=timeout, tree=tree)
        return checks.command(self.subject, self.text, self.command, timeout=timeout, tree=tree)


def of_task(task: Task, before: str = "", after: str = " after") -> Iterator[OwnCheck]:
    """Yield the checks in the order in which an attempt runs them: a later one may use what an earlier one built.

    Their subjects begin with `before`, and those of tests end with `after`.
    """
    proofs = contracts.proofs(task)
    for criterion in task.acceptance:
        if criterion.command and proofs[criterion.id] == CHECK:
            yield OwnCheck(f"{before}{criterion.id}", criterion.text, criterion.command)
    for i, command in enumerate(task.verify, 1):
        yield OwnCheck(f"{before}verify {i}", command, command)
    for i, test in enumerate(task.tests, 1):
        yield OwnCheck(f"{before}test {i}{after}", test.intent or test.command, test.command, is_test=True)
    for i, condition in enumerate(task.postconditions, 1):
        yield OwnCheck(f"{before}postcondition {i}", condition.subject, "", condition)
