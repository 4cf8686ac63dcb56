"""Reports once per run which sandbox is in force, and refuses what cannot have a required one."""

from __future__ import annotations

from collections.abc import Iterable

from idumb.app.attempt import builder_commits
from idumb.app.core import schedule
from idumb.app.core.run_context import RunContext
from idumb.domain import contract as contracts
from idumb.domain import wording
from idumb.domain.agent import HUMAN, STEPS, capabilities
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.proof import ledger
from idumb.domain.runs import sandbox
from idumb.domain.runs.sandbox import Fence, Support
from idumb.domain.settings import SANDBOX_LANDLOCK

CODE = "sandbox.none"


def announce(context: RunContext) -> None:
    """Print the level in force. Refusal `sandbox.none` if the run requires a sandbox and some task has none."""
    settings = context.services.settings
    chosen = settings.sandbox
    if chosen is None or not settings.sandboxed:
        if context.sandboxed:
            raise _refusal(context, "The configuration has no sandbox.")
        if chosen is not None:
            context.services.reporter.note(
                "Sandbox: off. idumb detects what agents write elsewhere, but does not stop it."
            )
        return
    support = context.services.sandboxes.support()
    level, why = sandbox.best(chosen.level, support)
    beside_git = [task for task in _pending(context) if _writes_beside_git(context, task)]
    its_level, its_why = sandbox.choose(chosen.level, _BESIDE_GIT, support) if beside_git else (level, why)
    if context.sandboxed:
        _require(context, level, why, beside_git if its_level == sandbox.DETECTION else (), its_why)
    elif chosen.level != SANDBOX_LANDLOCK:
        beside_git += [t for t in _pending(context) if t not in beside_git and _makes_a_folder(context, t)]
        its_level, its_why = sandbox.choose(chosen.level, _BESIDE_GIT, support) if beside_git else (level, why)
    context.services.reporter.note(f"Sandbox: {_words(chosen.level, level, why, support)}.")
    if its_level != level:
        tasks = wording.listed(task.id for task in beside_git)
        context.services.reporter.note(f"Sandbox of {tasks}: {_words(chosen.level, its_level, its_why, support)}.")


_BESIDE_GIT = Fence(("/the working tree",), ("/the working tree/.git",))
"""A task that may create files at the top of the working tree."""


def _words(chosen: str, level: str, why: str, support: Support) -> str:
    if level == sandbox.DETECTION:
        package = f"; install the package {support.add}" if support.add and chosen != SANDBOX_LANDLOCK else ""
        return f"{level}, because {why}{package}"
    weaker = sandbox.weakness(level, support)
    return f"{level}{f', but {weaker}' if weaker else ''}"


def _pending(context: RunContext) -> Iterable[Task]:
    tasks = context.journal.state.tasks
    return (
        t
        for t in map(context.contract.tasks.__getitem__, context.contract.order)
        if tasks[t.id].status in schedule.RUNNABLE
    )


def _builder(context: RunContext, task: Task) -> str:
    return contracts.builder_of(context.plans[task.id], task, context.services.settings) or STEPS


def _writes_beside_git(context: RunContext, task: Task) -> bool:
    if _commits(context, task):
        return False
    able = capabilities(context.agents.get(_builder(context, task)))
    return able.sandboxed and "" in sandbox.scope_folders(ledger.written_paths(task.files))


def _makes_a_folder(context: RunContext, task: Task) -> bool:
    """Return whether a task may make a folder beside `.git`, which only bubblewrap can allow."""
    able = capabilities(context.agents.get(_builder(context, task)))
    tops = {folder.partition("/")[0] for folder in sandbox.scope_folders(ledger.written_paths(task.files))} - {""}
    tree = context.journal.state.base.tree
    return able.sandboxed and not _commits(context, task) and any(context.work.entry(tree, top) is None for top in tops)


def _commits(context: RunContext, task: Task) -> bool:
    return context.commits is not None and builder_commits.by_builder(context, task)


def _require(context: RunContext, level: str, why: str, beside_git: Iterable[Task], its_why: str) -> None:
    if level == sandbox.DETECTION:
        raise _refusal(context, f"No sandbox is available: {why}.")
    names = {_builder(context, task) for task in _pending(context)} - {HUMAN}
    outside = [name for name in sorted(names) if not capabilities(context.agents.get(name)).sandboxed]
    if outside:
        raise _refusal(context, f"idumb cannot put {wording.listed(outside)} in a sandbox.")
    if tasks := [task.id for task in beside_git]:
        raise _refusal(context, f"No sandbox is available for {wording.listed(tasks)}: {its_why}.")


def _refusal(context: RunContext, words: str) -> Refusal:
    hint = "Set `sandbox: auto` in .idumb/config.yaml; idumb doctor shows what this machine supports"
    return Refusal(CODE, words, hint=hint, details={"phase": context.contract.phase})
