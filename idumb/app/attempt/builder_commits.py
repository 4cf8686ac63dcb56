"""The commit policy `builder`: each builder commits its own task in a clone, and idumb takes the commits as they are.

Before an attempt the clone is rebuilt at HEAD. When the builder has ended, idumb reads its commits as objects and
compares them with the task. It imports commits that hold, and `record` moves the branch to them. Steps commit nothing,
so idumb commits for them. People and editors work in the user's own tree, as under the policy `task`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from idumb.app.core import workspaces
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.ports.repository import BuilderCommits
from idumb.app.worktree import drift, tool_leftovers
from idumb.domain import contract as contracts
from idumb.domain import outcome, paths, wording
from idumb.domain.agent import BUILT_IN, HUMAN, Capabilities, capabilities
from idumb.domain.plans.plan import Task
from idumb.domain.proof import builder_commits

if TYPE_CHECKING:
    from idumb.git.clones.builder_clone import BuilderClone

_REF = "commits"


def task_context(context: RunContext, task: Task) -> RunContext:
    """Return the run context of one task: people and editors always work in the user's own tree."""
    if context.commits is None or not _builder(context, task).works_in_place:
        return context
    place = context.services.open_workspace(workspaces.HERE, context.run)
    agents, checks = context.services.open_agents(place, context.run), context.services.open_checks(place, context.run)
    return dataclasses.replace(context, workspace=place, agents=agents, checks=checks, commits=None)


def by_builder(context: RunContext, task: Task) -> bool:
    """Return whether this task's builder commits its own work."""
    return context.commits is not None and _builder(context, task).calls_model


def _builder(context: RunContext, task: Task) -> Capabilities:
    name = contracts.builder_of(context.plans[task.id], task, context.services.settings)
    return BUILT_IN[HUMAN] if task.is_human or name is None else capabilities(context.agents.get(name))


def is_at_head(context: RunContext) -> bool:
    """Return whether the clone is still at HEAD, so that an attempt can continue from its own work."""
    return context.commits is not None and context.commits.base == context.services.history.head().commit


def begin(context: RunContext, attempt: Attempt) -> Attempt:
    """Rebuild the clone at HEAD."""
    if context.commits is None:
        return attempt
    context.commits.begin(context.services.history.head().commit)
    return dataclasses.replace(attempt, base="")


def take(context: RunContext, attempt: Attempt) -> Attempt:
    """Read what the builder committed, and replace its git folder before idumb runs git there."""
    if context.commits is None or attempt.result is None or not by_builder(context, attempt.task):
        return attempt
    return dataclasses.replace(attempt, commits=context.commits.take())


def judge(context: RunContext, attempt: Attempt) -> Attempt:
    """Import commits that hold. If they do not, the attempt fails and nothing of them is taken."""
    offered, clone = attempt.commits, context.commits
    if offered is None or clone is None:
        return attempt
    strayed = drift.beside_clone(context, attempt)
    why = ""
    if attempt.outcome is None:
        why = _why_not(context, attempt, offered, clone) or _worked_elsewhere(attempt, offered, strayed)
        if not why and offered.has_commits:
            why = clone.keep(offered, f"{attempt.ref}/{_REF}")
    if why or attempt.outcome is not None or not offered.has_commits:
        clone.drop()
    return attempt.ended(outcome.FAILED, why) if why else attempt


def _why_not(context: RunContext, attempt: Attempt, offered: BuilderCommits, clone: BuilderClone) -> str:
    if offered.problem:
        return f"its commits cannot be taken: {offered.problem}"
    task = attempt.task
    strays = builder_commits.undeclared(
        offered.commits, task.files, context.protected(attempt.plan), attempt.accepted_paths
    )
    if strays:
        return strays
    leftover = tool_leftovers.of_attempt(context, attempt, attempt.candidate)
    made = sorted(set(context.work.repositories()) - set(context.services.trees.repositories()))
    inner = [path for path in made if leftover(path) is None]
    if inner:
        return f"it created repositories in its clone, which cannot be delivered: {wording.listed(inner)}"
    uncommitted = [p for p in clone.uncommitted(offered, attempt.base, attempt.candidate) if leftover(p) is None]
    if not uncommitted:
        return ""
    shown = wording.listed(uncommitted)
    if offered.has_commits:
        return f"its last commit and its files differ: {shown}; all of its work must be committed"
    return (
        f"it changed {shown} and committed nothing. `git.commit: builder` leaves that to the builder: commit on the"
        " current branch (`git: {commit: task}` in .idumb/config.yaml lets idumb commit)"
    )


def _worked_elsewhere(attempt: Attempt, offered: BuilderCommits, strayed: tuple[str, ...]) -> str:
    """Return why an attempt failed that worked in the user's tree instead of its clone; "" otherwise."""
    covers = paths.cover(attempt.written)
    declared = [path for path in strayed if covers(path)]
    if not declared or offered.has_commits or attempt.ledger.changed:
        return ""
    return (
        f"it changed nothing in its clone, but {wording.listed(declared)} changed in the user's own working tree at the"
        " same time; it must write below the folder in which it is started"
    )


def payload(offered: BuilderCommits) -> dict[str, object]:
    """Return what `attempt.finished` records of the commits."""
    return {
        "base": offered.base,
        "tip": offered.tip,
        "problem": offered.problem,
        "commits": [commit.as_dict() for commit in offered.commits[: builder_commits.MOST]],
    }
