"""Records an attempt: its events, the intention to deliver and commit, the hidden ref, the commit, the checkpoint."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from idumb.app.attempt import delivery, handoff_writer, handover, judge, questions, step_evidence
from idumb.app.core.attempt import INTENDED, RECORDED, Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.ports.repository import Snapshot
from idumb.app.worktree import preconditions, staged_changes, task_base
from idumb.domain import agent, canonical_json, outcome, settings, wording
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import REVERSIBLE, Task
from idumb.domain.proof import evidence, symbols
from idumb.domain.runs.event import NewEvent


def record_checkpoint(context: RunContext, attempt: Attempt, earlier: Attempt | None = None) -> Attempt:
    """Record what the attempt did and, if it is completed, deliver and commit its work.

    The log has the whole attempt before its work is delivered and committed, so that recovery can finish it. `earlier`
    is the attempt as the log has it already, if it waited or was killed.
    """
    if attempt.in_place:
        # Editors do not force files to disk, and a power failure after the checkpoint could empty them.
        context.services.trees.force(attempt.ledger.changed)
    completed = attempt.outcome == outcome.COMPLETED
    commits = completed and _commits(context, attempt)
    delivers = completed and not attempt.in_place and bool(attempt.ledger.changed)
    attempt = dataclasses.replace(attempt, message=task_message(context, attempt) if commits else "")
    events = [*_finished_events(context, attempt, earlier), *_question_events(context, attempt, earlier)]
    if commits or delivers:
        attempt = attempt.at(INTENDED)
        context.journal.write(*events, _intention(context, attempt))
        context.workspace.end()  # the log has the candidate
        return complete(context, attempt)
    kept = keep_candidate(context, attempt, attempt.candidate)
    if attempt.outcome != outcome.WAITING:
        events += completion_events(context, attempt, kept, None)
    context.journal.write(*events)
    context.workspace.end()
    return attempt.at(RECORDED)


def complete(context: RunContext, attempt: Attempt) -> Attempt:
    """Deliver and commit the work of an attempt that the log has. Recovery uses this too."""
    why = preconditions.why_not_deliver(context.services, context.journal.state)
    if why:
        return attempt.at(RECORDED, commit_refused=why)
    conflicts = delivery.deliver(context, attempt)
    if conflicts:
        return attempt.at(RECORDED, commit_refused="; ".join(f"{c.path}: {c.why}" for c in conflicts))
    kept = keep_candidate(context, attempt, delivery.delivered(context, attempt))
    if attempt.message:
        return _finish_commit(context, attempt, kept)
    context.journal.write(*completion_events(context, attempt, kept, None))
    return attempt.at(RECORDED)


def _commits(context: RunContext, attempt: Attempt) -> bool:
    """Return whether idumb commits the work.

    People commit their own work. A step of a workflow that changed nothing, such as a condition, makes no empty commit.
    """
    return (
        context.policy == settings.COMMIT_TASK
        and not attempt.task.is_human
        and (attempt.task.flow is None or bool(attempt.ledger.changed))
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


def keep_candidate(context: RunContext, attempt: Attempt, tree: str) -> Snapshot:
    """Keep a tree under the ref of the attempt's checkpoint."""
    why = f"after {attempt.task.id}, attempt {attempt.number}"
    return context.services.trees.keep(f"{attempt.ref}/checkpoint", tree, why)


def _finish_commit(context: RunContext, attempt: Attempt, kept: Snapshot) -> Attempt:
    """Commit the task's own paths and record the checkpoint."""
    state = context.journal.state
    entries = context.services.history.staged(attempt.ledger.changed)
    staged = staged_changes.hold_of(context, attempt, entries) if entries else {}
    with context.services.interrupts.armed():  # a hook of the user's may take long
        committed = preconditions.commit_on(
            context.services, state, attempt.ledger.changed, attempt.message, attempt.judged_on, allow_empty=True
        )
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
    here = attempt.in_place or attempt.outcome == outcome.COMPLETED
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
            left=delivery.delivered(context, attempt) if here else attempt.candidate or attempt.snapshot.tree,
            touched=list(attempt.ledger.changed) if here else [],
            deviations=list(attempt.ledger.strays),
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
