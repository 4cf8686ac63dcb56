"""Finishes, adopts or restores what a killed or interrupted run left. A kill during recovery is safe."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from typing import Any

from idumb.app.attempt import budget, builder_commits, interruption, projections, questions, record
from idumb.app.core import kept_runs, run_lookup
from idumb.app.core.run_context import Judged, Recorded, RunContext
from idumb.app.core.services import attempt_ref, kept_at, run_ref
from idumb.app.engine import task_failure
from idumb.app.ports.repository import BuilderCommits, Conflict, RepositoryState, Snapshot
from idumb.app.worktree import drift, exposed_secrets, staged_changes, task_base
from idumb.domain import contract as contracts
from idumb.domain import outcome, wording
from idumb.domain.decision import Answer, seconds_until
from idumb.domain.errors import Refusal, WorkFailed
from idumb.domain.plans.plan import Task
from idumb.domain.proof import ledger
from idumb.domain.runs.run import ANSWERED, ELSEWHERE
from idumb.domain.runs.task_state import Checkpoint, TaskState


def recover(context: RunContext) -> None:
    """Bring every running task to a state from which the run can continue.

    An attempt that is open in an editor is left alone: its builder submits it or gives it up.
    """
    tasks = context.journal.state.tasks
    running = [
        t
        for t, task_state in tasks.items()
        if task_state.status == outcome.RUNNING and task_state.attempt.opened is None
    ]
    for task_id in running:
        context.checks.end_processes()
        _recover(context, context.contract.tasks[task_id], context.journal.state.tasks[task_id])
    projections.checkpoints_again(context.services, context.journal.state, context.contract, running)
    _keep_refs(context)
    _refuse_emptied(context)


def _keep_refs(context: RunContext) -> None:
    """Restore missing refs of checkpoints whose commits still exist."""
    services, state = context.services, context.journal.state
    freed = kept_runs.freed(services).get(state.id, 0)
    done = {task: task_state.checkpoint for task, task_state in state.tasks.items() if not task_state.carried_from}
    checkpoint_refs = {
        attempt_ref(
            services, context.run, task, kept.attempt, interruption.INTERRUPTED_REFS.get(kept.status, "checkpoint")
        ): kept.snapshot
        for task, kept in done.items()
        if kept is not None and kept.seq > freed
    }
    present = services.history.refs(run_ref(services, context.run, "")) if checkpoint_refs else {}
    for ref, commit in checkpoint_refs.items():
        if ref not in present:
            try:
                services.history.keep_ref(ref, commit)
            except Refusal:
                services.reporter.note(f"{ref} is gone, and so is its commit {commit[:12]}; idumb doctor has details")


def _refuse_emptied(context: RunContext) -> None:
    """Refuse to continue if a file of a checkpoint is empty: that is damage, unless it was committed so."""
    services = context.services
    if context.workspace.kind != "here":
        return
    for path, kept in _last_checkpoints(context).items():
        if not services.reports.empty(path) or not _has_bytes(context, kept.tree, path):
            continue
        head = services.history.head_tree()
        if head is not None and services.trees.entry(head, path) is not None and not _has_bytes(context, head, path):
            continue
        raise Refusal(
            "task.emptied-path",
            f"{path} is empty, though its checkpoint has bytes; a power cut or a crash can do that.",
            hint=f"git show {kept_at(services, kept.snapshot[:12], path)} shows them: put them back, or commit it as it"
            f" is; then idumb resume {context.contract.phase}",
            details={
                "phase": context.contract.phase,
                "back": f"git show {shlex.quote(kept_at(services, kept.snapshot, path))} > {shlex.quote(path)}",
                "path": path,
                "snapshot": kept.snapshot,
            },
        )


def _last_checkpoints(context: RunContext) -> dict[str, Checkpoint]:
    """Return each path with the newest checkpoint of a completed task that touched it."""
    done = [t.checkpoint for t in context.journal.state.tasks.values() if t.status in outcome.DONE and t.checkpoint]
    return {path: kept for kept in sorted(done, key=lambda c: c.seq) for path in kept.files}


def _has_bytes(context: RunContext, tree: str, path: str) -> bool:
    entry = context.services.trees.entry(tree, path)
    return entry is not None and bool(context.services.trees.read(entry.oid))


def resolve_waiting(context: RunContext) -> None:
    """Continue tasks whose questions have all been answered, and end those whose time to answer is over."""
    state = context.journal.state
    for task_id, task_state in list(state.tasks.items()):
        if task_state.status != outcome.WAITING:
            continue
        if all(d in state.answers for d in task_state.decisions):
            _resolve(
                context, context.contract.tasks[task_id], exposed_secrets.found_again(context.services, task_state)
            )
        elif _is_unanswered(context, task_state):
            _end_unanswered(context, context.contract.tasks[task_id], task_state)


def _is_unanswered(context: RunContext, task_state: TaskState) -> bool:
    """Return whether the time of a question that nobody answered is over."""
    state = context.journal.state
    ends = (state.decisions[d].get("until") for d in task_state.decisions if d not in state.answers)
    return any(end is not None and not seconds_until(end, context.services.clock.now()) for end in ends)


def _end_unanswered(context: RunContext, task: Task, task_state: TaskState) -> None:
    attempt = dataclasses.replace(_rebuilt(context, task, task_state), verdict=outcome.FAIL)
    record.record_checkpoint(context, attempt.ended(outcome.TIMED_OUT, questions.UNANSWERED))
    if not task_failure.tries_again(context, task):
        _fail(context, task)


_ABOUT_FAILURES = (
    questions.FAILURE,
    questions.PRECONDITION_MARK,
    questions.EFFECT_MARK,
    questions.DEVIATION_MARK,
)


def _resolve(context: RunContext, task: Task, task_state: TaskState) -> None:
    state = context.journal.state
    if not task_state.decisions:  # it waits for an answer from elsewhere, and looks for it again
        context.journal.write(context.journal.event("task.reset", task.id, reason=ELSEWHERE))
        return
    if any(mark in task_state.decisions[0] for mark in (*_ABOUT_FAILURES, budget.MARK)):
        _after_failure(context, task, state.answers[task_state.decisions[0]]["choice"])
        return
    if f"{task.id}.work" in task_state.decisions:
        context.journal.write(context.journal.event("task.reset", task.id, reason=ANSWERED))
        return
    current = (
        *questions.criterion_questions(task, task_state.attempt.number, ()),
        questions.validator_question(task, task_state.attempt.number, ()),
    )
    ids = {q.id for q in current}
    # A question that this version or plan would not ask is judged as it was asked.
    all_questions = (
        *current,
        *exposed_secrets.recorded(state, task_state, [d for d in task_state.decisions if d not in ids]),
    )
    answers = [
        Answer(a["decision"], a["choice"], a["by"], a.get("guidance", ""))
        for a in (state.answers[d] for d in task_state.decisions)
    ]
    judged = questions.evidence_of_answers(
        [q for q in all_questions if q.id in task_state.decisions], answers, task_state.work.left_tree
    )
    attempt = dataclasses.replace(_rebuilt(context, task, task_state), evidence=judged)
    failed = [e for e in judged if not e.passed]
    if failed:
        words = "; ".join(f"{e.text}: {e.output}" for e in failed)
        attempt = dataclasses.replace(attempt, verdict=outcome.FAIL).ended(outcome.FAILED, words)
    elif context.workspace.kind == "here" and not _is_present(
        context, task_state.work.left_tree or "", task_state.work.touched
    ):
        raise Refusal(
            "task.changed-since",
            f"{task.id} was judged, but its files changed since: {wording.listed(task_state.work.touched)}",
            hint=f"Restore them as they were, or idumb skip {task.id} --why REASON",
            details={"phase": context.contract.phase, "task": task.id},
        )
    _require_committed(context, record.record_checkpoint(context, attempt))
    if failed and not task_failure.tries_again(context, task):
        _fail(context, task)


def _after_failure(context: RunContext, task: Task, choice: str) -> None:
    """Record what a person decided about a failed task: retry, skip, or leave it failed."""
    again = dict.fromkeys((questions.RETRY, questions.AGAIN, questions.ACCEPT), "task.reset")
    kinds = {**again, questions.SKIP: "task.skipped"}
    kind = "task.reset" if choice == budget.RAISE else kinds.get(choice, "task.failed")
    reason = ANSWERED if kind == "task.reset" else f"answered {choice}"
    # A raised ceiling does not undo a failed attempt.
    kept = {"attempts": context.journal.state.tasks[task.id].progress.attempts} if choice == budget.RAISE else {}
    yours = questions.is_yours(context, task, choice) if kind == "task.reset" else {}
    context.journal.write(context.journal.event(kind, task.id, reason=reason, **kept, **yours))


def _recover(context: RunContext, task: Task, task_state: TaskState) -> None:
    if task_state.intended is not None and task_state.intended.get("tip") is not None:
        _recover_commits(context, task, task_state, task_state.intended)
    elif task_state.intended is not None:
        commit = _commit_of(context, task.id, task_state)
        staged_changes.tell_again(context, task, task_state.attempt.number, committed=commit is not None)
        if commit is not None:
            context.services.history.settle_index(commit, tuple(task_state.intended["paths"]))
            _record(context, task, task_state, commit)
        elif _is_delivered(context, task, task_state):
            _commit_again(context, task, task_state)
        else:
            interruption.record_interruption(
                context, task, interruption.KILLED if task_base.made_in(context, task_state) == "here" else UNDELIVERED
            )
    elif task_state.attempt.running:
        if task_base.made_in(context, task_state) == "here":
            drift.report_after_crash(context, task, task_state)
        interruption.record_interruption(context, task, _why_halted(context, task) or interruption.KILLED)
    elif not task_failure.tries_again(context, task):
        _fail(context, task)
    # A recorded failure with attempts left needs nothing: the run continues with the next attempt.


def _recover_commits(context: RunContext, task: Task, task_state: TaskState, intended: Mapping[str, Any]) -> None:
    """Finish or retry the delivery of a builder's own commits. The log names the tip, so nothing is guessed."""
    history = context.services.history
    head, offered = history.head().commit, BuilderCommits(intended["head"], intended["tip"])
    if head != offered.tip and history.descends(intended["tip"]):
        _record(context, task, task_state, intended["tip"])
    elif head not in (offered.base, offered.tip):
        _take_delivered_back(context, intended["tree"], intended["base"], tuple(intended["paths"]))
        interruption.record_interruption(context, task, MOVED)
    elif head == offered.tip or _is_delivered(context, task, task_state):
        attempt = _rebuilt(context, task, task_state)
        kept = record.keep_candidate(context, attempt, intended["tree"])
        _require_committed(context, record.finish_commits(context, attempt, kept, offered))
    else:
        interruption.record_interruption(context, task, UNDELIVERED)


def _why_halted(context: RunContext, task: Task) -> str | None:
    """Return why the run was stopped during the attempt, if it was."""
    begun = run_lookup.last_event(context.services, "attempt.started", context.run, task.id)
    after = 0 if begun is None else begun.seq
    halted = next(iter(context.services.log.events(run=context.run, kind="run.halted", after=after, limit=1)), None)
    return None if halted is None else str(halted.payload.get("reason") or "") or None


def _fail(context: RunContext, task: Task) -> None:
    context.journal.write(*task_failure.of_recorded(context, task, context.journal.state.tasks[task.id]))


MOVED = "HEAD moved before the commits of the task were taken; the task is built again"
UNDELIVERED = "its work in the clone conflicts with the files here; the task is built again"


def _is_delivered(context: RunContext, task: Task, task_state: TaskState) -> bool:
    """Return whether the intended files are all in the user's tree, after delivering those that are missing.

    Uncommitted changes in their way are refused. If those are committed, a new attempt starts from them.
    """
    intended, trees = task_state.intended or {}, context.services.trees
    intended_tree, touched = intended["tree"], tuple(intended["paths"])
    if _is_present(context, intended_tree, touched):
        return True
    if task_base.made_in(context, task_state) == "here":
        return False
    conflicts = trees.restore(intended_tree, intended["base"], touched)
    if not conflicts:
        return True
    if context.services.history.uncommitted([c.path for c in conflicts]):
        raise _undelivered(context, task, conflicts)
    _take_delivered_back(context, intended_tree, intended["base"], touched)
    return False


def _take_delivered_back(context: RunContext, delivered: str, base: str, touched: tuple[str, ...]) -> None:
    """Restore what a killed command delivered, unless it was committed or changed since."""
    trees = context.services.trees
    present = trees.scan(touched)
    ours = [p for p in touched if trees.entry(present, p) == trees.entry(delivered, p)]
    trees.restore(base, delivered, context.services.history.uncommitted(ours))


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


def _commit_of(context: RunContext, task: str, task_state: TaskState) -> str | None:
    """Return the task's commit if it was made before the crash; its trailers identify it."""
    intended = task_state.intended or {}
    for commit, trailers in context.services.history.trailers_since(intended.get("head")):
        if (trailers.get("Idumb-Run"), trailers.get("Idumb-Task"), trailers.get("Idumb-Attempt")) == (
            context.run,
            task,
            str(task_state.attempt.number),
        ):
            return commit
    return None


def _is_present(context: RunContext, tree: str, touched: tuple[str, ...]) -> bool:
    """Return whether each path is in the working tree as it is in `tree`."""
    trees = context.services.trees
    present = trees.scan(touched)
    return trees.overlay(present, tree, touched) == present


def _commit_again(context: RunContext, task: Task, task_state: TaskState) -> None:
    intended = task_state.intended or {}
    attempt = _rebuilt(context, task, task_state)
    kept = record.keep_candidate(context, attempt, intended["tree"])
    if intended["message"]:
        head = context.services.history.head().commit
        _require_committed(context, record.finish_commit(context, attempt, kept, head, intended["message"]))
    else:
        context.journal.write(*record.completion_events(context, attempt, kept, None))
    _take_into_clone(context, kept.tree, tuple(intended["paths"]))


def _take_into_clone(context: RunContext, tree: str, done: tuple[str, ...]) -> None:
    """Bring what recovery finished into the clone, which was made before."""
    if context.workspace.kind != "here":
        context.work.restore(tree, tree, done, force=True)


def _require_committed(context: RunContext, attempt: Recorded) -> None:
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


def _record(context: RunContext, task: Task, task_state: TaskState, commit: str | None) -> None:
    """Record work that was done and proven, but not recorded."""
    attempt = _rebuilt(context, task, task_state)
    intended = task_state.intended or {}
    kept = record.keep_candidate(context, attempt, intended.get("tree") or task_state.work.left_tree or "")
    if commit is not None and attempt.proven is not None and attempt.commits is None:
        record.finish_checkpoint(context, attempt, kept, commit, intended["head"])
    else:
        context.journal.write(*record.completion_events(context, attempt, kept, commit))


def _rebuilt(context: RunContext, task: Task, task_state: TaskState) -> Judged:
    """Return the attempt as its events describe it: enough to commit and record it."""
    base, candidate = task_state.work.base or "", task_state.work.left_tree or ""
    return context.attempt(task, task_state.attempt.number, base=base, feedback="").become(
        Judged,
        snapshot=Snapshot(task_state.work.snapshot or "", base, ""),
        before=RepositoryState(context.services.history.head(), {}),
        announced={},
        result=None,
        commits=builder_commits.recorded(context, task_state),
        candidate=candidate,
        proven=(task_state.intended or {}).get("proven"),
        changes=(),
        ledger=ledger.Ledger(tuple(ledger.Line(p, ledger.DECLARED, "changed", None) for p in task_state.work.touched)),
        outcome=outcome.COMPLETED,
        verdict=outcome.PASS,
    )
