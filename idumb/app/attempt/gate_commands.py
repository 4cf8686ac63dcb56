"""Runs the commands of gates as checks run: on the frozen files, and on the tree before the task."""

from __future__ import annotations

import dataclasses

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.worktree import task_base
from idumb.domain.proof.evidence import GATE, Evidence
from idumb.domain.proof.gate import Inputs


def enable(context: RunContext, attempt: Attempt, inputs: Inputs) -> Inputs:
    """Return the inputs of the gates with the settings that name gates, and with what runs their commands."""
    services, checks, work = context.services, context.checks, context.work
    usual = services.settings.run.check_timeout
    asked = {
        name: dataclasses.replace(own, timeout=own.timeout or usual) for name, own in services.settings.gates.items()
    }
    base = task_base.tree_between_attempts(services, context.journal.state, attempt.base, attempt.mine)

    def run(gate: str, command: str, *, before: bool) -> Evidence:
        tree = base if before else attempt.proven or attempt.candidate
        limit = float(asked[gate].timeout or usual)
        return checks.alone(f"{GATE}{gate}", command, timeout=limit, tree=tree)

    return dataclasses.replace(inputs, asked=asked, before=lambda path: work.entry(base, path), run=run)
