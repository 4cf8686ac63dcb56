"""Continues an attempt that the log has, after a kill or when people have answered; or records that it was interrupted.

The record says everything; only the branch and the files show whether its delivery and its commit happened. What an
interrupted attempt left is kept, and the next attempt starts from its base.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from idumb.app.attempt import attempt_events, measure, pipeline, record
from idumb.app.core import questions, run_lookup
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import INTERRUPTED_NAME, RunContext
from idumb.app.core.services import attempt_ref
from idumb.app.ports import Snapshot
from idumb.app.worktree import delivery, task_base
from idumb.domain import outcome, paths, settings, wording
from idumb.domain.action import Answer
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence, ledger
from idumb.domain.runs.run import ANSWERED, INTERRUPTED

CHANGED = "its files changed after a person judged them"
UNDELIVERED = "its work conflicts with the files here; the task is built again"


def record_kill(context: RunContext, task: Task) -> None:
    """Record an attempt that was killed: its files are kept, and the next one starts from its base."""
    begun = run_lookup.last_event(context.services, "attempt.started", context.run, task.id)
    after = 0 if begun is None else begun.seq
    halted = next(iter(context.services.log.events(run=context.run, kind="run.halted", after=after, limit=1)), None)
    why = None if halted is None else halted.payload.get("reason")
    record_interruption(context, task, str(why or KILLED))


def record_expiry(context: RunContext, task: Task) -> None:
    """Fail an attempt whose question nobody answered in time."""
    attempt = replace(context.saved(task), verdict=outcome.FAIL).ended(outcome.TIMED_OUT, questions.UNANSWERED)
    record.record_checkpoint(context, attempt)


def continue_with_answers(context: RunContext, task: Task) -> Attempt | None:
    """Continue an attempt that waited for people, with their answers; None if it must be built again.

    It must, too, if a person has changed his own work since it was judged.
    """
    saved = context.saved(task)
    if saved.deviates and not saved.excusable:  # acceptance forgives nothing else, such as a builder that timed out
        context.journal.append("task.reset", task.id, reason=ANSWERED)
        return None
    if saved.result is not None and saved.result.outcome == outcome.WAITING:
        return pipeline.build_again(context, saved)
    asked = context.state.tasks[task.id].decisions
    answers = tuple(filter(None, map(context.journal.answer, asked)))
    waited = (question for question in saved.questions if question.id in asked)
    judged = [*questions.evidence_of_answers(waited, answers, saved.candidate)]
    rejected = [e for e in judged if not e.passed]
    if saved.in_place and not rejected:
        if delivery.conflicting(context, saved):
            context.services.reporter.note(f"{task.id}: {CHANGED}, so it begins again with them as they are")
            context.journal.append("task.reset", task.id, reason=CHANGED)
            return None
        present = context.work.scan(saved.literal_paths)  # other tasks may have changed all other files since
        saved = replace(saved, candidate=context.work.overlay(present, saved.candidate, saved.ledger.changed))
    subjects = {e.subject for e in judged}
    kept = (e for e in saved.evidence if e.result != evidence.WAITING or e.subject not in subjects)
    attempt = saved.reopened(evidence=(*kept, *judged), answers=(*saved.answers, *answers))
    if rejected:
        why = "; ".join(f"{e.text}: {e.output}" for e in rejected)
        attempt = replace(attempt, verdict=outcome.FAIL).ended(outcome.FAILED, why)
    if saved.deviates:
        keeps = any(answer.choice == settings.KEEP for answer in answers)
        attempt = measure.decided(context, attempt, keeps=keeps)
        return pipeline.lead(context, attempt, pipeline.PROVE_AGAIN)
    return pipeline.lead(context, attempt, pipeline.JUDGE_AGAIN)


def finish_delivery(context: RunContext, task: Task) -> Attempt | None:
    """Finish an attempt whose delivery and commit were announced; None if it is built again."""
    attempt = context.saved(task)
    if (commit := _commit_of(context, attempt)) is not None:
        kept = record.keep_candidate(context, attempt, delivery.delivered(context, attempt))
        return record.record_delivered(context, attempt, kept, commit)
    others = delivery.conflicting(context, attempt)
    if not others:
        return _commit_again(context, attempt)
    question = delivery.question(context.state, attempt, others)
    answer = context.journal.answer(question.id)
    if not attempt.in_place and not _begins_again(context, task, others, answer):
        if question.id not in context.state.decisions:  # a kill may have cut the delivery off
            delivery.take_back(context, attempt)
        return _over_conflicts(context, attempt, others, answer)
    judged_by_people = {e.subject for e in attempt.evidence} & {question.subject for question in attempt.questions}
    if attempt.in_place and not judged_by_people:
        return pipeline.submit_again(context, attempt)
    delivery.take_back(context, attempt)
    record_interruption(context, task, CHANGED if attempt.in_place else UNDELIVERED)
    return None


def _begins_again(context: RunContext, task: Task, others: Sequence[str], answer: Answer | None) -> bool:
    """Return whether a task is built again on the user's commit of these files. One that creates them would fail."""
    if context.services.history.uncommitted(others):
        return False
    creates = any(c.verb == "create" and c.path in others for c in ledger.written_claims(task.files or ()))
    return not creates if answer is None else answer.choice == settings.STOP


def _commit_again(context: RunContext, attempt: Attempt) -> Attempt:
    """Commit what was announced. If HEAD has moved since it was judged, it is judged again first.

    A hook may refuse the commit now, or change it so that it is not proven. So nothing stays delivered before.
    """
    delivery.take_back(context, attempt)
    if context.services.history.head().commit == attempt.judged_on:
        return record.commit_and_deliver(context, attempt)
    return pipeline.lead(context, attempt.reopened(), pipeline.JUDGE_AGAIN)


def _over_conflicts(context: RunContext, attempt: Attempt, others: tuple[str, ...], answer: Answer | None) -> Attempt:
    """Deliver over or beside the user's uncommitted changes, as he answered; without an answer, he is asked."""
    if answer is None:
        return replace(attempt, conflicts=others, commit_refused=wording.listed(others))
    if answer.choice == questions.MINE:
        merged = delivery.with_version_of_user(context, attempt, others)
        return pipeline.lead(context, merged.reopened(), pipeline.PROVE_AGAIN)
    if answer.choice == questions.TASKS:
        return _commit_again(context, delivery.over_version_of_user(context, attempt, others))
    task, resume = attempt.task.id, f"idumb resume {context.contract.phase}"
    raise Refusal(
        "task.changed-since",
        f"{task} is done, but cannot be delivered: these were changed since: {wording.listed(others)}",
        hint=f"{task_base.ways_out(context.services, others)}, then {resume}, which builds {task} again if you"
        " committed them",
        details={"phase": context.contract.phase, "paths": list(others), "task": task},
    )


def _commit_of(context: RunContext, attempt: Attempt) -> str | None:
    """Return the task's commit if it was made before the crash; its trailers identify it."""
    ours = (context.run, attempt.task.id, str(attempt.number))
    for commit, trailers in context.services.history.trailers_since(attempt.judged_on):
        if tuple(trailers.get(f"Idumb-{name}") for name in ("Run", "Task", "Attempt")) == ours:
            return commit
    return None


KILLED = "idumb was killed during the attempt"


def record_interruption(context: RunContext, task: Task, why: str = KILLED, seconds: float | None = None) -> None:
    """Record that an attempt was interrupted, with a checkpoint of what it left. It does not count as an attempt.

    `context` is that in which it worked. `seconds` is how long it took. Otherwise the record says how long it had
    worked when it was saved; without one, nobody knows.
    """
    task_state = context.state.tasks[task.id]
    if task_state.work.base is None or not (task_state.attempt.running or task_state.intended):
        return
    context.checks.end_processes()
    number = task_state.attempt.number
    if seconds is None and (saved := context.record(task)) is not None:
        seconds = saved["seconds"]
    left = _kept(context, task, number, task_state.work.base)
    changed = _changed(context, task, task_state.work.base, left.tree)
    files = {"left": left.tree, "touched": list(changed) if context.workspace.in_place else []}
    files |= {"snapshot": left.commit, "ref": left.ref, **questions.effect_payload(task)}
    ended = {"status": INTERRUPTED, "error": why, "seconds": seconds and round(seconds, 3), "files": list(changed)}
    context.journal.write(
        context.journal.event("attempt.interrupted", task.id, number, reason=why, **files),
        attempt_events.checkpoint(context, task, number, left, None, verdict=None, **ended),
    )


def _kept(context: RunContext, task: Task, number: int, base: str) -> Snapshot:
    """Keep what the attempt left, under its name; in a checkout, that may be kept already, or not have begun."""
    services = context.services
    ref = attempt_ref(services, context.run, task.id, number, INTERRUPTED_NAME)
    why = f"{task.id}, attempt {number}, interrupted"
    if context.workspace.in_place:
        return services.trees.snapshot(ref, why, ledger.named_paths(task.files))
    context.workspace.keep()
    kept = services.history.kept(ref)
    if kept is None:
        return services.trees.keep(ref, base, why)
    return Snapshot(kept, services.trees.tree_at(kept), ref)


def _changed(context: RunContext, task: Task, base: str, left: str) -> tuple[str, ...]:
    """Return the declared paths that changed and are not committed: in place, `give-up` restores them."""
    trees, history = context.services.trees, context.services.history
    head, covers = history.head_tree(), paths.cover(ledger.written_paths(task.files))
    changed = [change for change in trees.changes(base, left) if covers(change.path)]
    same = {change for change in changed if trees.entry(head, change.path) == change.new}
    # A file that no commit ever had is deleted in none; otherwise a person committed that meanwhile.
    if record := any(change.new is None for change in same) and context.record(task):
        begun = history.tree_of(record["before"]["head"]["commit"])
        same -= {change for change in same if change.new is None and trees.entry(begun, change.path) is None}
    return tuple(change.path for change in changed if change not in same)
