"""An attempt goes through the table of its stages; a failed one skips later stages (R-RUN-3)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from idumb.app.attempt import pipeline
from idumb.app.attempt.pipeline import Stage
from idumb.app.core.attempt import Attempt
from idumb.domain import outcome
from idumb.domain.plans.plan import Plan, Task

TASK = Task("T1-01", "Work")
PLAN = Plan("p", "h", "1", "01", "A plan", "Work is done", tasks=(TASK,))
ATTEMPT = Attempt(
    task=TASK,
    plan=PLAN,
    number=1,
    base="",
    feedback="",
    started=0.0,
    builder="steps",
    validator=None,
    ref="refs/idumb/attempt",
)


class Calls:
    """A run context that counts guards and checks for an interrupt, and stages that note their names."""

    def __init__(self) -> None:
        self.guards = self.checks = 0
        self.stages: list[str] = []
        self.services = SimpleNamespace(
            owner=SimpleNamespace(guard=self._guard), interrupts=SimpleNamespace(check=self._check, received=15)
        )

    def _guard(self) -> None:
        self.guards += 1

    def _check(self) -> None:
        self.checks += 1

    def stage(self, name: str, **options: Any) -> Stage:
        def run(_: Any, attempt: Attempt) -> Attempt:
            self.stages.append(name)
            return attempt.ended(outcome.FAILED, name) if name == "fails" else attempt

        return Stage(run, **options)


def led(calls: Calls, *stages: Stage) -> Attempt:
    return pipeline.lead(calls, ATTEMPT, stages)  # type: ignore[arg-type]


def test_a_lost_working_tree_counts_before_an_interrupt() -> None:
    """An interrupt is recorded, and only the owner may record anything."""
    calls, order = Calls(), list[str]()
    calls.services.owner.guard = lambda: order.append("guard")
    calls.services.interrupts.check = lambda: order.append("interrupt")
    led(calls, calls.stage("builds"))
    assert order == ["guard", "interrupt"]


def test_a_failed_attempt_skips_later_stages() -> None:
    """Ownership is checked before each stage that runs, an interrupt only without a failure."""
    calls = Calls()
    names = ("builds", "fails", "judges")
    stages = (*map(calls.stage, names), calls.stage("records", also_failed=True))
    assert led(calls, *stages).outcome == outcome.FAILED
    assert calls.stages == ["builds", "fails", "records"]
    assert (calls.guards, calls.checks) == (3, 2)
