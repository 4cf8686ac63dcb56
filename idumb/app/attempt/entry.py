"""Begins an attempt: its base and feedback, the lock, a durable snapshot, the announcement, the preconditions."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from idumb.app.attempt import budget
from idumb.app.contract import envelopes, run_lock
from idumb.app.core import questions
from idumb.app.core.attempt import ANNOUNCED, Attempt
from idumb.app.core.run_context import INTERRUPTED_NAME, RunContext
from idumb.app.core.services import attempt_ref
from idumb.app.ports import Agent
from idumb.app.worktree import preconditions, task_base
from idumb.domain import agent, canonical_json, contract, envelope, failures, outcome
from idumb.domain.plans.plan import CONTEXT, Task
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.runs.run import TaskState


def begin(context: RunContext, task: Task) -> Attempt:
    """Return the next attempt with its number, base and feedback. Its base is "" if it starts anew."""
    services, last, plan = context.services, context.state.tasks[task.id], context.contract.plan_of[task.id]
    number, goes_on, waits = last.attempt.number + 1, keeps_own_work(context, task), lacks_only_verdict(context, task)
    return Attempt(
        task=task,
        plan=plan,
        number=number,
        base=last.work.base or "" if goes_on or waits else "",
        feedback=feedback(last),
        started=services.clock.monotonic(),
        builder=contract.builder_of(plan, task, services.settings) or "",
        validator=contract.validator_of(plan, task, services.settings),
        ref=attempt_ref(services, context.run, task.id, number),
        in_place=context.workspace.in_place,
        accepted_paths=last.work.accepted_paths,
        awaits_verdict=waits,
        handover=last.context.handover if goes_on and not waits else "",
        from_user=() if context.workspace.in_place else questions.files_from_user(context.state, task.id),
        allowance=budget.left_for_task(services.settings, context.state, task.id),
    )


def feedback(last: TaskState) -> str:
    """Return what was wrong with the last attempt, and what a person added for the next ones."""
    problems, guidance = last.context.feedback, last.context.guidance
    return f"{problems}\n\n{guidance}".strip() if guidance else problems


def keeps_own_work(context: RunContext, task: Task) -> bool:
    """Return whether a retry continues from its own work: after failed validation, or an exhausted context.

    What a crash left is unfinished, so the next attempt starts over. In the user's own tree, work always stays.
    """
    last = context.state.tasks[task.id]
    if last.work.base is None:
        return False
    ended, builder = last.attempt.outcome, _builder(context, task)
    if context.workspace.in_place:
        return True
    # One that waited for an answer from elsewhere changed nothing; the user's new commit is not in its base.
    goes_on = ended in (outcome.FAILED, outcome.WAITING) or last.attempt.failure == agent.CONTEXT_EXHAUSTED
    fresh = last.attempt.crashed or last.attempt.failure == failures.BROKEN_HEAD
    return goes_on and not fresh and builder.continues


def lacks_only_verdict(context: RunContext, task: Task) -> bool:
    """Return whether the work is done, and only its verdict is pending. Steps are run again."""
    return context.state.tasks[task.id].attempt.unjudged and _builder(context, task).continues


def _builder(context: RunContext, task: Task) -> Agent:
    return context.agents.get(
        contract.builder_of(context.contract.plan_of[task.id], task, context.services.settings) or ""
    )


def check_lock(context: RunContext, attempt: Attempt) -> Attempt:
    """Refuse unless HEAD is on the run's branch, and the lock of the run holds."""
    preconditions.require_branch(context.services, context.state)
    run_lock.require_unchanged(context, attempt)
    return attempt


def take_snapshot(context: RunContext, attempt: Attempt) -> Attempt:
    """Take a durable snapshot, read it back, then record that the attempt started."""
    services, task = context.services, attempt.task
    before = services.history.state()
    named, why = (*attempt.literal_paths, *attempt.from_user), f"before {task.id}, attempt {attempt.number}"
    snapshot = services.trees.snapshot(f"{attempt.ref}/base", why, named)
    attempt = replace(attempt, snapshot=snapshot)
    present = snapshot.tree if context.workspace.in_place else _shown(context, attempt)
    if not attempt.base:
        attempt = replace(attempt, base=present)
    elif context.workspace.in_place:
        attempt = replace(attempt, base=task_base.with_work_of_others(context, attempt))
    kept = {}
    if attempt.base != snapshot.tree:  # no snapshot has it, and git could collect it
        why = f"what {task.id} starts from"
        kept["kept"] = services.trees.keep(f"{attempt.ref}/task-base", attempt.base, why).commit
    environment, guarded = _environment_payload(context, attempt), dict(before.guarded)
    context.journal.append(
        "attempt.started",
        task.id,
        attempt.number,
        base=attempt.base,
        snapshot=snapshot.commit,
        ref=snapshot.ref,
        present=present,
        builder=attempt.builder,
        **kept,
        **environment,
        **({"guarded": guarded} if guarded and guarded != context.state.guarded.digests else {}),
    )
    announced = {**environment, "present": present}
    return attempt.at(ANNOUNCED, before=before, announced=announced)


def _shown(context: RunContext, attempt: Attempt) -> str:
    """Show the builder what it starts from, or its own earlier work; return the tree of the checkout."""
    left = context.state.tasks[attempt.task.id].work.left_tree if attempt.base else None
    tree = left or task_base.tree_for_builder(context, attempt)
    context.workspace.show(tree, context.services.history.head().commit)
    context.workspace.begin(f"{attempt.ref}/{INTERRUPTED_NAME}")
    return context.workspace.with_ignored(tree, attempt.literal_paths)


def _environment_payload(context: RunContext, attempt: Attempt) -> dict[str, Any]:
    """Return the fields of `attempt.started` about the environment: `envelope`, `request`, and their sources."""
    key = contract.envelope_key(attempt.builder, attempt.validator)
    locked = context.state.contract.envelopes.get(key)
    if locked is None:
        locked = envelopes.current_envelopes(context.services, context.agents, context.contract).envelopes[key]
    entries = {path: context.work.entry(attempt.base, path) for path in attempt.task.context_paths}
    request = _request_digest(context, attempt, str(locked["adapter"]))
    # A reference may not be a file, and a condition may name a folder, which has no hash.
    needed = {c.subject.rstrip("/") for c in attempt.task.preconditions if c.kind == CONTEXT}
    hashes = {p: e.oid if e else None for p, e in entries.items() if e is not None or p in needed}
    sealed = envelope.seal(locked, context=envelope.context_digest(hashes)) if hashes else dict(locked)
    return {"envelope": sealed, "request": request, **({"context": hashes} if hashes else {})}


def _request_digest(context: RunContext, attempt: Attempt, adapter: str) -> str:
    """Return a hash that distinguishes the requests of attempts under the same envelope.

    The envelope includes plans and template. Steps ignore feedback.
    """
    task = context.state.tasks[attempt.task.id].digest
    if not attempt.feedback or agent.capabilities_of(adapter).deterministic:
        return canonical_json.digest([task])
    return canonical_json.digest([task, attempt.feedback, attempt.number])


def check_preconditions(context: RunContext, attempt: Attempt) -> Attempt:
    """Check preconditions and, if the work starts at the task base, tests that must fail before it."""
    if attempt.awaits_verdict or not (attempt.task.preconditions or attempt.task.tests):
        return attempt  # there are none, or they held when the work was done
    first = bool(attempt.task.tests) and attempt.announced["present"] == attempt.base
    with context.services.interrupts.armed():
        checked = _check_before(context, attempt, first=first)
    context.checks.end_processes()
    attempt = replace(attempt, evidence=checked)
    failed = [e for e in checked if not e.passed]
    if failed:
        return attempt.ended(outcome.REFUSED, f"{failed[0].subject}: {failed[0].text} ({failed[0].result})")
    return attempt


def _check_before(context: RunContext, attempt: Attempt, *, first: bool) -> tuple[Evidence, ...]:
    """Check preconditions and, on the first attempt, tests that must fail or pass before the work."""
    checks, task = context.checks, attempt.task
    tree = task_base.tree_before(context, attempt)
    conditions = enumerate(task.preconditions, 1)
    checked = [checks.condition(f"precondition {i}", condition, tree=tree) for i, condition in conditions]
    for i, test in enumerate(task.tests if first else (), 1):
        name, text = f"test {i} before", test.intent or test.command
        result = checks.command(name, text, test.command, tree=tree)
        checked.append(result if test.before == "passes" else _inverted(result))
    return tuple(checked)


def _inverted(result: Evidence) -> Evidence:
    """Return the evidence of a test that must fail. An error or a timeout proves nothing."""
    if result.result not in (evidence.PASSED, evidence.FAILED):
        return result
    inverted = evidence.FAILED if result.passed else evidence.PASSED
    return replace(result, result=inverted, text=f"{result.text} (must fail before the work)")
