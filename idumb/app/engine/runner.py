"""Runs the tasks of one run in order until none is left, a person is needed, or the policy says stop."""

from __future__ import annotations

from idumb.app.attempt import entry, pipeline, projections
from idumb.app.attempt.pipeline import Stage
from idumb.app.consent import needs, phase_grants
from idumb.app.core import actions, run_lookup, schedule
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Checks
from idumb.app.engine import moves, unfinished_attempts
from idumb.app.engine.moves import Ending
from idumb.app.worktree import done_work, task_base
from idumb.domain import agent, outcome, permissions, wording
from idumb.domain import contract as contracts
from idumb.domain.agent import HUMAN, STEPS, capabilities
from idumb.domain.errors import Interrupted, Refusal
from idumb.domain.plans.plan import Condition, Setup, Task


def run_tasks(context: RunContext) -> Ending:
    """Work through the schedule."""
    waiting: Ending | None = None
    due = 0.0
    for task_id in schedule.ready(context.contract, context.state):
        stopped = _paused(context) or _lost(context)
        if stopped is not None:
            return stopped
        ending = _run_task(context, context.contract.tasks[task_id])
        due = projections.write_progress_if_due(context, due)
        if ending is not None and ending.kind != "waiting":
            return ending
        waiting = ending or waiting
    if waiting is None and any(t.status == outcome.WAITING for t in context.state.tasks.values()):
        return Ending("waiting", "waits for a person")
    return waiting or Ending("done")


def _paused(context: RunContext) -> Ending | None:
    """Return a requested stop. Between two tasks everything is saved."""
    asked = context.services.owner.stop_request()
    if asked is None or not asked.after_task:
        return None
    return Ending("paused", actions.stopped_by(asked.by, asked.why), fields={"by": asked.by, "why": asked.why})


def _lost(context: RunContext) -> Ending | None:
    """Return why nothing more is built if the user took done work from the branch meanwhile: `resume` asks first."""
    why = done_work.words_of_lost(context.state, done_work.lost(context.services, context.state))
    return Ending("waiting", f"waits: {why}") if why else None


def _run_task(context: RunContext, task: Task) -> Ending | None:
    """Lead a task as far as it goes; None if the run continues, however the task ended."""
    if task.is_history:
        context.journal.append("task.omitted", task.id, by=task.id, reason=outcome.DONE_BEFORE)
        return None
    if contracts.in_editor(context.contract.plan_of[task.id], task, context.services.settings):
        return Ending(agent.EDITOR, f"{task.id} waits for your editor; to begin, run `idumb start {task.id}`", task.id)
    context = context.of(task)
    while True:
        ending = moves.advance(context, task)
        if ending is not moves.READY:
            return None if ending.kind == "done" else ending
        stopped = moves.conclude(context, run_stages(context, entry.begin(context, task), pipeline.MAKE))
        if stopped is not None:
            return stopped


def run_stages(context: RunContext, attempt: Attempt, stages: tuple[Stage, ...]) -> Attempt:
    """Lead an attempt through stages of the pipeline. If an interruption ends it, record that and raise again."""
    task = attempt.task
    try:
        return pipeline.lead(context, attempt, stages)
    except Interrupted as interrupted:
        context.services.owner.guard()
        task_state = context.state.tasks[task.id]
        # If git was about to commit, only the branch shows whether it did, so `resume` checks it. Work begun in the
        # editor is unchanged, and is submitted again.
        if not task_state.intended and task_state.attempt.opened is None:
            took = context.services.clock.monotonic() - attempt.started
            why = run_lookup.why_stopped(context.services, interrupted)
            unfinished_attempts.record_interruption(context, task, why, took)
        raise


def require_agents(context: RunContext) -> None:
    """Refuse if a program that builds or validates cannot be started, or nobody agreed to it."""
    services, contract, agents = context.services, context.contract, context.agents
    needs.require_startable(services, contract, agents)
    phase_grants.require_agents(services, contract, agents, actions.continuing(context.state))


def require_setup(context: RunContext) -> None:
    """Refuse if something is missing that a person must provide: a variable, or a check that passes.

    Like preconditions, its checks judge the machine, so they have the user's environment.
    """
    all_needed = [needed for plan in context.contract.plans for needed in plan.setup]
    if not all_needed:
        return
    tree = task_base.tree_between_attempts(context.services, context.state, context.services.trees.scan())
    for needed in all_needed:
        if missing := _missing(context.checks, needed, tree):
            raise Refusal(
                "setup.missing",
                f"{needed.service} is not set up ({missing}). It is needed because: {needed.why}",
                hint=needed.where or f"Provide it, then idumb execute-phase {context.contract.phase}",
            )


def _missing(checks: Checks, needed: Setup, tree: str) -> str:
    """Return the first thing that is missing; "" if nothing is."""
    for name in needed.env:
        if not checks.condition("setup", Condition("env", name), tree=None).passed:
            return f"{name} is not set"
    if needed.check is None:
        return ""
    result = checks.command("setup", needed.service, needed.check, tree=tree)
    return "" if result.passed else f"`{needed.check}` {result.result}"


def require_sandbox(context: RunContext) -> None:
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
    plans, states, settings = context.contract.plan_of, context.state.tasks, context.services.settings
    names = set[str | None]()
    for task in context.contract.tasks.values():
        if states[task.id].status in schedule.RUNNABLE:
            names.add(contracts.builder_of(plans[task.id], task, settings) or STEPS)
            names.add(contracts.validator_of(plans[task.id], task, settings))
    programs = sorted(name for name in names if name not in (None, HUMAN))
    return [name for name in programs if not capabilities(context.agents.get(name)).sandboxed]
