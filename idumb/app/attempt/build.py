"""Asks the builder for the work: the request with its prompt and limits, the call, and why an agent could not work."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from idumb.app.attempt import agent_client, steps, task_checks
from idumb.app.contract import plan_checks
from idumb.app.core import questions
from idumb.app.core.attempt import BUILT, MEASURED, Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.app.ports import PromptRequest
from idumb.app.worktree import tool_leftovers
from idumb.domain import agent, failures, outcome, wording
from idumb.domain.action import WORK
from idumb.domain.agent import Capabilities, capabilities
from idumb.domain.failures import FailureMessage
from idumb.domain.plans import workflow
from idumb.domain.plans.plan import REVERSIBLE
from idumb.domain.proof import gate_table
from idumb.domain.proof.evidence import Evidence
from idumb.domain.runs.run import RunState
from idumb.domain.settings import ResolvedRole

_DONE_BEFORE = agent.AgentResult(
    outcome.COMPLETED, "the work was done already; only its verdict was pending", usage=agent.Usage(0, 0, 0.0)
)


def build(context: RunContext, attempt: Attempt) -> Attempt:
    """Ask the builder to do the work. Its answer is a claim; idumb judges the files."""
    if attempt.outcome is not None:
        return attempt.at(BUILT)
    if attempt.awaits_verdict:
        return attempt.at(BUILT, result=_DONE_BEFORE)
    if task_checks.controls_decide(context):
        attempt = task_checks.run_controls(context, attempt)
    return attempt.at(BUILT) if attempt.outcome is not None else _asked(context, attempt)


def _asked(context: RunContext, attempt: Attempt) -> Attempt:
    name = attempt.builder
    builder = context.agents.get(name)
    able = capabilities(builder)
    request = make_request(context, attempt, agent.BUILDER, able)
    if able.asks_person:
        request = _with_question(context, attempt, request)
    decisions = () if request.question is None else (request.question,)
    call = agent_client.Call(builder, name, request, _why_not_retry(context, attempt))
    with task_checks.controls_beside(context, attempt) as controls:
        result = agent_client.ask(context.services, context.journal, call)
    answers = () if result.answer is None else (result.answer,)
    evidence = attempt.evidence
    if answers and attempt.task.is_human:  # "It is done" proves nothing about a task with criteria of its own
        evidence = (*evidence, *questions.evidence_of_answers(decisions, answers, attempt.base))
    built = attempt.at(
        BUILT,
        result=result,
        failure=agent_failure(context, name, result),
        questions=decisions,
        answers=answers,
        evidence=evidence,
        controls=controls,
    )
    if built.failure is not None:
        ended = outcome.FAILED if result.outcome == outcome.COMPLETED else result.outcome
        return built.ended(ended, built.failure.message)
    if result.outcome == outcome.COMPLETED:
        return built
    return built.ended(result.outcome, result.message or f"the builder ended with {result.outcome}")


def _with_question(context: RunContext, attempt: Attempt, request: agent.AgentRequest) -> agent.AgentRequest:
    """Return the request with the question to a person, and the answer if there is one already."""
    question = questions.work(attempt.task, attempt.number, attempt.feedback)
    answer = context.journal.answer(question.id)
    if answer is None:
        question = questions.with_time_limit(question, attempt.task, context.services.clock.now())
    return replace(request, question=question, answer=answer)


def _why_not_retry(context: RunContext, attempt: Attempt) -> Callable[[], str]:
    """Return a function that says why a builder must not be called again: effects outside the files show in no tree."""
    kind = attempt.task.rollback.kind
    if kind != REVERSIBLE:
        return lambda: f"not called again, because the task is {kind}"
    return functools.partial(changed_since, context, attempt, attempt.announced["present"])


def changed_since(context: RunContext, attempt: Attempt, before: str) -> str:
    """Return why a call must not be repeated after a transient failure; "" if it changed nothing.

    `before` is the tree before the call.
    """
    context.checks.end_processes()
    present = context.work.scan(attempt.literal_paths)
    changes, _ = tool_leftovers.split(context, attempt, context.work.changes(before, present), present)
    if not changes:
        return ""
    return f"not called again, because files changed since the call began: {wording.listed(c.path for c in changes)}"


def agent_failure(context: RunContext, name: str, result: agent.AgentResult) -> FailureMessage | None:
    """Return why an agent could not work, with the next step; None if it could."""
    if result.failure is None:
        return None
    program = context.services.settings.program_of(name)
    retry = f"idumb {failures.kind(result.failure).again} {context.contract.phase}"
    return failures.failure_message(result.failure, name, program, result.message, retry)


def make_request(
    context: RunContext, attempt: Attempt, role: str, able: Capabilities, evidence: tuple[Evidence, ...] = ()
) -> agent.AgentRequest:
    """Return the request to the builder or validator of an attempt."""
    services, settings, task = context.services, context.services.settings, attempt.task
    builds = role == agent.BUILDER
    name = attempt.builder if builds else attempt.validator
    filled = settings.role(role, name)
    binding = settings.bindings.get(name or "")
    protected = context.protected(attempt.plan)
    values, described, schema = _of_step(context, attempt) if builds else ({}, "", None)
    prompt_request = PromptRequest(
        role,
        task,
        attempt.plan,
        protected,
        attempt.feedback,
        attempt.number,
        evidence,
        handover=attempt.handover,
        decided=decisions_made(context.state),
        diff=_change(context, attempt) if attempt.reached(MEASURED) else "",
        values=described,
    )
    room = attempt.allowance
    limit = _deadline(attempt, filled) if builds else gate_table.rule(settings, role).timeout
    return agent.AgentRequest(
        role=role,
        task=task,
        prompt=prompt_of(services, filled, prompt_request) if able.reads_prompt else "",
        workspace=context.work.root,
        allowed_paths=attempt.written,
        attempt=attempt.number,
        deadline=min((seconds for seconds in (limit, room.seconds) if seconds is not None), default=None),
        budget=agent.Budget(room.tokens, room.cost_usd),
        feedback=attempt.feedback,
        protected=protected,
        run_id=context.run,
        idle_timeout=settings.idle_timeout(name, able.idle_timeout),
        limits=((binding.limits if binding is not None else None) or settings.limits).chosen(),
        model=filled.model,
        settled=context.state.tasks[task.id].progress.settled,
        candidate=attempt.candidate,
        ignored=context.work.ignored() if able.calls_model else (),
        repository=services.root,
        values={**context.workspace.variables, **values} if builds else values,
        schema=schema,
    )


def prompt_of(services: Services, filled: ResolvedRole, request: PromptRequest) -> str:
    """Return the prompt of a role, with its template and the requirements that the task serves."""
    served = plan_checks.served(services, request.plan, request.task.requirements)
    whole = replace(request, template=filled.template, name=filled.prompt, requirements=served)
    return services.documents.prompt(whole)


def _of_step(context: RunContext, attempt: Attempt) -> tuple[dict[str, str], str, dict[str, Any] | None]:
    """Return variables of a workflow's step, these in words, and the JSON Schema of its answer; nothing for others."""
    flow = attempt.task.flow
    if flow is None:
        return {}, "", None
    schema = workflow.schema(asked) if (asked := steps.answered(flow)) else None
    return steps.variables(context, flow), steps.described(context, flow), schema


def _deadline(attempt: Attempt, filled: ResolvedRole) -> float | None:
    """Return the task's own timeout, or the binding's, or what follows from the estimate."""
    if attempt.task.timeout is None and filled.timeout is not None:
        return float(filled.timeout)
    return attempt.task.time_limit(attempt.number)


MOST_SHOWN = 200_000
"""Characters of a change that a validator is shown; it can read the rest in the files."""


def _change(context: RunContext, attempt: Attempt) -> str:
    """Return what the attempt changed since the task base, as the validator sees it."""
    if not attempt.ledger.changed:
        return ""
    text = context.work.diff(attempt.base, attempt.candidate, attempt.ledger.changed)
    return wording.truncate(text, MOST_SHOWN)


def decisions_made(state: RunState) -> tuple[str, ...]:
    """Return what people answered to tasks that only they can do, in words for every later builder."""
    lines = []
    for id, answer in state.answers.items():
        question = state.decisions[id]
        guidance = str(answer.get("guidance") or "")
        if question["kind"] == WORK and (guidance or question["subject"] == questions.DECIDES):
            chosen = questions.chosen(state, id)
            words = f"{question['what']}: {chosen.id}" + f" ({chosen.text})" * (chosen.text != chosen.id)
            lines.append(" ".join(f"{words}{f'. {guidance}' if guidance else ''}".split()))
    return tuple(lines)
