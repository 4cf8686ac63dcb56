"""Reports once per run which sandbox is in force, and refuses what cannot have a required one."""

from __future__ import annotations

from collections.abc import Iterable

from idumb.app.core import schedule
from idumb.app.core.run_context import RunContext
from idumb.domain import contract as contracts
from idumb.domain import wording
from idumb.domain.agent import HUMAN, STEPS, capabilities
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.runs import sandbox
from idumb.domain.runs.sandbox import Fence, Support

CODE = "sandbox.none"


def announce(context: RunContext) -> None:
    """Print the level in force. Refusal `sandbox.none` if the run requires a sandbox and some task has none."""
    settings = context.services.settings
    chosen = settings.sandbox
    if chosen is None or not settings.sandboxed:
        if context.sandboxed:
            raise _refusal(context, "The configuration has no sandbox.", "Set `sandbox: auto` in .idumb/config.yaml")
        if chosen is not None:
            context.services.reporter.note(
                "Sandbox: off. idumb detects what agents write elsewhere, but does not stop it."
            )
        return
    support = context.services.sandboxes.support()
    level, why = sandbox.choose(Fence(()), support)
    if context.sandboxed:
        _require(context, level, why)
    context.services.reporter.note(f"Sandbox: {_words(level, why, support)}.")


_SUPPORT = "idumb doctor shows what this machine supports, and which package would add more"


def _words(level: str, why: str, support: Support) -> str:
    package = f"; install the package {support.add}" if support.add else ""
    return f"{level}, because {why}{package}" if level == sandbox.DETECTION else level


def _pending(context: RunContext) -> Iterable[Task]:
    tasks = context.journal.state.tasks
    return (
        t
        for t in map(context.contract.tasks.__getitem__, context.contract.order)
        if tasks[t.id].status in schedule.RUNNABLE
    )


def _builder(context: RunContext, task: Task) -> str:
    return contracts.builder_of(context.plans[task.id], task, context.services.settings) or STEPS


def _agents(context: RunContext, task: Task) -> Iterable[str]:
    validator = contracts.validator_of(context.plans[task.id], task, context.services.settings)
    return (_builder(context, task), *((validator,) if validator else ()))


def _require(context: RunContext, level: str, why: str) -> None:
    if level == sandbox.DETECTION:
        raise _refusal(context, f"No sandbox is available: {why}.")
    names = {name for task in _pending(context) for name in _agents(context, task)} - {HUMAN}
    outside = [name for name in sorted(names) if not capabilities(context.agents.get(name)).sandboxed]
    if outside:
        hint = "Bind another agent in .idumb/config.yaml"
        raise _refusal(context, f"idumb cannot put {wording.listed(outside)} in a sandbox.", hint)


def _refusal(context: RunContext, words: str, hint: str = _SUPPORT) -> Refusal:
    return Refusal(CODE, words, hint=hint, details={"phase": context.contract.phase})
