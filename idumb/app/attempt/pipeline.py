"""One attempt at one task: the table of its stages, from the lock to the checkpoint, and the loop that runs them.

Each stage takes the attempt in one phase (`core/run_context.py`) and returns it in the same or the next one. A failed
attempt is a value too: it skips what would continue it, but what it did is still frozen, compared and recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from idumb.app.attempt import build, builder_commits, determinism, entry, judge, measure, record
from idumb.app.core.run_context import CONTROLS, Attempt, Built, Prepared, Recorded, RunContext
from idumb.app.worktree import exposed_secrets


def _builders_commit(context: RunContext, _: Attempt) -> bool:
    return context.commits is not None


def _idumb_commits_from_clone(context: RunContext, _: Attempt) -> bool:
    return context.workspace.kind == builder_commits.CLONE and context.commits is None


def _not_the_first(context: RunContext, attempt: Attempt) -> bool:
    return context.journal.state.number > 1 or attempt.number > 1


def _knows_secrets(context: RunContext, _: Attempt) -> bool:
    return context.services.redaction.knows_secrets()


class Stage(NamedTuple):
    """`also_failed`: the stage also takes an attempt that has an outcome already. `when`: whether it is needed."""

    run: Callable[[RunContext, Any], Any]
    also_failed: bool = False
    when: Callable[[RunContext, Attempt], bool] | None = None


ENTRY = (
    Stage(entry.check_lock),
    Stage(entry.take_snapshot),  # Attempt -> Prepared
    Stage(entry.check_preconditions),
)
BUILD = (Stage(build.build, also_failed=True),)  # Prepared -> Built
JUDGE = (
    Stage(judge.end_processes, also_failed=True),
    Stage(builder_commits.take, also_failed=True, when=_builders_commit),
    Stage(measure.measure, also_failed=True),  # Built -> Measured
    Stage(builder_commits.judge, also_failed=True, when=_builders_commit),
    Stage(judge.report_beside_clone, also_failed=True, when=_idumb_commits_from_clone),
    Stage(exposed_secrets.judge, when=_knows_secrets),
    Stage(determinism.compare, when=_not_the_first),
    Stage(judge.run_checks),
    Stage(judge.ask_people),
    Stage(judge.check_drift, also_failed=True),
    Stage(judge.reach_verdict, also_failed=True),  # Measured -> Judged
)
RECORD = (Stage(record.record_checkpoint, also_failed=True),)  # Judged -> Recorded


def make(context: RunContext, attempt: Attempt) -> Recorded:
    """Lead an attempt through all stages."""
    recorded: Recorded = lead(context, attempt, (*ENTRY, *BUILD, *JUDGE, *RECORD))
    return recorded


def prepare(context: RunContext, attempt: Attempt) -> Prepared:
    """Lead an attempt up to the work; a builder that drives idumb itself continues from there."""
    prepared: Prepared = lead(context, attempt, ENTRY)
    return prepared


def refuse(context: RunContext, attempt: Prepared) -> Recorded:
    """Record an attempt whose preconditions do not hold."""
    recorded: Recorded = lead(context, attempt, (*BUILD, *JUDGE, *RECORD))
    return recorded


def submit(context: RunContext, attempt: Built) -> Recorded:
    """Judge and record the work of a builder that drives idumb itself."""
    recorded: Recorded = lead(context, attempt, (Stage(entry.check_lock), *JUDGE, *RECORD))
    return recorded


def lead(context: RunContext, attempt: Any, stages: tuple[Stage, ...]) -> Any:
    """Lead an attempt through these stages. Before each one, this process must own the working tree."""
    guard, interrupts = context.services.owner.guard, context.services.interrupts
    try:
        for stage in [each for each in stages if each.when is None or each.when(context, attempt)]:
            if attempt.outcome is not None and not stage.also_failed:
                continue
            guard()
            if attempt.outcome is None and interrupts.received is not None:
                interrupts.check()
            attempt = stage.run(context, attempt)
    finally:
        if context.notes.pop(CONTROLS, None):
            context.checks.stop_controls()
    return attempt
