"""The confidence in a plan before it runs: one score, from parts that each give their reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.finding import WARNING, Finding
from idumb.domain.plans.plan import CHECK, IRREVERSIBLE, STEPS, VERIFY, Task
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """`value` is between 0 and 1, or None if there is nothing to judge; `weight` is how much it counts."""

    name: str
    value: float | None
    weight: int
    why: str

    def as_dict(self) -> dict[str, Any]:
        value = None if self.value is None else round(self.value, 3)
        return {"name": self.name, "value": value, "weight": self.weight, "why": self.why}


@dataclass(frozen=True, slots=True)
class Confidence:
    """`score` is the weighted mean of the parts that could be judged, with two decimals."""

    score: float
    parts: tuple[Part, ...]


def assess(contract: Contract, findings: Iterable[Finding], ready: Sequence[str], needed: Sequence[str]) -> Confidence:
    """Assess a contract.

    `findings` are those of its checks, `needed` the agents that must start, `ready` those that can start.
    """
    tasks = [contract.tasks[task] for task in contract.order]
    built = [task for task in tasks if not task.is_human]
    parts = (
        _checks(findings, len(tasks)),
        _proofs(built),
        _coverage(contract),
        _share("files", 1, [task.files is not None for task in built], "tasks declare their files"),
        _share("reversible", 1, [task.rollback.kind != IRREVERSIBLE for task in tasks], "tasks can be rolled back"),
        _share("agents", 2, [name in ready for name in needed], "agents of level 1 and above can be started"),
    )
    judged = [part for part in parts if part.value is not None]
    total = sum(part.weight for part in judged)
    score = sum((part.value or 0.0) * part.weight for part in judged) / total if total else 0.0
    return Confidence(round(score, 2), parts)


def _checks(findings: Iterable[Finding], tasks: int) -> Part:
    """Return the share of tasks without a warning."""
    doubts = sum(1 for finding in findings if finding.severity == WARNING)
    value = max(0.0, 1.0 - doubts / max(tasks, 1))
    return Part("checks", value, 2, f"warnings: {doubts}, tasks: {tasks}")


def _proofs(tasks: Sequence[Task]) -> Part:
    """Return the share of proofs that are commands. Opinions, people and unproven criteria do not count."""
    proofs = [proof in (CHECK, VERIFY, STEPS) for task in tasks for proof in contracts.proofs(task).values()]
    tests = [True for task in tasks for _ in task.tests]
    return _share("proofs", 4, [*proofs, *tests], "criteria and tests are proven by commands")


def _coverage(contract: Contract) -> Part:
    declared = {requirement for plan in contract.plans for requirement in plan.requirements}
    served = {requirement for task in contract.tasks.values() for requirement in task.requirements}
    return _share("coverage", 2, [requirement in served for requirement in declared], "requirements have a task")


def _share(name: str, weight: int, holds: Sequence[bool], words: str) -> Part:
    value = sum(holds) / len(holds) if holds else None
    return Part(name, value, weight, f"{sum(holds)} of {len(holds)} {words}")
