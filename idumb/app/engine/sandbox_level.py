"""Reports once per run which sandbox is in force, and refuses what cannot have a required one."""

from __future__ import annotations

from idumb.app.core import schedule
from idumb.app.core.run_context import RunContext
from idumb.domain import contract as contracts
from idumb.domain import permissions, wording
from idumb.domain.agent import HUMAN, STEPS, capabilities
from idumb.domain.errors import Refusal


def announce(context: RunContext) -> None:
    """Print the level in force. Refusal `sandbox.none` if the configuration requires one and some task has none."""
    settings, note = context.services.settings, context.services.reporter.note
    if not settings.sandboxed:
        note("Sandbox: off. idumb detects what agents write elsewhere, but does not stop it.")
        return
    support = context.services.sandboxes.support()
    level, why = permissions.choose_sandbox(support)
    if settings.requires_sandbox and level == permissions.DETECTION:
        hint = "idumb doctor shows what this machine supports, and which package would add more"
        raise Refusal("sandbox.none", f"No sandbox is available: {why}.", hint=hint)
    if settings.requires_sandbox and (outside := _outside(context)):
        hint = "Bind another agent in .idumb/config.yaml"
        raise Refusal("sandbox.none", f"idumb cannot put {wording.listed(outside)} in a sandbox.", hint=hint)
    package = f"; install the package {support.add}" if support.add else ""
    words = f"{level}, because {why}{package}" if level == permissions.DETECTION else level
    note(f"Sandbox: {words}.")


def _outside(context: RunContext) -> list[str]:
    """Return the agents of unfinished tasks that no sandbox can limit."""
    plans, states, settings = context.plans, context.journal.state.tasks, context.services.settings
    names = set[str | None]()
    for task in context.contract.tasks.values():
        if states[task.id].status in schedule.RUNNABLE:
            names.add(contracts.builder_of(plans[task.id], task, settings) or STEPS)
            names.add(contracts.validator_of(plans[task.id], task, settings))
    programs = sorted(name for name in names if name not in (None, HUMAN))
    return [name for name in programs if not capabilities(context.agents.get(name)).sandboxed]
