"""Records an attempt: its events, the intention to deliver and commit, the hidden ref, the commit, the checkpoint."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from idumb.app.attempt import builder_commits, handoff_writer, handover, interruption, judge, questions, step_evidence
from idumb.app.core.attempt import INTENDED, RECORDED, Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.ports.repository import BuilderCommits, Conflict, Snapshot
from idumb.app.worktree import preconditions, staged_changes, task_base
from idumb.domain import agent, canonical_json, outcome, settings, wording
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import REVERSIBLE, Task
from idumb.domain.proof import evidence, symbols
from idumb.domain.runs.event import NewEvent

_DELIVERED = frozenset({outcome.COMPLETED, outcome.WAITING})


def record_checkpoint(context: RunContext, attempt: Attempt, earlier: Attempt | None = None) -> Attempt:
    """Record what the attempt did and, if it is completed, deliver and commit its work.

    The log has the whole attempt before its work is delivered and committed, so that recovery can finish it. `earlier`
    is the attempt as the log has it already, if it waited or was killed.
    """
    if attempt.workspace == "here":
        # Builders do not fsync their files, and a power failure after the checkpoint could empty them.
        context.services.trees.force(attempt.ledger.changed)
    completed = attempt.outcome == outcome.COMPLETED
    commits = completed and not _advances(attempt) and _commits(context, attempt)
    delivers = completed and attempt.workspace != "here" and bool(attempt.ledger.changed)
    attempt = dataclasses.replace(attempt, message=task_message(context, attempt) if commits else "")
    events = [*_finished_events(context, attempt, earlier), *_question_events(context, attempt, earlier)]
    if _advances(attempt) or commits or delivers:
        attempt = attempt.at(INTENDED)
        context.journal.write(*events, _intention(context, attempt))
        return complete(context, attempt)
    kept = keep_candidate(context, attempt, attempt.candidate)
    if attempt.outcome != outcome.WAITING:
        events += completion_events(context, attempt, kept, None)
    context.journal.write(*events)
    return attempt.at(RECORDED)


def _advances(attempt: Attempt) -> bool:
    """Return whether the branch moves to the builder's own commits."""
    return attempt.outcome == outcome.COMPLETED and attempt.commits is not None and attempt.commits.has_commits


def complete(context: RunContext, attempt: Attempt) -> Attempt:
    """Deliver and commit the work of an attempt that the log has. Recovery uses this too."""
    own = attempt.commits if _advances(attempt) else None
    expected, head = attempt.judged_on if own is None else own.base, context.services.history.head().commit
    if own is not None and head not in (expected, own.tip):
        return attempt.at(RECORDED, commit_refused=_moved(attempt, expected, head))
    conflicts = _deliver(context, attempt)
    if conflicts:
        return attempt.at(RECORDED, commit_refused="; ".join(f"{c.path}: {c.why}" for c in conflicts))
    kept = keep_candidate(context, attempt, attempt.candidate)
    if own is not None:
        return _finish_commits(context, attempt, kept, own)
    if attempt.message:
        return _finish_commit(context, attempt, kept)
    context.journal.write(*completion_events(context, attempt, kept, None))
    return attempt.at(RECORDED)


def _commits(context: RunContext, attempt: Attempt) -> bool:
    """Return whether idumb commits the work.

    People and some builders commit their own work. A step of a workflow that changed nothing, such as a condition,
    makes no empty commit.
    """
    return (
        context.policy in settings.COMMITTED
        and not attempt.task.is_human
        and (attempt.task.flow is None or bool(attempt.ledger.changed))
        and attempt.commits is None
    )


def task_message(context: RunContext, attempt: Attempt) -> str:
    """Return the message of a task's commit. Its trailers name run, task, attempt and the plan's bytes."""
    trailers = {
        "Idumb-Run": context.run,
        "Idumb-Task": attempt.task.id,
        "Idumb-Attempt": str(attempt.number),
        "Idumb-Plan": attempt.plan.sha256,
    }
    return words_of(context.services.settings, context.contract, attempt.task.id, trailers)


def words_of(chosen: settings.Settings, contract: Contract, task_id: str, trailers: Mapping[str, str]) -> str:
    """Return the message of a task's commit with these trailers."""
    title, body = _title_and_body(contract.tasks[task_id])
    return chosen.git.commit_message({"title": title, "id": task_id, "phase": contract.phase}, trailers, body)


def _title_and_body(task: Task) -> tuple[str, str]:
    """Return title and body of a task's commit: all words of a person whose description the title shortens."""
    words = task.description
    if not words or not " ".join(words.split()).startswith(task.title.removesuffix("…")):
        return task.title, ""
    first, _, rest = words.partition("\n")
    return (first, rest.strip()) if len(first) <= len(task.title) else (task.title, words)


def _moved(attempt: Attempt, base: str | None, head: str | None) -> str:
    return (
        f"the commits of {attempt.task.id} are based on {base or 'the empty history'}, but HEAD is now"
        f" {head or 'without a commit'}; the task is built again there"
    )


def _deliver(context: RunContext, attempt: Attempt) -> tuple[Conflict, ...]:
    """Write work that was done elsewhere into the user's tree; return the paths that hold other bytes."""
    if attempt.workspace == "here":
        return ()
    return context.services.trees.restore(attempt.candidate, attempt.base, attempt.ledger.changed)


def keep_candidate(context: RunContext, attempt: Attempt, tree: str) -> Snapshot:
    """Keep a tree under the ref of the attempt's checkpoint."""
    why = f"after {attempt.task.id}, attempt {attempt.number}"
    return context.services.trees.keep(f"{attempt.ref}/checkpoint", tree, why)


def _finish_commits(context: RunContext, attempt: Attempt, kept: Snapshot, commits: BuilderCommits) -> Attempt:
    """Move the branch to the builder's tip and record the checkpoint."""
    services = context.services
    if commits.tip is None:
        raise AssertionError("a builder that committed nothing has no tip")
    with services.interrupts.armed():  # a hook of the user's may take long
        advanced = services.history.advance(
            commits.tip,
            f"idumb: {attempt.task.id}",
            expected_head=commits.base,
            hooks=services.settings.git.hooks,
            wrote=context.journal.state.wrote,
        )
    if advanced.guarded:
        raise _planted(context, attempt, advanced.guarded)
    if advanced.unrun:
        _report_hooks(context, attempt, advanced.unrun)
    if advanced.commit is None:
        return attempt.at(RECORDED, commit_refused=advanced.words)
    context.journal.write(*completion_events(context, attempt, kept, advanced.commit))
    return attempt.at(RECORDED)


def _finish_commit(context: RunContext, attempt: Attempt, kept: Snapshot) -> Attempt:
    """Commit the task's own paths and record the checkpoint."""
    hooks, wrote = context.services.settings.git.hooks, context.journal.state.wrote
    entries = context.services.history.staged(attempt.ledger.changed)
    staged = staged_changes.hold_of(context, attempt, entries) if entries else {}
    with context.services.interrupts.armed():  # a hook of the user's may take long
        committed = context.services.history.commit(
            attempt.ledger.changed,
            attempt.message,
            expected_head=attempt.judged_on,
            hooks=hooks,
            allow_empty=True,
            wrote=wrote,
        )
    if committed.guarded:
        raise _planted(context, attempt, committed.guarded)
    if committed.unrun:
        _report_hooks(context, attempt, committed.unrun)
    if committed.commit is None:
        return attempt.at(RECORDED, commit_refused=committed.words)
    if staged:
        staged_changes.tell_replaced_of(context, attempt, staged)
    return finish_checkpoint(context, attempt, kept, committed.commit)


def finish_checkpoint(context: RunContext, attempt: Attempt, kept: Snapshot, commit: str) -> Attempt:
    """Record the checkpoint of a commit, once the bytes that it holds are proven. Recovery uses this too."""
    left_tree = _changed_while_committing(context, attempt, commit)
    if left_tree is not None:
        attempt = _prove_again(context, attempt, left_tree)
    context.journal.write(*completion_events(context, attempt, kept, commit, left_tree))
    return attempt.at(RECORDED)


def _report_hooks(context: RunContext, attempt: Attempt, unrun: Sequence[str]) -> None:
    written = [path for path in unrun if path in attempt.ledger.changed]
    if written:
        context.services.reporter.note(
            f"{attempt.task.id} wrote {wording.listed(written)}, which git runs for commits. idumb's commits of this"
            " run run no hooks."
        )


def _planted(context: RunContext, attempt: Attempt, changed: tuple[str, ...]) -> Refusal:
    """Record the attempt as interrupted, and return the refusal: something planted files of git's own after it ended.

    The record keeps every later command from starting git before the files are restored or accepted.
    """
    task, state = attempt.task, context.journal.state
    when = f"just before {task.id} was committed"
    refusal = preconditions.guarded_changed(when, state, dict.fromkeys(changed, ""), changed)
    interruption.record_interruption(context, task, refusal.message)
    return refusal


def _changed_while_committing(context: RunContext, attempt: Attempt, commit: str) -> str | None:
    """Return the present tree if the commit does not hold what was proven: a hook, a filter or the user changed it."""
    trees, candidate, changed = context.services.trees, attempt.candidate, attempt.ledger.changed
    if attempt.proven is not None:
        tree = context.services.history.tree_of(commit)
        return None if tree == attempt.proven or _is_without(context, attempt, tree) else trees.scan(changed)
    head = context.services.history.head_tree()
    if head is None or all(trees.entry(head, p) == trees.entry(candidate, p) for p in changed):
        return None
    present = trees.scan(changed)  # filters change the bytes that git stores, so compare the files themselves
    return present if trees.overlay(present, candidate, changed) != present else None


def _is_without(context: RunContext, attempt: Attempt, tree: str) -> bool:
    """Return whether the commit differs from what was proven only by finished tasks that nobody committed."""
    trees, candidate, changed = context.services.trees, attempt.candidate, attempt.ledger.changed
    uncommitted = context.journal.state.uncommitted()
    return (
        bool(uncommitted)
        and tree == trees.committed(attempt.judged_on, candidate, changed)
        and attempt.proven == trees.committed(attempt.judged_on, candidate, (*uncommitted, *changed))
    )


def _prove_again(context: RunContext, attempt: Attempt, tree: str) -> Attempt:
    """Run the proofs again on what was committed: bytes that no check has seen prove nothing."""
    judged_tree = tree
    if attempt.proven is not None:
        judged_tree = task_base.tree_between_attempts(context.services, context.journal.state, tree)
    checked = judge.checked_again(context, attempt, judged_tree)
    again = (*checked, *step_evidence.in_tree(context, attempt, tree))
    context.journal.write(*(_event(context, attempt, "evidence.recorded", **e.as_dict()) for e in again))
    attempt = dataclasses.replace(attempt, evidence=(*attempt.evidence, *again))
    failed = [e.subject for e in again if e.result in evidence.BROKEN]
    if not failed:
        return attempt
    words = f"its files changed after the proof (by a hook or an editor?), and then {wording.listed(failed)} failed"
    return dataclasses.replace(attempt, deviation=True, verdict=outcome.FAIL).ended(outcome.FAILED, words)


def _event(context: RunContext, attempt: Attempt, kind: str, **payload: Any) -> NewEvent:
    return NewEvent(kind, payload, run=context.run, task=attempt.task.id, attempt=attempt.number)


def _intention(context: RunContext, attempt: Attempt) -> NewEvent:
    """Return the event that announces the delivery and, if the record has a message, the commit."""
    return _event(context, attempt, "checkpoint.intended", record=attempt.saved(context.services.clock.monotonic()))


def _finished_events(context: RunContext, attempt: Attempt, earlier: Attempt | None) -> list[NewEvent]:
    task, number, result = attempt.task.id, attempt.number, attempt.result
    waits = attempt.outcome == outcome.WAITING
    told = () if earlier is None else earlier.evidence
    # What was made in a clone and will not be delivered never reaches the user's tree.
    here = attempt.workspace == "here" or attempt.outcome in _DELIVERED
    left_tree = _tree_after(context, attempt)
    events = [
        _event(
            context,
            attempt,
            "step.finished",
            call=call_id(context.run, task, number, step.index),
            index=step.index,
            tool=step.tool,
            intent=step.intent,
            arguments=dict(step.arguments),
            ok=step.ok,
            response=step.response,
            words=step.words,
            plan_hash=attempt.plan.sha256,
            seconds=round(step.seconds, 6),
        )
        for step in (result.steps if result and earlier is None else ())
    ]
    new = (e for e in attempt.evidence if e not in told)
    events += [_event(context, attempt, "evidence.recorded", **e.as_dict()) for e in new]
    events.append(
        _event(
            context,
            attempt,
            "attempt.finished",
            outcome=attempt.outcome,
            verdict=attempt.verdict,
            reason=attempt.reason,
            left=left_tree,
            touched=list(attempt.ledger.changed) if here else [],
            deviations=list(attempt.ledger.strays) if here else [],
            accepted_paths=list(attempt.accepted_paths),
            ledger=attempt.ledger.as_list(),
            symbols=symbols.as_texts(attempt.ledger.symbols) if attempt.ledger.symbols else [],
            residue=list(attempt.residue),
            feedback=evidence.feedback(attempt.reason, attempt.ledger, attempt.evidence),
            seconds=round(context.services.clock.monotonic() - attempt.started, 3),
            cause=result.cause if result else None,
            builder=_result_payload(result),
            **_optional_fields(context, attempt),
            **({"outputs": dict(attempt.outputs)} if attempt.outputs else {}),
            **({"record": attempt.saved(context.services.clock.monotonic())} if waits or attempt.deviation else {}),
        )
    )
    return events


def _tree_after(context: RunContext, attempt: Attempt) -> str | None:
    """Return the user's tree as the attempt leaves it; a clone adds only what it delivers."""
    if attempt.workspace == "here":
        return attempt.candidate
    if attempt.outcome not in _DELIVERED:
        return attempt.snapshot.tree
    return context.services.trees.overlay(attempt.snapshot.tree, attempt.candidate, attempt.ledger.changed)


def call_id(run: str, task: str, attempt: int, index: int) -> str:
    """Return the id of the tool call of one step."""
    return canonical_json.digest([run, task, attempt, index])[:16]


def _optional_fields(context: RunContext, attempt: Attempt) -> dict[str, Any]:
    """Return the fields of `attempt.finished` that are recorded only if they are not empty."""
    fields: dict[str, Any] = {}
    result, verdict = attempt.result, attempt.verdict_of_validator
    if attempt.conversation is not None and result is not None:
        fields["resumed"] = result.resumed
    if verdict is not None:
        binding = context.services.settings.bindings.get(attempt.validator or "")
        adapter = attempt.validator if binding is None else binding.adapter
        fields["validator"] = {**(_result_payload(verdict) or {}), "binding": attempt.validator, "adapter": adapter}
    if attempt.commits is not None:
        fields["committed"] = builder_commits.payload(attempt.commits)
    if attempt.failure is not None:
        fields |= {"failure": attempt.failure.kind, "mend": attempt.failure.next_step}
    if attempt.deviation:
        fields["deviation"] = True
    if attempt.tool_files:
        fields["tool_files"] = list(attempt.tool_files)
    if result is not None and result.failure == agent.CONTEXT_EXHAUSTED:
        fields["handover"] = handover.summary(context, attempt, result)
    if result is not None and attempt.task.rollback.kind != REVERSIBLE:
        fields |= questions.effect_payload(attempt.task)
    return fields


def _result_payload(result: agent.AgentResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "outcome": result.outcome,
        "message": result.message,
        "exit_code": result.exit_code,
        "claimed_files": list(result.claimed_files),
        "session": result.session,
        "usage": dataclasses.asdict(result.usage),
        "transcript": result.transcript,
        "output": result.output,
        "output_sha256": result.output_sha256,
        "truncated": result.truncated,
        "seconds": round(result.seconds, 3),
        "cause": result.cause,
        "failure": result.failure,
        "model": result.model,
        **({"crashed": True} if result.crashed else {}),
        **({"sandbox": result.sandbox} if result.sandbox else {}),
    }


def _question_events(context: RunContext, attempt: Attempt, earlier: Attempt | None) -> list[NewEvent]:
    task, number = attempt.task.id, attempt.number
    journal, state = context.journal, context.journal.state
    # A question with a time limit is asked anew in each attempt.
    told = () if earlier is None else earlier.questions
    new = (q for q in attempt.questions if q not in told)
    asked = (q for q in new if q.until is not None or q.id not in state.decisions)
    events = [journal.question_event(q, task, number) for q in asked]
    events += [journal.answer_event(a, task, number) for a in attempt.answers if a.decision not in state.answers]
    if attempt.outcome == outcome.WAITING:
        answered = {answer.decision for answer in attempt.answers}
        waiting = [q.id for q in attempt.questions if q.id not in answered]
        events.append(_event(context, attempt, "task.waiting", decisions=waiting, reason=attempt.reason))
    return events


def completion_events(
    context: RunContext, attempt: Attempt, kept: Snapshot, commit: str | None, left_tree: str | None = None
) -> tuple[NewEvent, ...]:
    return (_checkpoint_event(context, attempt, kept, commit, left_tree), *_completed_event(context, attempt))


def _checkpoint_event(
    context: RunContext, attempt: Attempt, kept: Snapshot, commit: str | None, left_tree: str | None
) -> NewEvent:
    head = commit if commit is not None else context.services.history.head().commit
    return _event(
        context,
        attempt,
        "checkpoint.recorded",
        status="completed" if attempt.outcome == outcome.COMPLETED else "failed",
        git_hash=head,
        commit=commit,
        snapshot=kept.commit,
        ref=kept.ref,
        tree=kept.tree,
        files=list(attempt.ledger.changed),
        seconds=round(context.services.clock.monotonic() - attempt.started, 3),
        error=None if attempt.outcome == outcome.COMPLETED else attempt.reason,
        verdict=attempt.verdict,
        left=left_tree,
    )


def _completed_event(context: RunContext, attempt: Attempt) -> list[NewEvent]:
    if attempt.outcome != outcome.COMPLETED:
        return []
    completed = _event(context, attempt, "task.completed", reason=attempt.reason)
    events = [completed, *(handoff_writer.of_attempt(context, attempt) if attempt.task.handoff_to else ())]
    if attempt.task.flow is None:
        return events
    from idumb.app.attempt import step_outputs  # only workflows need it

    return [*events, *step_outputs.omissions(context, attempt, attempt.task)]
