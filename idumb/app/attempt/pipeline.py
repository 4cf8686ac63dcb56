"""One attempt at one task: the stages, in order, that lead from a snapshot to a checkpoint.

A stage takes the attempt as it stands and returns it with one thing more. As soon as an outcome is known the
remaining stages are passed over, but for those that freeze, account for and record what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from idumb.app.attempt import (
    adoption,
    build,
    builder_commits,
    determinism,
    entry,
    judge,
    record,
)
from idumb.app.core.run_context import Attempt, Bench
from idumb.app.worktree import exposed_secrets

Stage = Callable[[Bench, Attempt], Attempt]


def make(bench: Bench, attempt: Attempt, stages: Sequence[Stage] | None = None) -> Attempt:
    """Lead one attempt through all stages, or through those that are its turn now."""
    for stage in STAGES if stages is None else stages:
        bench.services.owner.guard()
        if attempt.outcome is None:
            bench.services.interrupts.check()
        if attempt.outcome is None or stage in ALWAYS:
            attempt = stage(bench, attempt)
    return attempt


BEFORE: tuple[Stage, ...] = (entry.check_lock, entry.take_snapshot, entry.check_preconditions)
"""What comes before the work; where the builder drives idumb itself, `start` ends here."""

AFTER: tuple[Stage, ...] = (
    judge.end_processes,
    judge.check_standing,  # before git is asked anything by a configuration that may have been tampered with
    builder_commits.take,
    judge.freeze_candidate,
    judge.compare_ledger,
    builder_commits.judge,
    exposed_secrets.judge,
    determinism.compare,
    judge.run_checks,
    judge.scan_residue,
    judge.ask_people,
    judge.check_standing,
    judge.reach_verdict,
    record.record_checkpoint,
)
"""What judges the work, from bytes; `submit` begins here."""

STAGES: tuple[Stage, ...] = (*BEFORE, build.build, *AFTER)
ADOPTING: tuple[Stage, ...] = (
    entry.check_lock,
    entry.take_snapshot,
    judge.freeze_candidate,
    adoption.judge,
    judge.scan_residue,
    judge.check_standing,
    adoption.reach_verdict,
    record.record_checkpoint,
)
"""What judges work that is there already: neither a builder nor a validator is called."""
ALWAYS: frozenset[Stage] = frozenset(
    {
        judge.end_processes,
        builder_commits.take,
        judge.freeze_candidate,
        judge.compare_ledger,
        builder_commits.judge,
        judge.check_standing,
        record.record_checkpoint,
    }
)
