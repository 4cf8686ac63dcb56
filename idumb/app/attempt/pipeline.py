"""One attempt at one task: the table of its stages, from the lock to the checkpoint, and the loop that runs them.

Each stage takes the attempt (`core/attempt.py`) and returns it with what it found. A failed
attempt is a value too: it skips what would continue it, but what it did is still frozen, compared and recorded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from idumb.app.attempt import build, entry, judge, measure, record
from idumb.app.core.attempt import ANNOUNCED, BUILT, Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.worktree import exposed_secrets, task_base
from idumb.domain import rerun


class Stage(NamedTuple):
    """`also_failed`: the stage also takes an attempt that has an outcome already. `when`: whether it is needed."""

    run: Callable[[RunContext, Attempt], Attempt]
    also_failed: bool = False
    when: Callable[[RunContext, Attempt], bool] | None = None


ENTRY = (
    Stage(entry.check_lock),
    Stage(entry.take_snapshot),
    Stage(entry.check_preconditions),
)
BUILD = (Stage(build.build, also_failed=True),)
MEASURE = (
    Stage(judge.end_processes, also_failed=True),
    Stage(measure.measure, also_failed=True),
)
PROVE = (
    Stage(exposed_secrets.judge, when=lambda context, _: context.services.redaction.knows_secrets()),
    Stage(
        measure.compare_with_earlier,
        when=lambda context, attempt: context.journal.state.number > 1 or attempt.number > 1,
    ),
    Stage(judge.run_checks),
    Stage(judge.ask_people),
)
CONCLUDE = (
    Stage(judge.prove_on_head),
    Stage(judge.reach_verdict, also_failed=True),
)
JUDGE = (*MEASURE, *PROVE, *CONCLUDE)
RECORD = (Stage(record.record_checkpoint, also_failed=True),)


def make(context: RunContext, attempt: Attempt) -> Attempt:
    """Lead an attempt through all stages."""
    return lead(context, attempt, (*ENTRY, *BUILD, *JUDGE, *RECORD))


def prepare(context: RunContext, attempt: Attempt) -> Attempt:
    """Lead an attempt up to the work; a builder that drives idumb itself continues from there."""
    return lead(context, attempt, ENTRY)


def refuse(context: RunContext, attempt: Attempt) -> Attempt:
    """Record an attempt whose preconditions do not hold."""
    return lead(context, attempt, (*BUILD, *JUDGE, *RECORD))


def submit(context: RunContext, attempt: Attempt) -> Attempt:
    """Judge and record the work of a builder that drives idumb itself."""
    return lead(context, attempt, (Stage(entry.check_lock), *JUDGE, *RECORD))


def submit_again(context: RunContext, earlier: Attempt) -> Attempt:
    """Judge what a person has changed since it was judged, as after a hook refused it. The log has it as `earlier`."""
    before = tuple(e for e in earlier.evidence if rerun.is_before(e.subject))
    attempt = replace(earlier, stage=BUILT, outcome=None, reason="", verdict=None, by_hooks=(), before_hooks="")
    attempt = replace(attempt, evidence=before)
    return lead(context, attempt, (Stage(entry.check_lock), *JUDGE, _recording_again(earlier)))


def build_again(context: RunContext, earlier: Attempt) -> Attempt:
    """Lead an attempt on whose builder, a person, was asked and has answered. The log has it as `earlier`."""
    base = task_base.with_work_of_others(context, earlier)
    if base != earlier.base:
        context.services.trees.keep(f"{earlier.ref}/task-base", base, f"what {earlier.task.id} starts from")
    attempt = replace(earlier, stage=ANNOUNCED, base=base, outcome=None, reason="", verdict=None)
    return lead(context, attempt, (Stage(entry.check_lock), *BUILD, *JUDGE, _recording_again(earlier)))


def prove(context: RunContext, earlier: Attempt, attempt: Attempt) -> Attempt:
    """Prove and record an attempt whose changes a person accepted. The log has it as `earlier`."""
    return lead(context, attempt, (*PROVE, *CONCLUDE, _recording_again(earlier)))


def judge_again(context: RunContext, earlier: Attempt, attempt: Attempt) -> Attempt:
    """Judge and record an attempt anew, after an answer or a kill. The log has it as `earlier`."""
    return lead(context, attempt, (*CONCLUDE, _recording_again(earlier)))


def _recording_again(earlier: Attempt) -> Stage:
    return Stage(functools.partial(record.record_checkpoint, earlier=earlier), also_failed=True)


def lead(context: RunContext, attempt: Attempt, stages: tuple[Stage, ...]) -> Attempt:
    """Lead an attempt through these stages. Before each one, this process must own the working tree."""
    guard, interrupts = context.services.owner.guard, context.services.interrupts
    for stage in [each for each in stages if each.when is None or each.when(context, attempt)]:
        if attempt.outcome is not None and not stage.also_failed:
            continue
        guard()
        if attempt.outcome is None and interrupts.received is not None:
            interrupts.check()
        attempt = stage.run(context, attempt)
    return attempt
