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
from idumb.domain.settings import IN_COMMIT, SANDBOX_LANDLOCK, USER_HOME, CheckSettings

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
    level, why = sandbox.best(chosen.level, support)
    beside_git = [task for task in _pending(context) if _writes_beside_git(context, task)]
    its_level, its_why = sandbox.choose(chosen.level, _BESIDE_GIT, support) if beside_git else (level, why)
    of_checks, no_checks = _of_checks(context, level, why, support)
    if context.sandboxed:
        _require(context, level, why, beside_git if its_level == sandbox.DETECTION else (), its_why)
        if of_checks == sandbox.DETECTION:
            in_place = settings.checks is not None and settings.checks.tree != IN_COMMIT
            hint = "Remove `checks: here` from .idumb/config.yaml" if in_place else _SUPPORT
            raise _refusal(context, f"No sandbox is available for checks: {no_checks}.", hint)
    elif chosen.level != SANDBOX_LANDLOCK:
        beside_git += [t for t in _pending(context) if t not in beside_git and _makes_a_folder(context, t)]
        its_level, its_why = sandbox.choose(chosen.level, _BESIDE_GIT, support) if beside_git else (level, why)
    context.services.reporter.note(f"Sandbox: {_words(chosen.level, level, why, support)}.")
    if its_level != level:
        tasks = wording.listed(task.id for task in beside_git)
        context.services.reporter.note(f"Sandbox of {tasks}: {_words(chosen.level, its_level, its_why, support)}.")
    if of_checks != level:
        context.services.reporter.note(f"Sandbox of checks: {_words(chosen.level, of_checks, no_checks, support)}.")


_SUPPORT = "idumb doctor shows what this machine supports, and which package would add more"

_BESIDE_GIT = Fence(("/the working tree",), ("/the working tree/.git",))
"""A task that may create files at the top of the working tree."""


def _of_checks(context: RunContext, level: str, why: str, support: Support) -> tuple[str, str]:
    """Return the level of checks and, without a sandbox, why there is none; `level` and `why` are those of the run."""
    chosen, settings = context.services.settings.sandbox, context.services.settings.checks or CheckSettings()
    if settings.tree != IN_COMMIT:
        return sandbox.DETECTION, "they run in the working tree (checks: here)"
    if chosen is None or settings.home != USER_HOME or level == sandbox.DETECTION:
        return level, why
    its_level, _ = sandbox.choose(chosen.level, _BESIDE_GIT, support)
    return (
        its_level,
        "Landlock cannot allow your home and protect your approvals" if its_level == sandbox.DETECTION else "",
    )


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


def _agents(context: RunContext, task: Task) -> Iterable[str]:
    validator = contracts.validator_of(context.plans[task.id], task, context.services.settings)
    return (_builder(context, task), *((validator,) if validator else ()))


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
    names = {name for task in _pending(context) for name in _agents(context, task)} - {HUMAN}
    outside = [name for name in sorted(names) if not capabilities(context.agents.get(name)).sandboxed]
    if outside:
        hint = "Bind another agent in .idumb/config.yaml"
        raise _refusal(context, f"idumb cannot put {wording.listed(outside)} in a sandbox.", hint)
    if tasks := [task.id for task in beside_git]:
        raise _refusal(context, f"No sandbox is available for {wording.listed(tasks)}: {its_why}.")


def _refusal(context: RunContext, words: str, hint: str = _SUPPORT) -> Refusal:
    return Refusal(CODE, words, hint=hint, details={"phase": context.contract.phase})
