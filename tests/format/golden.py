"""The cases of the plan format, each read once in a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from idumb.app.ports import ParsedPlan
from idumb.domain import contract
from idumb.domain.plans.plan import Plan
from idumb.markdown.plans import plan_parser

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.md"))


@cache
def data(name: str) -> bytes:
    return (CASES / f"{name}.md").read_bytes()


@cache
def parsed(name: str) -> ParsedPlan:
    return plan_parser.parse(data(name), "case.md")


def as_plan(tasks: str) -> bytes:
    """A plan with these tasks."""
    head = '---\ntype: plan\nphase: "1"\nplan: "01"\ntitle: T\ngoal: G\n---\n\n## Tasks\n\n'
    return (head + tasks).encode()


def plans() -> dict[str, Plan]:
    """Every case that is a plan."""
    return {name: plan for name in NAMES if (plan := parsed(name).plan)}


def digests(plan: Plan) -> dict[str, str]:
    return {task.id: contract.task_digest(task) for task in plan.tasks}
