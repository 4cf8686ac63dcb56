"""Runs the checks of a plan's unfinished tasks before their work, for `check-plan --run-checks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from idumb.app.attempt import judge, task_checks
from idumb.app.consent import phase_grants
from idumb.app.core import run_lookup, schedule
from idumb.app.core.services import Checks, Services
from idumb.app.worktree import task_base
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.finding import ERROR, WARNING, Finding
from idumb.domain.plans.plan import Plan, Task
from idumb.domain.proof import evidence, gate_table
from idumb.domain.runs.run import RunState

_CODE = "check.passed-before"
_BROKEN_BEFORE = "invariant.broken-before"


class Ran(NamedTuple):
    """What was run, as `data.ran` has it, and the findings."""

    rows: list[dict[str, Any]]
    findings: list[Finding]


def run(services: Services, contract: Contract, *, strict: bool) -> Ran:
    """Run the checks of unfinished tasks on HEAD, in a working tree of their own.

    They are code of the repository, so they need the consent that a run needs.
    """
    latest = run_lookup.latest_run(services, contract.phase)
    state = latest if latest is not None and set(latest.tasks) >= set(contract.order) else RunState()
    phase_grants.require_for(services, contract, state)
    checks = services.open_checks(services.here, state.id).given(contract.variables)
    done = {id for id, status in schedule.statuses(contract, state).items() if status in outcome.ENDED}
    # HEAD's tree, with the finished tasks that nobody committed
    tree = task_base.tree_between_attempts(services, state, services.trees.scan() if state.uncommitted() else "")
    ran = Ran([], [])
    try:
        for id, plan in contract.plan_of.items():
            task = contract.tasks[id]
            if id in done or task.is_human:
                continue
            checks.renew()
            results: dict[str, str] = {}
            for command, subject in task_checks.commands(task).items():
                with services.interrupts.armed():
                    results[command] = result = _result(checks, subject, command, tree)
                ran.rows.append({"task": task.id, "subject": subject, "command": command, "result": result})
            ran.findings.extend(_findings(plan, task, results, strict=strict))
        _invariants(services, contract, checks, tree, ran)
    finally:
        checks.end_processes()
    return ran


def _invariants(services: Services, contract: Contract, checks: Checks, tree: str, ran: Ran) -> None:
    """Run the invariants. One that fails before the work must be made true by the first task that keeps it."""
    level = gate_table.rule(services.settings, gate_table.INVARIANTS).level
    severity = ERROR if level == gate_table.CRITICAL else WARNING
    for plan in contract.plans:
        for invariant in plan.invariants:
            checks.renew()
            subject = f"invariant {invariant.id}"
            with services.interrupts.armed():
                result = _result(checks, subject, invariant.check, tree)
            ran.rows.append({"task": None, "subject": subject, "command": invariant.check, "result": result})
            if result in evidence.BROKEN:
                words = {"id": invariant.id, "text": invariant.text}
                found = f"{invariant.id} {result.replace('_', ' ')}"
                ran.findings.append(plan.finding(_BROKEN_BEFORE, "", found, severity=severity, words=words))


def _result(checks: Checks, subject: str, command: str, tree: str) -> str:
    try:
        return checks.command(subject, "", command, tree=tree).result
    except Refusal as refusal:
        if refusal.code != judge.NOT_PREPARED:
            raise
        return evidence.ERRORED  # before the work, the files may be missing from which checkout.prepare installs


def _findings(plan: Plan, task: Task, results: dict[str, str], *, strict: bool) -> Iterator[Finding]:
    lines = {c.id: c.span.line for c in task.acceptance}
    commands = {c.id: c.command for c in task.acceptance}
    for subject in task_checks.passed_before(task, results):
        yield plan.finding(
            _CODE,
            "acceptance" if subject in lines else "verify",
            commands.get(subject) or "Verify",
            task=task,
            severity=ERROR if strict else WARNING,
            line=lines.get(subject, 0),
            words={"subject": subject},
        )
