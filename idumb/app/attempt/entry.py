"""Begins an attempt: its base and feedback, the locks, a durable snapshot, the announcement, the preconditions."""

from __future__ import annotations

import dataclasses

from idumb.app.attempt import (
    budget,
    build,
    builder_commits,
    proofs,
)
from idumb.app.contract import contract_lock, environment_lock
from idumb.app.core.run_context import Attempt, Bench
from idumb.app.core.services import attempt_ref
from idumb.app.ports.agents import Agent, capabilities
from idumb.app.worktree import preconditions, task_base
from idumb.domain import agent, contract, outcome, paths
from idumb.domain import contract as contracts
from idumb.domain.agent import Conversation
from idumb.domain.consent.envelope import envelope_key
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import STRICT, Task
from idumb.domain.runs import legacy
from idumb.domain.runs.task_state import TaskState


def check_lock(bench: Bench, attempt: Attempt) -> Attempt:
    """The owner is still this process, HEAD is on the branch of this run, and what was locked in still holds."""
    services = bench.services
    if not services.owner.check(bench.journal.fence):
        raise Refusal(
            "lock.lost",
            "This process owns the work tree no longer: another one took it over, or its lock file was removed.",
            hint="idumb doctor shows who holds it, and whether anything has to be mended",
        )
    preconditions.require_branch(services, bench.journal.state)
    contract_lock.require(bench, attempt.task)
    environment_lock.require(bench, attempt)
    return dataclasses.replace(attempt, standing=attempt.standing or services.history.state())


def take_snapshot(bench: Bench, attempt: Attempt) -> Attempt:
    """The whole tree is durable and read back before anything else; then the attempt is announced."""
    services, task = bench.services, attempt.task
    ref = attempt_ref(services, bench.run, task.id, attempt.number, "base")
    snapshot = services.trees.snapshot(ref, f"before {task.id}, attempt {attempt.number}", attempt.literal_paths)
    fresh = bench.workspace.kind == "here"
    present = snapshot.tree if fresh else bench.work.scan(attempt.literal_paths)
    base = task_base.task_base(bench, attempt, present)
    if fresh and base != snapshot.tree:
        # Made of two trees, so no snapshot names it, and a rollback needs it when git has collected what none names.
        made = attempt_ref(services, bench.run, task.id, attempt.number, "task-base")
        services.trees.keep(made, base, f"what {task.id} starts from", snapshot.commit)
    attempt = dataclasses.replace(attempt, snapshot=snapshot, base=base, caches=bench.work.caches())
    # Where nothing is built there is nobody whose envelope another attempt could be held against.
    binding = "" if attempt.adopted else build.binding_name(bench, attempt)
    told = {"adopted": True} if attempt.adopted else environment_lock.attempt_payload(bench, attempt, binding)
    bench.journal.write(
        bench.journal.event(
            "attempt.started",
            task.id,
            attempt.number,
            base=base,
            snapshot=snapshot.commit,
            ref=snapshot.ref,
            present=present,
            builder=binding,
            **budget.told(services.settings, bench.journal.state, task.id),
            **told,
            **_known_before(bench, attempt, binding),
        )
    )
    # Idumb's own refs are looked at now, when those of this attempt are made; the user's before.
    seen = dataclasses.replace(attempt.standing or services.history.state(), kept=services.history.expected_refs())
    return dataclasses.replace(attempt, told={**told, "present": present}, standing=seen)


def _known_before(bench: Bench, attempt: Attempt, binding: str) -> dict[str, object]:
    """What only a look before the work tells: folders that are to be made, and git's own files where they changed."""
    known: dict[str, object] = {}
    if bench.workspace.kind != bench.journal.state.workspace:
        known["workspace"] = bench.workspace.kind
    if bench.workspace.kind == "here" and binding == agent.STEPS:
        made = (str(s.arguments["path"]) for s in attempt.task.steps if s.tool == "make_directory")
        known["folders"] = list(bench.work.missing_folders(p for p in made if not paths.problem(p.rstrip("/"))))
    guarded = dict(attempt.standing.guarded) if attempt.standing else {}
    if guarded != bench.journal.state.guarded.digests:
        known["guarded"] = guarded
    return {name: value for name, value in known.items() if value}


def check_preconditions(bench: Bench, attempt: Attempt) -> Attempt:
    """Preconditions hold, and tests that must fail before the work do fail, wherever the work starts at the base."""
    if attempt.built:  # they held when it was
        return attempt
    begun = legacy.is_to_be_built(bench.journal.state, attempt.task.id)
    first = bool(attempt.task.tests) and not begun and bench.work.scan(attempt.literal_paths) == attempt.base
    with bench.services.interrupts.armed():
        found = proofs.check_before(bench.checks, attempt.task, bench.services.settings, attempt.base, first=first)
    attempt = dataclasses.replace(attempt, evidence=found)
    failed = [e for e in found if not e.passed]
    if failed:
        attempt = attempt.ended(outcome.REFUSED, f"{failed[0].subject}: {failed[0].text} ({failed[0].result})")
    return _take_residue_into_base(bench, attempt) if found else attempt


def _take_residue_into_base(bench: Bench, attempt: Attempt) -> Attempt:
    """Files that checks before the work left behind are no work of the builder."""
    if attempt.snapshot is None:
        return attempt
    bench.checks.end_processes()
    after = bench.work.scan(attempt.literal_paths)
    before = attempt.snapshot.tree if bench.workspace.kind == "here" else attempt.base
    new = tuple(c.path for c in bench.work.changes(before, after) if c.old is None)
    attempt = dataclasses.replace(attempt, caches=bench.work.caches())
    if not new:
        return attempt
    return dataclasses.replace(attempt, residue=new, base=bench.work.overlay(attempt.base, after, new))


PUT_BACK = "The files are again as they were before the first attempt: nothing of what was written since is there."
"""What an agent must know that remembers what it wrote."""


def resumed_conversation(bench: Bench, task: Task) -> Conversation | None:
    """The conversation of the attempt before; None where the builder begins a new one.

    Only the same agent is asked so, about the same task of the same contract, where its binding says so. Strict and
    deterministic runs never do: what an agent remembers is in no tree.
    """
    state, plan = bench.journal.state, bench.plans[task.id]
    known = state.tasks[task.id].context.conversation
    if known is None or bench.deterministic or STRICT in (plan.mode, state.mode):
        return None
    builder = contract.builder_of(plan, task, bench.services.settings) or ""
    validator = contract.validator_of(plan, task, bench.services.settings)
    envelope = state.contract.envelopes.get(envelope_key(builder, validator))
    if envelope is None or not capabilities(bench.agents.get(builder)).resumable:
        return None
    same = (known.speaker, known.contract) == (agent.speaker_digest(envelope), state.contract.hash)
    return known if same else None


def begin(bench: Bench, task: Task) -> Attempt:
    """Number, task base and feedback of the next attempt; puts the work tree back where it must start anew."""
    known = bench.journal.state.tasks[task.id]
    plan = bench.plans[task.id]
    started = bench.services.clock.monotonic()
    # A clone is made anew for each command, so what an earlier one left in its clone is gone.
    made_in = task_base.made_in(bench, known) if known.attempt.number else bench.workspace.kind
    gone = "clone" in (bench.workspace.kind, made_in) and task.id not in bench.begun
    if made_in == "here" and bench.workspace.kind != "here":
        task_base.take_back(bench, task)
    base = "" if gone else known.work.base or ""
    bench.begun.add(task.id)
    fresh = Attempt(task, plan, known.attempt.number + 1, base, feedback(known), started, known.work.accepted_paths)
    if waits_for_verdict(bench, task):
        return dataclasses.replace(fresh, built=True)
    goes_on = bool(base) and known.work.left is not None and _goes_on(bench, task, known)
    if bench.commits is not None and not (goes_on and builder_commits.stands(bench)):
        return builder_commits.begin(bench, fresh)
    if not base or known.work.left is None:
        return fresh
    conversation = resumed_conversation(bench, task)
    if goes_on:
        return dataclasses.replace(fresh, handover=known.context.handover, conversation=conversation)
    task_base.restart(bench, task)
    if conversation is None:
        return fresh
    told = f"{fresh.feedback}\n\n{PUT_BACK}".lstrip()
    return dataclasses.replace(fresh, feedback=told, conversation=conversation)


def feedback(known: TaskState) -> str:
    """What was wrong with the attempt before, and what a person said to the next ones."""
    return (
        f"{known.context.feedback}\n\n{known.context.guidance}".strip()
        if known.context.guidance
        else known.context.feedback
    )


def _goes_on(bench: Bench, task: Task, known: TaskState) -> bool:
    """A retry after failed validation goes on from its own work, where the builder can; all else starts anew.

    So does a fresh agent where the context of the one before was full. What a crash left is nobody's finished thought.
    """
    last = known.attempt.outcome
    who = _builder(bench, task)
    # Who waited for an answer from elsewhere did nothing meanwhile; a person may have worked in the files.
    waited = last == outcome.WAITING and not capabilities(who).asks_person
    full = known.attempt.failure == agent.CONTEXT_EXHAUSTED
    return (last == outcome.FAILED or waited or full) and not known.attempt.crashed and who.continues


def waits_for_verdict(bench: Bench, task: Task) -> bool:
    """Whether the work is there, in the user's own tree, and is not to be made again; steps are."""
    known = bench.journal.state.tasks[task.id]
    here = known.attempt.unjudged and bench.workspace.kind == "here" and task_base.made_in(bench, known) == "here"
    return here and _builder(bench, task).continues


def _builder(bench: Bench, task: Task) -> Agent:
    return bench.agents.get(contracts.builder_of(bench.plans[task.id], task, bench.services.settings) or "")
