"""Records an attempt and, if it is completed, commits and delivers its work.

The commit is made beside the user's branch. If his hooks change the work, that is proven before anything is
delivered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from idumb.app.attempt import attempt_events, judge, steps
from idumb.app.core.attempt import INTENDED, RECORDED, Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import kept_at
from idumb.app.ports import CommitAttempt, Snapshot
from idumb.app.worktree import delivery, preconditions
from idumb.domain import outcome, paths, settings, wording
from idumb.domain.agent import capabilities
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence

_ROUNDS = 3
"""How often hooks may change the work before it is committed."""


def record_checkpoint(context: RunContext, attempt: Attempt) -> Attempt:
    """Record what the attempt did and, if it is completed, commit and deliver its work.

    The log has the whole attempt before that, so that recovery can finish it.
    """
    if attempt.in_place:
        # Editors do not force files to disk, and a power failure after the checkpoint could empty them.
        context.services.trees.force(attempt.ledger.changed)
    completed = attempt.outcome == outcome.COMPLETED
    commits = completed and _commits(context, attempt)
    delivers = completed and not attempt.in_place and bool(attempt.ledger.changed)
    attempt = replace(attempt, message=task_message(context, attempt) if commits else "")
    # A delivery may wait for days, in which git collects objects that no ref has.
    kept = keep_candidate(context, attempt, attempt.candidate)
    events = [*attempt_events.of_end(context, attempt), *attempt_events.of_questions(context, attempt)]
    if commits or delivers:
        attempt = attempt.at(INTENDED)
        context.journal.write(*events, attempt_events.of_intention(context, attempt))
        context.workspace.end()  # the log has the candidate
        return commit_and_deliver(context, replace(attempt, logged=attempt.evidence))
    if attempt.outcome != outcome.WAITING:
        events += attempt_events.of_checkpoint(context, attempt, kept, None)
    context.journal.write(*events)
    context.workspace.end()
    return attempt.at(RECORDED)


def commit_and_deliver(context: RunContext, attempt: Attempt) -> Attempt:
    """Commit and deliver the work of an attempt that the log has. Recovery uses this too.

    `commit_refused` says why it is not done. An attempt that fails, because of a hook, is recorded as failed.
    """
    why = preconditions.why_not_deliver(context)
    if why:
        return attempt.at(RECORDED, commit_refused=why)
    if not attempt.message:
        return _deliver(context, attempt, None)
    attempt = replace(attempt, message=task_message(context, attempt))  # a hook may have refused that of other settings
    for _ in range(_ROUNDS):
        made, tree = _make(context, attempt)
        if made.tree != tree:
            changed = [change.path for change in context.work.changes(tree, made.tree)]
            if why := _why_not_by_hooks(context, attempt, changed):
                return attempt.at(RECORDED, commit_refused=why)
            attempt = _with_changes_of_hooks(context, attempt, made.tree, changed)
        if attempt.outcome == outcome.FAILED:
            return record_checkpoint(context, attempt)
        if made.commit is not None:
            return _deliver(context, attempt, made.commit)
        if made.tree == tree:
            return _refused(context, attempt, made)
    return attempt.at(RECORDED, commit_refused=f"hooks changed the files {_ROUNDS} times")


def _make(context: RunContext, attempt: Attempt) -> tuple[CommitAttempt, str]:
    """Make the commit of the task's own paths; return the tree that it should have, too."""
    services = context.services
    tree = context.work.committed(attempt.judged_on, attempt.candidate, attempt.committed)
    with services.interrupts.armed():  # a hook of the user's may take long
        made = services.history.make(
            tree,
            attempt.judged_on,
            attempt.message,
            hooks=services.settings.git.hooks,
            wrote=context.state.wrote,
        )
    context.checks.end_processes()  # what a hook left could write where checks prove its commit
    if made.unrun:
        words = f"This run wrote {wording.listed(made.unrun)}, which git runs for commits"
        context.tell_once("hooks", f"{words}. idumb's commits of this run run no hooks.")
    return made, tree


def _why_not_by_hooks(context: RunContext, attempt: Attempt, changed: Sequence[str]) -> str:
    """Return why hooks may not change these paths; "" if they may. A hook may run what the task wrote."""
    protected = context.protected(attempt.plan)
    found = [p for p in changed if p not in attempt.changed and paths.protecting_rule(p, protected) is not None]
    return f"a hook changed {wording.listed(found)} in its commit, which no task may change" if found else ""


def _with_changes_of_hooks(context: RunContext, attempt: Attempt, changed: str, of_hooks: Sequence[str]) -> Attempt:
    """Return the attempt with what hooks changed, once that is proven: bytes that no check has seen prove nothing."""
    trees = context.work
    source = context.services.open_checkout().checked_out(changed, of_hooks) if attempt.in_place else changed
    more = tuple(path for path in of_hooks if path not in attempt.changed)
    if more:
        context.services.reporter.note(f"A hook changed {wording.listed(more)} in the commit of {attempt.task.id}.")
    before = attempt
    attempt = replace(
        attempt,
        candidate=trees.overlay(attempt.candidate, source, of_hooks),
        by_hooks=(*attempt.by_hooks, *more),
        before_hooks=attempt.before_hooks or attempt.candidate,
    )
    if attempt.proven is not None:
        proven = trees.overlay(changed, attempt.proven, context.state.uncommitted())
        attempt = judge.prove_again(context, replace(attempt, proven=proven), proven)
    attempt = replace(attempt, evidence=(*attempt.evidence, *steps.evidence_of(context, attempt)))
    failed = [e.subject for e in attempt.evidence if e.result in evidence.BROKEN and e not in before.evidence]
    why = f"{wording.listed(failed)} failed" if failed else attempt.reason
    if failed or attempt.outcome == outcome.FAILED:
        words = f"a hook changed its files after the proof, and then {why}"
        return replace(before, evidence=attempt.evidence, verdict=outcome.FAIL).ended(outcome.FAILED, words)
    context.journal.write(*attempt_events.new_evidence(context, attempt), attempt_events.of_intention(context, attempt))
    return replace(attempt, logged=attempt.evidence)


def _refused(context: RunContext, attempt: Attempt, made: CommitAttempt) -> Attempt:
    """Return what follows if git made no commit: a model gets the words of a hook, and corrects its work.

    If the hook lacks something in the checkout, no correction helps.
    """
    if made.by_hook and (lacked := context.checks.lacked_by_hook(made.words)):
        return attempt.at(RECORDED, commit_refused=f"{made.words}\n[the hook may need {lacked}]")
    corrects = not attempt.in_place and capabilities(context.agents.get(attempt.builder)).calls_model
    if not made.by_hook or not corrects:
        return attempt.at(RECORDED, commit_refused=made.words)
    failed = replace(attempt, verdict=outcome.FAIL)
    return record_checkpoint(context, failed.ended(outcome.FAILED, f"a hook refused its commit: {made.words}"))


def _deliver(context: RunContext, attempt: Attempt, commit: str | None) -> Attempt:
    """Write the work into the user's tree, move his branch to its commit, and record the checkpoint."""
    if why := preconditions.why_not_deliver(context):  # a hook may have taken long
        return attempt.at(RECORDED, commit_refused=why)
    conflicts = delivery.deliver(context, attempt)
    if conflicts:
        why = "; ".join(f"{c.path} {c.why}" for c in conflicts)
        return attempt.at(RECORDED, commit_refused=why, conflicts=tuple(c.path for c in conflicts))
    kept = keep_candidate(context, attempt, delivery.delivered(context, attempt))
    if commit is not None:
        history = context.services.history
        # Of these files the commit has his own version, with all that he had staged of it.
        own = attempt.committed if attempt.in_place else attempt.from_user
        _keep_staged(context, attempt, own, history.tree_of(commit))
        words = history.advance(context.state.branch, commit, attempt.judged_on, attempt.task.id, own)
        if words:
            return attempt.at(RECORDED, commit_refused=words)
    return record_delivered(context, attempt, kept, commit)


def _keep_staged(context: RunContext, attempt: Attempt, own: Sequence[str], committed: str) -> None:
    """Keep other versions that the user staged of his files: the index is about to follow the commit."""
    trees, staged = context.services.trees, context.services.history.staged(own)
    others = [path for path, entry in staged.items() if entry not in (None, trees.entry(committed, path))]
    if others:
        kept = trees.snapshot(f"{attempt.ref}/staged", f"what you had staged before {attempt.task.id} was committed")
        for path in others:
            place = kept_at(context.services, kept.commit[:12], path, "staged")
            context.services.reporter.note(f"What you had staged of {path} is kept: git show {place}")


def record_delivered(context: RunContext, attempt: Attempt, kept: Snapshot, commit: str | None) -> Attempt:
    """Record the checkpoint of work that is delivered. Recovery uses this too."""
    context.journal.write(*attempt_events.of_checkpoint(context, attempt, kept, commit))
    return attempt.at(RECORDED)


def _commits(context: RunContext, attempt: Attempt) -> bool:
    """Return whether idumb commits the work.

    A step of a workflow that changed nothing, such as a condition, makes no empty commit; nor does a person's task
    whose files he did not change, or committed himself.
    """
    if context.state.policy != settings.COMMIT_TASK:
        return False
    if not attempt.task.is_human:
        return attempt.task.flow is None or bool(attempt.ledger.changed)
    trees, head = context.services.trees, context.services.history.head_tree()
    return any(trees.entry(head, path) != trees.entry(attempt.candidate, path) for path in attempt.committed)


def task_message(context: RunContext, attempt: Attempt) -> str:
    """Return the message of a task's commit. Its trailers name run, task, attempt and the plan's bytes."""
    trailers = {
        "Idumb-Run": context.run,
        "Idumb-Task": attempt.task.id,
        "Idumb-Attempt": str(attempt.number),
        "Idumb-Plan": attempt.plan.sha256,
    }
    return words_of(context.services.settings, context.contract, attempt.task.id, trailers, attempt.messages)


def words_of(
    chosen: settings.Settings,
    contract: Contract,
    task_id: str,
    trailers: Mapping[str, str],
    messages: Sequence[str] = (),
) -> str:
    """Return the message of a task's commit with these trailers; `messages` are those of its builder."""
    title, body = _title_and_body(contract.tasks[task_id])
    if chosen.git.message == settings.FROM_BUILDER and messages and messages[-1]:
        title, body = messages[-1].partition("\n")[0], ""
    return chosen.git.commit_message({"title": title, "id": task_id, "phase": contract.phase}, trailers, body)


def _title_and_body(task: Task) -> tuple[str, str]:
    """Return title and body of a task's commit: all words of a person whose description the title shortens."""
    words = task.description
    if not words or not " ".join(words.split()).startswith(task.title.removesuffix("…")):
        return task.title, ""
    first, _, rest = words.partition("\n")
    return (first, rest.strip()) if len(first) <= len(task.title) else (task.title, words)


def keep_candidate(context: RunContext, attempt: Attempt, tree: str) -> Snapshot:
    """Keep a tree under the ref of the attempt's checkpoint."""
    trees, ref = context.services.trees, f"{attempt.ref}/checkpoint"
    kept = context.services.history.kept(ref)
    if kept is not None and trees.tree_at(kept) == tree:
        return Snapshot(kept, tree, ref)
    return trees.keep(ref, tree, f"after {attempt.task.id}, attempt {attempt.number}")
