"""Finishes, adopts or restores what a killed or interrupted run left. A kill during recovery is safe."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from typing import Any

from idumb.app.attempt import adoption, budget, builder_commits, drift_check, projections, questions, record
from idumb.app.core.run_context import Bench, Judged
from idumb.app.core.services import attempt_ref, kept_at, run_ref
from idumb.app.engine import task_failure
from idumb.app.ports.repository import BuilderCommits, Conflict, RepositoryState, Snapshot
from idumb.app.worktree import exposed_secrets, staged_changes, task_base
from idumb.domain import contract as contracts
from idumb.domain import outcome, wording
from idumb.domain.decision import Answer
from idumb.domain.errors import Refusal, WorkFailed
from idumb.domain.plans.plan import Task
from idumb.domain.proof import ledger
from idumb.domain.runs.run import ANSWERED, ELSEWHERE
from idumb.domain.runs.task_state import Checkpoint, TaskState


def recover(bench: Bench) -> tuple[str, ...]:
    """Bring every running task to a state from which the run can continue; return the ids of those tasks.

    An attempt that is open in an editor is left alone: its builder submits it or gives it up.
    """
    tasks = bench.journal.state.tasks
    found = [task for task, known in tasks.items() if known.status == outcome.RUNNING and known.attempt.opened is None]
    for task_id in found:
        bench.checks.end_processes()
        _recover(bench, bench.contract.tasks[task_id], bench.journal.state.tasks[task_id])
    projections.checkpoints_again(bench.services, bench.journal.state, bench.contract, found)
    _keep_refs(bench)
    _refuse_emptied(bench)
    return tuple(found)


def _keep_refs(bench: Bench) -> None:
    """Restore missing refs of checkpoints whose commits still exist."""
    services, state = bench.services, bench.journal.state
    done = {task: known.checkpoint for task, known in state.tasks.items() if not known.carried_from}
    wanted = {
        attempt_ref(
            services, bench.run, task, kept.attempt, record.INTERRUPTED_REFS.get(kept.status, "checkpoint")
        ): kept.snapshot
        for task, kept in done.items()
        if kept is not None
    }
    present = services.history.refs(run_ref(services, bench.run, "")) if wanted else {}
    for ref, commit in wanted.items():
        if ref not in present:
            try:
                services.history.keep_ref(ref, commit)
            except Refusal:
                services.reporter.note(f"{ref} is gone, and so is its commit {commit[:12]}; idumb doctor has details")


def _refuse_emptied(bench: Bench) -> None:
    """Refuse to continue if a file of a checkpoint is empty: that is damage, unless it was committed so."""
    services = bench.services
    if bench.workspace.kind != "here":
        return
    for path, kept in _last_checkpoints(bench).items():
        if not services.reports.empty(path) or not _has_bytes(bench, kept.tree, path):
            continue
        head = services.history.head_tree()
        if head is not None and services.trees.entry(head, path) is not None and not _has_bytes(bench, head, path):
            continue
        raise Refusal(
            "task.emptied-path",
            f"{path} is empty, though its checkpoint has bytes; a power cut or a crash can do that.",
            hint=f"git show {kept_at(kept.snapshot[:12], path)} shows them: put them back, or commit it as it is;"
            f" then idumb resume {bench.contract.phase}",
            details={
                "phase": bench.contract.phase,
                "back": f"git show {shlex.quote(kept_at(kept.snapshot, path))} > {shlex.quote(path)}",
                "path": path,
                "snapshot": kept.snapshot,
            },
        )


def _last_checkpoints(bench: Bench) -> dict[str, Checkpoint]:
    """Return each path with the newest checkpoint of a completed task that touched it."""
    done = [t.checkpoint for t in bench.journal.state.tasks.values() if t.status in outcome.DONE and t.checkpoint]
    return {path: kept for kept in sorted(done, key=lambda c: c.seq) for path in kept.files}


def _has_bytes(bench: Bench, tree: str, path: str) -> bool:
    found = bench.services.trees.entry(tree, path)
    return found is not None and bool(bench.services.trees.read(found.oid))


def resolve_waiting(bench: Bench) -> None:
    """Continue tasks whose questions have all been answered."""
    state = bench.journal.state
    for task_id, known in list(state.tasks.items()):
        if known.status == outcome.WAITING and all(d in state.answers for d in known.decisions):
            _resolve(bench, bench.contract.tasks[task_id], exposed_secrets.found_again(bench.services, known))


def _resolve(bench: Bench, task: Task, known: TaskState) -> None:
    state = bench.journal.state
    if not known.decisions:  # it waits for an answer from elsewhere, and looks for it again
        bench.journal.write(bench.journal.event("task.reset", task.id, reason=ELSEWHERE))
        return
    if adoption.MARK in known.decisions[0]:
        adoption.resolve(bench, task, known)
        return
    if any(
        mark in known.decisions[0]
        for mark in (questions.FAILURE, questions.EFFECT_MARK, budget.MARK, questions.DEVIATION_MARK)
    ):
        _after_failure(bench, task, state.answers[known.decisions[0]]["choice"])
        return
    if f"{task.id}.work" in known.decisions:
        bench.journal.write(bench.journal.event("task.reset", task.id, reason=ANSWERED))
        return
    asked = (
        *questions.criterion_questions(task, known.attempt.number, ()),
        questions.validator_question(task, known.attempt.number, ()),
    )
    known_here = {q.id for q in asked}
    # A question that this version or plan would not put is judged as it was put.
    asked = (*asked, *exposed_secrets.recorded(state, known, [d for d in known.decisions if d not in known_here]))
    given = [
        Answer(a["decision"], a["choice"], a["by"], a.get("guidance", ""))
        for a in (state.answers[d] for d in known.decisions)
    ]
    judged = questions.evidence_of_answers([q for q in asked if q.id in known.decisions], given, known.work.left)
    attempt = dataclasses.replace(_rebuilt(bench, task, known), evidence=judged)
    failed = [e for e in judged if not e.passed]
    if failed:
        words = "; ".join(f"{e.text}: {e.output}" for e in failed)
        attempt = dataclasses.replace(attempt, verdict=outcome.FAIL).ended(outcome.FAILED, words)
    elif bench.workspace.kind == "here" and not _is_present(bench, known.work.left or "", known.work.touched):
        raise Refusal(
            "task.changed-since",
            f"{task.id} was judged, but its files changed since: {wording.listed(known.work.touched)}",
            hint=f"Put them back, or idumb skip {task.id} --why REASON",
            details={"phase": bench.contract.phase, "task": task.id},
        )
    recorded = record.record_checkpoint(bench, attempt)
    if recorded.commit_refused is not None:
        raise _commit_refusal(bench, task, recorded.commit_refused)
    if failed and not task_failure.tries_again(bench, task):
        _fail(bench, task)


def _after_failure(bench: Bench, task: Task, choice: str) -> None:
    """Record what a person decided about a failed task: retry, skip, or leave it failed."""
    again = dict.fromkeys((questions.RETRY, questions.AGAIN, questions.ACCEPT), "task.reset")
    kinds = {**again, questions.SKIP: "task.skipped"}
    kind = "task.reset" if choice == budget.RAISE else kinds.get(choice, "task.failed")
    reason = ANSWERED if kind == "task.reset" else f"answered {choice}"
    # More money makes no failed attempt undone.
    kept = {"attempts": bench.journal.state.tasks[task.id].progress.attempts} if choice == budget.RAISE else {}
    bench.journal.write(bench.journal.event(kind, task.id, reason=reason, **kept))


def _recover(bench: Bench, task: Task, known: TaskState) -> None:
    if known.intended is not None and known.intended.get("tip") is not None:
        _recover_commits(bench, task, known, known.intended)
    elif known.intended is not None:
        commit = _commit_of(bench, task.id, known)
        staged_changes.tell_again(bench, task, known.attempt.number, committed=commit is not None)
        if commit is not None:
            bench.services.history.settle(commit, tuple(known.intended["paths"]))
            _record(bench, task, known, commit)
        elif _is_delivered(bench, task, known):
            _commit_again(bench, task, known)
        else:
            record.record_interruption(
                bench, task, record.KILLED if task_base.made_in(bench, known) == "here" else UNDELIVERED
            )
    elif known.attempt.running:
        if task_base.made_in(bench, known) == "here":
            drift_check.report_after_crash(bench, task, known)
        record.record_interruption(bench, task, _why_halted(bench, task) or record.KILLED)
    elif known.attempt.adopted:
        bench.journal.write(*adoption.asked(bench, task))
    elif not task_failure.tries_again(bench, task):
        _fail(bench, task)
    # A recorded failure with attempts left needs nothing: the run goes on with the next attempt.


def _recover_commits(bench: Bench, task: Task, known: TaskState, intended: Mapping[str, Any]) -> None:
    """Finish or retry the delivery of a builder's own commits. The log names the tip, so nothing is guessed."""
    history = bench.services.history
    head, offered = history.head().commit, BuilderCommits(intended["head"], intended["tip"])
    if head != offered.tip and history.descends(intended["tip"]):
        _record(bench, task, known, intended["tip"])
    elif head not in (offered.base, offered.tip):
        _take_delivered_back(bench, intended["tree"], intended["base"], tuple(intended["paths"]))
        record.record_interruption(bench, task, MOVED)
    elif head == offered.tip or _is_delivered(bench, task, known):
        attempt = _rebuilt(bench, task, known)
        ref = attempt_ref(bench.services, bench.run, task.id, known.attempt.number, "checkpoint")
        reason = f"after {task.id}, attempt {known.attempt.number}"
        kept = bench.services.trees.keep(ref, intended["tree"], reason, known.work.snapshot)
        recorded = record.finish_commits(bench, attempt, kept, offered)
        if recorded.commit_refused is not None:
            raise _commit_refusal(bench, task, recorded.commit_refused)
    else:
        record.record_interruption(bench, task, UNDELIVERED)


def _why_halted(bench: Bench, task: Task) -> str | None:
    """Return why the run was stopped during the attempt, if it was."""
    log = bench.services.log
    begun = next(iter(log.events(run=bench.run, task=task.id, kind="attempt.started", newest_first=True, limit=1)))
    halted = next(iter(log.events(run=bench.run, kind="run.halted", after=begun.seq, limit=1)), None)
    return None if halted is None else str(halted.payload.get("reason") or "") or None


def _fail(bench: Bench, task: Task) -> None:
    bench.journal.write(*task_failure.of_recorded(bench, task, bench.journal.state.tasks[task.id]))


MOVED = "HEAD moved on before its commits were taken, so it is made again there"
UNDELIVERED = "what it made in the clone no longer fits the files here, so it is made again"


def _is_delivered(bench: Bench, task: Task, known: TaskState) -> bool:
    """Return whether the intended files are all in the user's tree, after delivering those that are missing.

    Uncommitted changes in their way are refused. If those are committed, a new attempt starts from them.
    """
    intended, trees = known.intended or {}, bench.services.trees
    wanted, touched = intended["tree"], tuple(intended["paths"])
    if _is_present(bench, wanted, touched):
        return True
    if task_base.made_in(bench, known) == "here":
        return False
    conflicts = trees.restore(wanted, intended["base"], touched)
    if not conflicts:
        return True
    if bench.services.history.uncommitted([c.path for c in conflicts]):
        raise _undelivered(bench, task, conflicts)
    _take_delivered_back(bench, wanted, intended["base"], touched)
    return False


def _take_delivered_back(bench: Bench, wanted: str, base: str, touched: tuple[str, ...]) -> None:
    """Restore what a killed command delivered, unless somebody committed or changed it since."""
    trees = bench.services.trees
    present = trees.scan(touched)
    ours = [p for p in touched if trees.entry(present, p) == trees.entry(wanted, p)]
    open_ones = bench.services.history.uncommitted(ours) if ours else ()
    trees.restore(base, wanted, open_ones)


def _undelivered(bench: Bench, task: Task, conflicts: tuple[Conflict, ...]) -> Refusal:
    named = wording.listed((f"{c.path} {c.why}" for c in conflicts), between="; ")
    return Refusal(
        "task.changed-since",
        f"{task.id} is done in its clone, but cannot be delivered: {named}",
        hint=f"Move your changes away, or commit them and {task.id} is made again on top;"
        f" then idumb resume {bench.contract.phase}",
        details={"phase": bench.contract.phase, "paths": [c.path for c in conflicts], "task": task.id},
    )


def _commit_of(bench: Bench, task: str, known: TaskState) -> str | None:
    """Return the task's commit if it was made before the crash; its trailers identify it."""
    intended = known.intended or {}
    for commit, trailers in bench.services.history.trailers_since(intended.get("head")):
        if (trailers.get("Idumb-Run"), trailers.get("Idumb-Task"), trailers.get("Idumb-Attempt")) == (
            bench.run,
            task,
            str(known.attempt.number),
        ):
            return commit
    return None


def _is_present(bench: Bench, tree: str, touched: tuple[str, ...]) -> bool:
    """Return whether each path is in the working tree as it is in `tree`."""
    trees = bench.services.trees
    present = trees.scan(touched)
    return trees.overlay(present, tree, touched) == present


def _commit_again(bench: Bench, task: Task, known: TaskState) -> None:
    intended = known.intended or {}
    attempt = _rebuilt(bench, task, known)
    ref = attempt_ref(bench.services, bench.run, task.id, known.attempt.number, "checkpoint")
    kept = bench.services.trees.keep(
        ref, intended["tree"], f"after {task.id}, attempt {known.attempt.number}", known.work.snapshot
    )
    if intended["message"]:
        head = bench.services.history.head()
        recorded = record.finish_commit(bench, attempt, kept, head.commit, intended["message"])
        if recorded.commit_refused is not None:
            raise _commit_refusal(bench, task, recorded.commit_refused)
    else:
        bench.journal.write(*record.completion_events(bench, attempt, kept, None))
    _take_into_clone(bench, kept.tree, tuple(intended["paths"]))


def _take_into_clone(bench: Bench, tree: str, done: tuple[str, ...]) -> None:
    """Bring what recovery finished into the clone, which was made before."""
    if bench.workspace.kind != "here":
        bench.work.restore(tree, tree, done, force=True)


def _commit_refusal(bench: Bench, task: Task, words: str) -> WorkFailed:
    mine = contracts.in_editor(bench.plans[task.id], task, bench.services.settings)
    again = f"idumb submit {task.id}" if mine else f"idumb resume {bench.contract.phase}"
    return WorkFailed(
        "git.commit-refused",
        f"git refused the commit of {task.id}: {words}",
        hint=f"Fix what git names, then {again}",
    )


def _record(bench: Bench, task: Task, known: TaskState, commit: str | None) -> None:
    """Record work that was done and proven, but not recorded."""
    attempt = _rebuilt(bench, task, known)
    tree = (known.intended or {}).get("tree") or known.work.left or ""
    ref = attempt_ref(bench.services, bench.run, task.id, known.attempt.number, "checkpoint")
    kept = bench.services.trees.keep(ref, tree, f"after {task.id}, attempt {known.attempt.number}", known.work.snapshot)
    bench.journal.write(*record.completion_events(bench, attempt, kept, commit))


def _rebuilt(bench: Bench, task: Task, known: TaskState) -> Judged:
    """Return the attempt as its events describe it: enough to commit and record it."""
    services = bench.services
    base, candidate = known.work.base or "", known.work.left or ""
    return Judged(
        task=task,
        plan=bench.plans[task.id],
        number=known.attempt.number,
        base=base,
        feedback="",
        started=services.clock.monotonic(),
        snapshot=Snapshot(known.work.snapshot or "", base, ""),
        before=RepositoryState(services.history.head(), {}),
        announced={},
        caches=(),
        result=None,
        commits=builder_commits.recorded(bench, known),
        candidate=candidate,
        changes=(),
        ledger=ledger.Ledger(tuple(ledger.Line(p, ledger.DECLARED, "changed", None) for p in known.work.touched)),
        outcome=outcome.COMPLETED,
        verdict=outcome.PASS,
    )
