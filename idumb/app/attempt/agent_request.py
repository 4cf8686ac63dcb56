"""What an agent is asked: who, with which prompt, for how long."""

from __future__ import annotations

from idumb.app.attempt import budget, builder_commits, task_brief
from idumb.app.core.run_context import Attempt, Bench
from idumb.app.ports.agents import Agent, PromptRequest, capabilities
from idumb.domain import agent, contract, failures, listing, outcome, paths, roles
from idumb.domain.errors import Refusal
from idumb.domain.failures import Told
from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import ledger, levels
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import Binding, Limits


def binding_name(bench: Bench, attempt: Attempt) -> str:
    name = contract.builder_of(attempt.plan, attempt.task, bench.services.settings)
    if name is None:  # intake refuses such a plan before a run starts
        raise Refusal("task.no-builder", f"Nothing can build {attempt.task.id}.")
    return name


def request(
    bench: Bench, attempt: Attempt, role: str, who: Agent, found: tuple[Evidence, ...] = ()
) -> agent.AgentRequest:
    services, task = bench.services, attempt.task
    protected = bench.protected(attempt.plan)
    filled = roles.filling(services.settings, role, _binding_of(bench, attempt, role))
    asked = PromptRequest(
        role,
        task,
        attempt.plan,
        protected,
        attempt.feedback,
        attempt.number,
        found,
        template=filled.template,
        name=filled.prompt,
        handover=attempt.handover,
        commits=role == agent.BUILDER and builder_commits.by_builder(bench, task),
        decided=task_brief.decisions_made(bench.journal.state),
        diff=_change(bench, attempt) if role == agent.VALIDATOR else "",
    )
    room = budget.left(services.settings, bench.journal.state, task.id)
    limit = _deadline(bench, attempt) if role == agent.BUILDER else levels.rule(services.settings, role).timeout
    return agent.AgentRequest(
        role=role,
        task=task,
        prompt=services.documents.prompt(asked) if capabilities(who).reads_prompt else "",
        workspace=bench.work.root,
        allowed_paths=ledger.written_paths(task.files),
        attempt=attempt.number,
        deadline=_least(limit, room.seconds),
        budget=agent.Budget(room.tokens, room.cost_usd, services.settings.run.output_limit),
        feedback=attempt.feedback,
        session=attempt.conversation.session if role == agent.BUILDER and attempt.conversation else None,
        protected=protected,
        run_id=bench.run,
        idle_timeout=services.settings.idle_timeout(_binding_of(bench, attempt, role), capabilities(who).idle_timeout),
        limits=_limits(bench, attempt, role).chosen(),
        model=filled.model,
        settled=bench.journal.state.tasks[task.id].settled,
        candidate=_candidate(bench, attempt) if role == agent.VALIDATOR else "",
        unsaved=_unsaved(bench),
        commits=asked.commits,
    )


def _unsaved(bench: Bench) -> tuple[str, ...]:
    """What git ignores in the user's own work tree; all that a clone has of such was made in it."""
    return bench.work.ignored() if bench.workspace.kind == "here" else ()


def _candidate(bench: Bench, attempt: Attempt) -> str:
    """The candidate without what idumb itself writes, for that changes while a verdict is waited for."""
    tree, start = attempt.candidate or "", bench.journal.state.base_tree
    if bench.workspace.kind != "here" or not tree:
        return tree
    own = [c.path for c in bench.work.changes(start, tree) if paths.matches_any(c.path, paths.OWN_FILES)]
    return bench.work.overlay(tree, start, own) if own else tree


MOST_SHOWN = 200_000
"""Characters of a change that a validator is shown; it can read the rest in the files."""


def _change(bench: Bench, attempt: Attempt) -> str:
    """What the attempt changed since the task base, as a validator is shown it."""
    if attempt.candidate is None or not attempt.ledger.changed:
        return ""
    text = bench.work.diff(attempt.base, attempt.candidate, attempt.ledger.changed)
    if len(text) <= MOST_SHOWN:
        return text
    return f"{text[:MOST_SHOWN]}\n[{len(text) - MOST_SHOWN} more characters are not shown]\n"


def failed(bench: Bench, name: str, result: agent.AgentResult) -> Told | None:
    """Why an agent could not work, in words, with the next step; None where it could."""
    if result.failure is None:
        return None
    found = bench.services.settings.bindings.get(name)
    argv = found.argv if found is not None else ()
    go_on = f"idumb {failures.command(result.failure)} {bench.contract.phase}"
    return failures.told(result.failure, name, argv, result.message, go_on)


def changed_since(bench: Bench, attempt: Attempt, before: str) -> str:
    """Why a call that met what passes is not made once more; "" where it can have done nothing so far.

    `before` is the tree before the call.
    """
    if attempt.plan.mode == STRICT:
        return "a strict plan never retries"
    bench.checks.end_processes()
    changes = bench.work.changes(before, bench.work.scan(attempt.literal_paths))
    if not changes:
        return ""
    return f"not called again, because files changed since the call began: {listing.listed(c.path for c in changes)}"


def waited(bench: Bench, attempt: Attempt) -> agent.AgentResult:
    """What stands for the builder's answer where only the verdict on its work was waited for: nothing is used again."""
    known = bench.journal.state.tasks[attempt.task.id].conversation
    return agent.AgentResult(
        outcome.COMPLETED,
        "the work was there already, and waited for its verdict",
        session=known.session if known is not None else None,
        usage=agent.Usage(0, 0, 0.0),
    )


def _least(one: float | None, other: float | None) -> float | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _binding_of(bench: Bench, attempt: Attempt, role: str) -> str | None:
    if role == agent.BUILDER:
        return binding_name(bench, attempt)
    return contract.validator_of(attempt.plan, attempt.task, bench.services.settings)


def _binding(bench: Bench, attempt: Attempt, role: str) -> Binding | None:
    return bench.services.settings.bindings.get(_binding_of(bench, attempt, role) or "")


def _limits(bench: Bench, attempt: Attempt, role: str) -> Limits:
    binding = _binding(bench, attempt, role)
    own = binding.limits if binding is not None else None
    return own or bench.services.settings.limits


def _deadline(bench: Bench, attempt: Attempt) -> float | None:
    """The task's own timeout, or the binding's, or what follows from the estimate."""
    task = attempt.task
    filled = roles.filling(bench.services.settings, agent.BUILDER, binding_name(bench, attempt))
    if task.timeout is None and filled.timeout is not None:
        return float(filled.timeout)
    return task.time_limit(attempt.number)
