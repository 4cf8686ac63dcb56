"""Continues an attempt that the log has: after a kill, or when people have answered.

The record says everything; only the branch and the files show whether its delivery and its commit happened.
"""

from __future__ import annotations

import dataclasses

from idumb.app.attempt import interruption, measure, pipeline, questions, record
from idumb.app.core import run_lookup
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.ports.repository import BuilderCommits, Conflict
from idumb.app.worktree import drift, exposed_secrets, staged_changes, task_base
from idumb.domain import contract as contracts
from idumb.domain import outcome, wording
from idumb.domain.errors import Refusal, WorkFailed
from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence
from idumb.domain.runs.run import ANSWERED

MOVED = "HEAD moved before the commits of the task were taken; the task is built again"
UNDELIVERED = "its work in the clone conflicts with the files here; the task is built again"


def interrupt(context: RunContext, task: Task) -> None:
    """Record an attempt that was killed: its files are kept, and the next one starts from its base."""
    task_state = context.journal.state.tasks[task.id]
    if task_base.made_in(context, task_state) == "here":
        drift.report_after_crash(context, task, task_state)
    interruption.record_interruption(context, task, _why_halted(context, task) or interruption.KILLED)


def _why_halted(context: RunContext, task: Task) -> str | None:
    """Return why the run was stopped during the attempt, if it was."""
    begun = run_lookup.last_event(context.services, "attempt.started", context.run, task.id)
    after = 0 if begun is None else begun.seq
    halted = next(iter(context.services.log.events(run=context.run, kind="run.halted", after=after, limit=1)), None)
    return None if halted is None else str(halted.payload.get("reason") or "") or None


def expire(context: RunContext, task: Task) -> None:
    """Fail an attempt whose question nobody answered in time."""
    saved = context.saved(task)
    attempt = dataclasses.replace(saved, verdict=outcome.FAIL).ended(outcome.TIMED_OUT, questions.UNANSWERED)
    record.record_checkpoint(context, attempt, saved)


def judge(context: RunContext, task: Task) -> Attempt | None:
    """Continue an attempt that waited for people, with their answers; None if it must be built again."""
    saved = exposed_secrets.of_record(context.services, context.saved(task))
    # Acceptance forgives nothing else, such as a builder that timed out. Of a builder's commits, the clone is gone.
    if saved.deviation and (saved.commits is not None or not saved.excusable):
        context.journal.write(context.journal.event("task.reset", task.id, reason=ANSWERED))
        return None
    asked = context.journal.state.tasks[task.id].decisions
    answers = tuple(filter(None, map(context.journal.answer, asked)))
    judged = questions.evidence_of_answers(
        [question for question in saved.questions if question.id in asked], answers, saved.candidate
    )
    rejected = [e for e in judged if not e.passed]
    if saved.workspace == "here" and not rejected:
        _require_present(context, saved)
        saved = _as_it_is_now(context, saved)
    before = _take_into_clone(context, saved)
    subjects = {e.subject for e in judged}
    kept = (e for e in saved.evidence if e.result != evidence.WAITING or e.subject not in subjects)
    attempt = dataclasses.replace(
        saved,
        evidence=(*kept, *judged),
        answers=(*saved.answers, *answers),
        outcome=None,
        reason="",
        verdict=None,
    )
    if rejected:
        attempt = dataclasses.replace(attempt, verdict=outcome.FAIL)
        attempt = attempt.ended(outcome.FAILED, "; ".join(f"{e.text}: {e.output}" for e in rejected))
    if saved.deviation:
        done = pipeline.prove(context, saved, measure.accepting(context, attempt, saved.ledger.undeclared))
    else:
        done = pipeline.judge_again(context, saved, attempt)
    _drop_from_clone(context, done, before)
    _require_committed(context, done)
    return done


def _require_present(context: RunContext, attempt: Attempt) -> None:
    """Refuse to commit files that are no longer as they were judged."""
    changed = attempt.ledger.changed
    if not is_present(context, attempt.candidate, changed):
        raise Refusal(
            "task.changed-since",
            f"{attempt.task.id} was judged, but its files changed since: {wording.listed(changed)}",
            hint=f"Restore them as they were, or idumb skip {attempt.task.id} --why REASON",
            details={"phase": context.contract.phase, "task": attempt.task.id},
        )


def _as_it_is_now(context: RunContext, attempt: Attempt) -> Attempt:
    """Return the attempt with the other files as they are: idumb wrote the answer into the plan, or the user edited.

    Otherwise the checks would be blamed for those changes.
    """
    if context.workspace.kind != "here":
        return attempt
    present = context.work.scan(attempt.literal_paths)
    return dataclasses.replace(
        attempt, candidate=context.work.overlay(present, attempt.candidate, attempt.ledger.changed)
    )


def is_present(context: RunContext, tree: str, touched: tuple[str, ...]) -> bool:
    """Return whether each path is in the user's working tree as it is in `tree`."""
    trees = context.services.trees
    present = trees.scan(touched)
    return trees.overlay(present, tree, touched) == present


def _take_into_clone(context: RunContext, attempt: Attempt) -> str | None:
    """Bring the work of an earlier command into this command's clone, for its checks and for the next tasks.

    Return the tree of the clone before; None if the work is there, or in the user's tree.
    """
    if context.workspace.kind == "here" or attempt.task.id in context.begun:
        return None
    before = context.work.scan(attempt.ledger.changed)
    context.work.restore(attempt.candidate, attempt.candidate, attempt.ledger.changed, force=True)
    return before


def _drop_from_clone(context: RunContext, attempt: Attempt, before: str | None) -> None:
    """Remove work that failed from this command's clone: the next attempt does not start from it."""
    if before is not None and attempt.outcome not in (outcome.COMPLETED, outcome.WAITING) and not attempt.message:
        context.work.restore(before, before, attempt.ledger.changed, force=True)


def finish(context: RunContext, task: Task) -> None:
    """Finish an attempt whose delivery and commit were announced."""
    attempt = exposed_secrets.of_record(context.services, context.saved(task))
    if attempt.commits is not None and attempt.commits.tip is not None:
        _finish_commits(context, attempt, attempt.commits)
        return
    commit = _commit_of(context, attempt)
    staged_changes.tell_again(context, task, attempt.number, committed=commit is not None)
    if commit is not None:
        context.services.history.settle_index(commit, attempt.ledger.changed)
        kept = record.keep_candidate(context, attempt, attempt.candidate)
        if attempt.proven is not None:
            record.finish_checkpoint(context, attempt, kept, commit)
        else:  # the files may have changed since, and the commit is not to blame
            context.journal.write(*record.completion_events(context, attempt, kept, commit))
        _take_into_clone(context, attempt)
    elif _is_delivered(context, attempt):
        _commit_again(context, attempt)
    else:
        why = interruption.KILLED if attempt.workspace == "here" else UNDELIVERED
        interruption.record_interruption(context, task, why)


def _commit_again(context: RunContext, attempt: Attempt) -> None:
    """Commit what was announced. If HEAD has moved since it was judged, it is judged again first."""
    before = _take_into_clone(context, attempt)
    if context.services.history.head().commit == attempt.judged_on or attempt.commits is not None:
        done = record.complete(context, attempt)
    else:
        if attempt.workspace != "here":
            _take_delivered_back(context, attempt)
        done = pipeline.judge_again(context, attempt, dataclasses.replace(attempt, outcome=None, reason=""))
        _drop_from_clone(context, done, before)
    _require_committed(context, done)


def _finish_commits(context: RunContext, attempt: Attempt, offered: BuilderCommits) -> None:
    """Finish or retry the delivery of a builder's own commits. The record names the tip, so nothing is guessed."""
    history, tip = context.services.history, offered.tip or ""
    head = history.head().commit
    if head != tip and history.descends(tip):
        kept = record.keep_candidate(context, attempt, attempt.candidate)
        context.journal.write(*record.completion_events(context, attempt, kept, tip))
    elif head not in (offered.base, tip):
        _take_delivered_back(context, attempt)
        interruption.record_interruption(context, attempt.task, MOVED)
    elif head == tip or _is_delivered(context, attempt):
        _commit_again(context, attempt)
    else:
        interruption.record_interruption(context, attempt.task, UNDELIVERED)


def _is_delivered(context: RunContext, attempt: Attempt) -> bool:
    """Return whether the announced files are all in the user's tree, after delivering those that are missing.

    Uncommitted changes in their way are refused. If those are committed, a new attempt starts from them.
    """
    changed = attempt.ledger.changed
    if is_present(context, attempt.candidate, changed):
        return True
    if attempt.workspace == "here":
        return False
    conflicts = context.services.trees.restore(attempt.candidate, attempt.base, changed)
    if not conflicts:
        return True
    if context.services.history.uncommitted([c.path for c in conflicts]):
        raise _undelivered(context, attempt.task, conflicts)
    _take_delivered_back(context, attempt)
    return False


def _take_delivered_back(context: RunContext, attempt: Attempt) -> None:
    """Restore what a killed command delivered, unless it was committed or changed since."""
    trees, delivered = context.services.trees, attempt.candidate
    present = trees.scan(attempt.ledger.changed)
    ours = [p for p in attempt.ledger.changed if trees.entry(present, p) == trees.entry(delivered, p)]
    trees.restore(attempt.base, delivered, context.services.history.uncommitted(ours))


def _undelivered(context: RunContext, task: Task, conflicts: tuple[Conflict, ...]) -> Refusal:
    listed = wording.listed((f"{c.path} {c.why}" for c in conflicts), between="; ")
    paths = [c.path for c in conflicts]
    return Refusal(
        "task.changed-since",
        f"{task.id} is done in its clone, but cannot be delivered: {listed}",
        hint=f"{task_base.ways_out(context.services, paths)}, then idumb resume {context.contract.phase}, which builds"
        f" {task.id} again if you committed them",
        details={"phase": context.contract.phase, "paths": paths, "task": task.id},
    )


def _commit_of(context: RunContext, attempt: Attempt) -> str | None:
    """Return the task's commit if it was made before the crash; its trailers identify it."""
    ours = (context.run, attempt.task.id, str(attempt.number))
    for commit, trailers in context.services.history.trailers_since(attempt.judged_on):
        if tuple(trailers.get(f"Idumb-{name}") for name in ("Run", "Task", "Attempt")) == ours:
            return commit
    return None


def _require_committed(context: RunContext, attempt: Attempt) -> None:
    """Raise WorkFailed if git refused the commit."""
    if attempt.commit_refused is None:
        return
    task = attempt.task
    mine = contracts.in_editor(attempt.plan, task, context.services.settings)
    again = f"idumb submit {task.id}" if mine else f"idumb resume {context.contract.phase}"
    raise WorkFailed(
        "git.commit-refused",
        f"git refused the commit of {task.id}: {attempt.commit_refused}",
        hint=f"Fix what git names, then {again}",
    )
