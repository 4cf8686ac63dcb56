"""One attempt at one task: the table of its stages, from the lock to the checkpoint, and the loop that runs them.

Each stage takes the attempt (`core/attempt.py`) and returns it with what it found. A failed
attempt is a value too: it skips what would continue it, but what it did is still frozen, compared and recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from idumb.app.attempt import build, entry, judge, measure, record
from idumb.app.core.attempt import ANNOUNCED, BUILT, Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.worktree import exposed_secrets, task_base
from idumb.domain import rerun


class Stage(NamedTuple):
    """`also_failed`: the stage also takes an attempt that has an outcome already."""

    run: Callable[[RunContext, Attempt], Attempt]
    also_failed: bool = False


LOCK = Stage(entry.check_lock)
ENTRY = (
    LOCK,
    Stage(entry.take_snapshot),
    Stage(entry.check_preconditions),
)
BUILD = (Stage(build.build, also_failed=True),)
MEASURE = (
    Stage(judge.end_processes, also_failed=True),
    Stage(measure.measure, also_failed=True),
)
PROVE = (
    Stage(exposed_secrets.search),
    Stage(measure.compare_with_earlier),
    Stage(judge.run_checks),
    Stage(judge.ask_people),
)
CONCLUDE = (
    Stage(judge.prove_on_head),
    Stage(judge.reach_verdict, also_failed=True),
)
RECORD = (Stage(record.record_checkpoint, also_failed=True),)
JUDGE = (*MEASURE, *PROVE, *CONCLUDE, *RECORD)

# Where an attempt enters, and how far it is led.
MAKE = (*ENTRY, *BUILD, *JUDGE)
PREPARE = ENTRY
"""Up to the work: a builder that drives idumb itself continues from there."""
REFUSE = (*BUILD, *JUDGE)
"""Of an attempt whose preconditions do not hold."""
SUBMIT = (LOCK, *JUDGE)
"""The work of a builder that drives idumb itself."""
BUILD_AGAIN = (LOCK, *BUILD, *JUDGE)
"""The builder, a person, was asked, and has answered."""
PROVE_AGAIN = (*PROVE, *CONCLUDE, *RECORD)
"""A person accepted its changes."""
JUDGE_AGAIN = (*CONCLUDE, *RECORD)
"""After an answer or a kill."""


def submit_again(context: RunContext, attempt: Attempt) -> Attempt:
    """Judge what a person has changed since it was judged, as after a hook refused it."""
    before = tuple(e for e in attempt.evidence if rerun.is_before(e.subject))
    return lead(context, attempt.reopened(stage=BUILT, evidence=before, by_hooks=(), before_hooks=""), SUBMIT)


def build_again(context: RunContext, attempt: Attempt) -> Attempt:
    """Lead an attempt whose builder has answered, from what other tasks have left meanwhile."""
    base = task_base.with_work_of_others(context, attempt)
    if base != attempt.base:
        context.services.trees.keep(f"{attempt.ref}/task-base", base, f"what {attempt.task.id} starts from")
    return lead(context, attempt.reopened(stage=ANNOUNCED, base=base), BUILD_AGAIN)


def lead(context: RunContext, attempt: Attempt, stages: tuple[Stage, ...]) -> Attempt:
    """Lead an attempt through these stages. Before each one, this process must own the working tree."""
    guard, interrupts = context.services.owner.guard, context.services.interrupts
    for stage in stages:
        if attempt.outcome is not None and not stage.also_failed:
            continue
        guard()
        if attempt.outcome is None and interrupts.received is not None:
            interrupts.check()
        attempt = stage.run(context, attempt)
    return attempt
