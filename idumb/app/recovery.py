"""What a killed or interrupted run left behind is finished, adopted or taken back. Safe to be killed itself."""

from __future__ import annotations

import dataclasses

from idumb.app import ports, proofs, recording, schedule
from idumb.app.bench import Attempt, Bench
from idumb.app.services import attempt_ref
from idumb.domain import ledger, outcome, paths
from idumb.domain.decision import Answer
from idumb.domain.errors import Refusal, WorkFailed
from idumb.domain.plan import Task
from idumb.domain.run import ANSWERED, TaskState


def recover(bench: Bench) -> tuple[str, ...]:
    """Bring every task that was running to a state from which the run can go on; the ids of those tasks."""
    found = [task for task, known in bench.journal.state.tasks.items() if known.status == outcome.RUNNING]
    for task_id in found:
        bench.checks.end_processes()
        _recover(bench, bench.contract.tasks[task_id], bench.journal.state.tasks[task_id])
    return tuple(found)


def resolve_waiting(bench: Bench) -> None:
    """Go on with tasks whose questions have all been answered since."""
    state = bench.journal.state
    for task_id, known in list(state.tasks.items()):
        if known.status == outcome.WAITING and all(d in state.answers for d in known.decisions):
            _resolve(bench, bench.contract.tasks[task_id], known)


def _resolve(bench: Bench, task: Task, known: TaskState) -> None:
    state = bench.journal.state
    if proofs.FAILURE in known.decisions[0]:
        _after_failure(bench, task, state.answers[known.decisions[0]]["choice"])
        return
    if f"{task.id}.work" in known.decisions:
        bench.journal.write(bench.journal.event("task.reset", task.id, reason=ANSWERED))
        return
    asked = (*proofs.questions(task, known.attempt, ()), proofs.validator_question(task, known.attempt, ()))
    given = [
        Answer(a["decision"], a["choice"], a["by"], a.get("guidance", ""))
        for a in (state.answers[d] for d in known.decisions)
    ]
    judged = proofs.of_answers([q for q in asked if q.id in known.decisions], given, known.left)
    attempt = dataclasses.replace(_rebuilt(bench, task, known), evidence=judged)
    failed = [e for e in judged if not e.passed]
    if failed:
        words = "; ".join(f"{e.text}: {e.output}" for e in failed)
        attempt = dataclasses.replace(attempt, verdict=outcome.FAIL).ended(outcome.FAILED, words)
    elif bench.workspace.kind == "here" and not _is_present(bench, known.left or "", known.touched):
        raise Refusal(
            "task.changed-since",
            f"{task.id} was judged, but its files changed since: {', '.join(known.touched[:5])}",
            hint=f"Put them back, or idumb skip {task.id} --why REASON",
        )
    attempt = recording.record_checkpoint(bench, attempt)
    if attempt.commit_refused is not None:
        raise _commit_refusal(bench, task, attempt.commit_refused)
    if failed and not _tries_again(bench, task):
        _fail(bench, task)


def _after_failure(bench: Bench, task: Task, choice: str) -> None:
    """What a person said to a task that failed and asks: try again, leave out, or leave it failed."""
    kind = {proofs.RETRY: "task.reset", proofs.SKIP: "task.skipped"}.get(choice, "task.failed")
    reason = ANSWERED if kind == "task.reset" else f"answered {choice}"
    bench.journal.write(bench.journal.event(kind, task.id, reason=reason))


def _recover(bench: Bench, task: Task, known: TaskState) -> None:
    if known.intended is not None:
        commit = _commit_of(bench, task.id, known)
        if commit is not None:
            _record(bench, task, known, commit)
        elif _is_present(bench, known.intended["tree"], tuple(known.intended["paths"])):
            _commit_again(bench, task, known)
        else:
            record_interruption(bench, task)
    elif known.running:
        record_interruption(bench, task)
    elif not _tries_again(bench, task):
        _fail(bench, task)
    # A recorded failure with attempts left needs nothing: the run goes on with the next attempt.


def _tries_again(bench: Bench, task: Task) -> bool:
    """What the runner would have said of the recorded failure."""
    return schedule.tries_again(task, bench.plans[task.id].mode, bench.journal.state.tasks[task.id], bench.max_attempts)


def _fail(bench: Bench, task: Task) -> None:
    known = bench.journal.state.tasks[task.id]
    bench.journal.write(
        bench.journal.event("task.failed", task.id, known.attempt, reason=known.reason, attempts=known.attempts)
    )


def record_interruption(bench: Bench, task: Task) -> None:
    """Keep the present, say what the attempt touched of its declared paths; it does not count."""
    known = bench.journal.state.tasks[task.id]
    if known.base is None or not (known.running or known.intended):
        return
    bench.checks.end_processes()
    services = bench.services
    ref = attempt_ref(services, bench.run, task.id, known.attempt, "interrupted")
    declared = ledger.written_paths(task.files)
    reason = f"{task.id}, attempt {known.attempt}, interrupted"
    kept = services.trees.snapshot(ref, reason, ledger.named_paths(task.files))
    here = bench.workspace.kind == "here"
    changed = services.trees.changes(known.base, kept.tree) if here else ()
    covers = paths.cover(declared)
    head = services.history.head_tree() if changed else None
    # What is committed by now is somebody's word, and never put back.
    changed = tuple(c for c in changed if head is None or services.trees.entry(head, c.path) != c.new)
    touched = [c.path for c in changed if covers(c.path)]
    attributed = {*touched}
    others = [c.path for c in changed if c.path not in attributed and not paths.matches_any(c.path, paths.OWN_FILES)]
    bench.journal.write(
        bench.journal.event(
            "attempt.interrupted",
            task.id,
            known.attempt,
            left=kept.tree,
            touched=touched,
            others=others,
            snapshot=kept.commit,
            ref=ref,
            reason="idumb was ended in the middle of it",
        )
    )
    _note_others(bench, task, others)


def _note_others(bench: Bench, task: Task, others: list[str]) -> None:
    """Changes that may be the user's are left as they are, and named."""
    if others:
        named = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        bench.services.reporter.note(f"{task.id} was interrupted; also changed since then, left as it is: {named}")


def _commit_of(bench: Bench, task: str, known: TaskState) -> str | None:
    """The task's commit on the branch, found by its trailers, if it was made before the crash."""
    intended = known.intended or {}
    for commit, trailers in bench.services.history.trailers_since(intended.get("head")):
        if (trailers.get("Idumb-Run"), trailers.get("Idumb-Task"), trailers.get("Idumb-Attempt")) == (
            bench.run,
            task,
            str(known.attempt),
        ):
            return commit
    return None


def _is_present(bench: Bench, tree: str, touched: tuple[str, ...]) -> bool:
    """Whether each touched path is in the work tree as it is in `tree`."""
    trees = bench.services.trees
    present = trees.scan(touched)
    return trees.overlay(present, tree, touched) == present


def _commit_again(bench: Bench, task: Task, known: TaskState) -> None:
    intended = known.intended or {}
    attempt = _rebuilt(bench, task, known)
    ref = attempt_ref(bench.services, bench.run, task.id, known.attempt, "checkpoint")
    kept = bench.services.trees.keep(ref, intended["tree"], f"after {task.id}, attempt {known.attempt}", known.snapshot)
    head = bench.services.history.head()
    attempt = recording.finish_commit(bench, attempt, kept, head.commit, intended["message"])
    if attempt.commit_refused is not None:
        raise _commit_refusal(bench, task, attempt.commit_refused)


def _commit_refusal(bench: Bench, task: Task, words: str) -> WorkFailed:
    return WorkFailed(
        "git.commit-refused",
        f"git refused the commit of {task.id}: {words}",
        hint=f"Mend what git names, then idumb resume {bench.contract.phase}",
    )


def _record(bench: Bench, task: Task, known: TaskState, commit: str | None) -> None:
    """The work was done and proven, only its record is missing: write it."""
    attempt = _rebuilt(bench, task, known)
    tree = (known.intended or {}).get("tree") or known.left or ""
    ref = attempt_ref(bench.services, bench.run, task.id, known.attempt, "checkpoint")
    kept = bench.services.trees.keep(ref, tree, f"after {task.id}, attempt {known.attempt}", known.snapshot)
    bench.journal.write(*recording.completion_events(bench, attempt, kept, commit))


def _rebuilt(bench: Bench, task: Task, known: TaskState) -> Attempt:
    """The attempt as its events tell it, far enough to commit and record it."""
    lines = tuple(ledger.Line(p, ledger.DECLARED, "changed", None) for p in known.touched)
    return Attempt(
        task,
        bench.plans[task.id],
        known.attempt,
        known.base or "",
        "",
        bench.services.clock.monotonic(),
        snapshot=ports.Snapshot(known.snapshot or "", known.base or "", ""),
        candidate=known.left,
        ledger=ledger.Ledger(lines),
        verdict=outcome.PASS,
        outcome=outcome.COMPLETED,
    )
