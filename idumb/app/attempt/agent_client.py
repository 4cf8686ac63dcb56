"""Calls an agent. Refuses while its circuit breaker is open; retries transient failures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeGuard

from msgspec import Struct
from msgspec.structs import asdict, replace

from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.app.ports import Agent, DeferredAgent, ReportingAgent
from idumb.domain import failures, outcome
from idumb.domain.agent import STATES, AgentRequest, AgentResult, Claim, capabilities
from idumb.domain.errors import IdumbError
from idumb.domain.failures import Breaker, BreakerRule
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs import spending
from idumb.domain.settings import Settings

CALLS = 3
PAUSE = 5
GROWS = 3
LONGEST_NAME = 200
"""Characters of a model, a session or a tool, as an agent names it."""
LONGEST_INTENT = 2000
LONGEST_MESSAGE = 200
"""Characters of what an agent says while it works."""
MOST_TOLD = 50
"""Claims of one attempt that are recorded."""


class Call(Struct, frozen=True):
    """A request to an agent.

    `why_not_again` says why it must not be retried, "" if it may. It is called after a transient failure, so that it
    can see what the call left. `anew`: an earlier answer to the same question does not count.
    """

    agent: Agent
    binding: str
    request: AgentRequest
    why_not_again: Callable[[], str] = str
    anew: bool = False

    @property
    def key(self) -> str:
        """What shares one breaker: the adapter of this binding, and the model."""
        return f"{self.agent.name} {self.binding} {self.request.model or ''}".rstrip()


def ask(services: Services, journal: Journal, call: Call) -> AgentResult:
    """Call the agent, and retry transient failures. The log records every retry. A strict run never retries."""
    if not capabilities(call.agent).calls_model:
        services.owner.guard()
        with services.interrupts.armed():
            return _recordable(services, call.agent.run(call.request))
    if _is_elsewhere(call.agent):
        call = replace(call, request=_ticketed(services, journal, call, call.agent))
    started = services.clock.monotonic()
    retry = services.settings.retry
    calls = 1 if journal.state.mode == STRICT else retry.get("calls", CALLS)
    pause = retry.get("pause", PAUSE)
    usage = None
    for number in range(1, calls + 1):
        result = _once(services, journal, call, started)
        usage = result.usage if usage is None else spending.add_usage(usage, result.usage)
        result = replace(result, usage=usage)
        left = _seconds_left(services, call, started)
        if number == calls or (left is not None and left <= pause) or not failures.kind(result.failure).retried:
            return result
        if why := call.why_not_again():
            return replace(result, message="; ".join(filter(None, (result.message, why))))
        record_retry(journal, call.binding, call.request, result, number, pause)
        with services.interrupts.armed():
            services.clock.pause(pause)
        pause *= GROWS
    raise AssertionError  # there is at least one call


def record_retry(
    journal: Journal, binding: str, request: AgentRequest, result: AgentResult, call: int, pause: int
) -> None:
    """Record that a call is made again after a pause: its number, and the result that is the reason."""
    why = {"model": request.model, "failure": result.failure, "message": result.message, "call": call, "pause": pause}
    task = request.task.id if request.task is not None else None
    journal.append("call.retried", task, request.attempt, role=request.role, binding=binding, **why)


def _once(services: Services, journal: Journal, call: Call, started: float) -> AgentResult:
    """Make one call, unless the breaker is open."""
    limits = rule(services.settings)
    changes = services.log.events(kind="breaker.changed", newest_first=True)
    last = next((Breaker.recorded(e.payload) for e in changes if e.payload["key"] == call.key), Breaker())
    current, wait = failures.before_call(last, services.clock.now(), limits)
    if wait:
        return _not_asked(services, last, wait)
    _keep(journal, call, last, current)
    request = replace(call.request, deadline=_seconds_left(services, call, started))
    result = _recordable(services, _answer(services, journal, replace(call, request=request)))
    _keep(journal, call, current, failures.after_call(current, result.failure, services.clock.now(), limits))
    return result


def _answer(services: Services, journal: Journal, call: Call) -> AgentResult:
    """Return the agent's answer. What it reports about a task while it works is recorded."""
    services.owner.guard()  # since the last look, the checks on the tree before the work may have begun
    with services.interrupts.armed():
        if not _reports(call.agent) or call.request.task is None:
            return call.agent.run(call.request)
        return call.agent.run(call.request, functools.partial(_hear, services, journal, call.request))


def _is_elsewhere(agent: Agent) -> TypeGuard[DeferredAgent]:
    return hasattr(agent, "ticket")


def _ticketed(services: Services, journal: Journal, call: Call, agent: DeferredAgent) -> AgentRequest:
    """Return the request with the ticket of its question, which is recorded before anything outside can read it."""
    request, question = call.request, agent.question(call.request)
    if not call.anew:
        for event in services.log.events(kind="handoff.asked", newest_first=True):
            if event.payload["question"] == question:
                return replace(request, ticket=event.payload["ticket"])
    ticket = agent.ticket()
    task = request.task.id if request.task is not None else None
    payload = {"role": request.role, "binding": call.binding, "question": question, "ticket": ticket}
    journal.append("handoff.asked", task, request.attempt, **payload)
    return replace(request, ticket=ticket)


def _reports(agent: Agent) -> TypeGuard[ReportingAgent]:
    return capabilities(agent).reports_progress


def _hear(services: Services, journal: Journal, request: AgentRequest, claim: Claim) -> None:
    """Record what an agent reports about itself.

    The report has no effect: it does not even mean that the work is done.
    """
    subject = request.subject
    before = journal.state.tasks[subject].attempt.agent_status
    number = 1 if before is None else before.number + 1
    if claim.state not in STATES or number > MOST_TOLD:
        return
    message = services.redactor.redact_output(" ".join(claim.message.split()))[:LONGEST_MESSAGE]
    told = {"role": request.role, "state": claim.state, "message": message, "number": number}
    try:
        journal.append("attempt.told", subject, request.attempt, **told)
    except IdumbError:
        return  # the work continues; the next stage refuses if something is wrong with the log or its owner


def _recordable(services: Services, result: AgentResult) -> AgentResult:
    """Return the answer with its small fields redacted and shortened, for the log and the screen.

    Adapters redact and shorten the long ones, `output` and `reply`.
    """
    shown, usage = services.redactor.redact_output, spending.plausible(result.usage)
    session, model = (None if name is None else shown(name)[:LONGEST_NAME] for name in (result.session, result.model))
    steps = (
        replace(step, tool=shown(step.tool)[:LONGEST_NAME], intent=shown(step.intent)[:LONGEST_INTENT])
        for step in result.steps
    )
    return replace(
        result,
        message=shown(result.message),
        claimed_files=tuple(map(shown, result.claimed_files)),
        usage=usage,
        session=session,
        model=model,
        steps=tuple(steps),
    )


def breakers(services: Services) -> dict[str, Breaker]:
    """Return every breaker in the log by its key: adapter, binding, model."""
    return {e.payload["key"]: Breaker.recorded(e.payload) for e in services.log.events(kind="breaker.changed")}


def _keep(journal: Journal, call: Call, last: Breaker, now: Breaker) -> None:
    if now != last:
        journal.append("breaker.changed", key=call.key, **asdict(now))


def _not_asked(services: Services, last: Breaker, wait: float) -> AgentResult:
    until = datetime.fromisoformat(services.clock.now()) + timedelta(seconds=wait)
    words = f"not asked before {until:%H:%M:%S} UTC, because {last.failures} calls failed, the last by {last.failure}"
    return AgentResult(outcome.ERRORED, words, failure=last.failure)


def _seconds_left(services: Services, call: Call, started: float) -> float | None:
    """Return the seconds that remain for all calls together; None is no limit."""
    if call.request.deadline is None:
        return None
    return max(0.001, call.request.deadline - (services.clock.monotonic() - started))


def rule(settings: Settings) -> BreakerRule:
    """Return when a breaker opens, and for how long."""
    usual = BreakerRule()
    return BreakerRule(settings.breaker.get("failures", usual.failures), settings.breaker.get("time", usual.seconds))
