"""The checks of `idumb doctor` on agents: whether each can work, and which are not called, and until when."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

from idumb.app.attempt import agent_client
from idumb.app.core.services import Services
from idumb.app.session import operation
from idumb.domain import agent, failures, health, wording
from idumb.domain.agent import Readiness
from idumb.domain.errors import AdapterError, InputError
from idumb.domain.failures import Breaker, BreakerRule
from idumb.domain.health import Check, Symptom


def checks(services: Services) -> tuple[Check, ...]:
    look, close = partial(_breakers, services), partial(_close, services)
    # `_close` acquires ownership itself, so that a check without a fix records nothing.
    return (
        Check("agents.bindings", "every agent can work", partial(_bindings, services)),
        Check("agents.breakers", "every agent can be called", look, close, alone=True),
    )


def _bindings(services: Services) -> Iterator[Symptom]:
    """Yield a line for each binding; `config.reads` reports a wrong configuration."""
    try:
        settings = services.settings
    except InputError:
        return
    for name, binding in settings.bindings.items():
        means = f"{name} cannot build or judge anything here"
        try:
            who = services.adapters.get(name)
            ready: Readiness = getattr(who, "ready", Readiness)()
        except AdapterError as problem:
            yield health.problem(f"{name}: {problem.message}", means=means, fix=problem.hint or "")
            continue
        about = f"{name}: {' '.join(filter(None, (binding.adapter, ready.version)))}"
        if ready.logged_in is False:
            fix = failures.login(binding.adapter)
            yield health.problem(f"{about}, not logged in: {ready.how}", means="it cannot work here", fix=fix)
        else:
            login = f"logged in {ready.how}" if ready.logged_in else "nobody can ask about its login"
            able, roles = agent.capabilities(who), [r for r in agent.ROLES if settings.role(r).binding == name]
            facts = [f"is the {wording.listed(roles)}" if roles else "has no role"]
            facts += ["reports its state"] if able.reports_progress else []
            facts += ["works in a sandbox"] if able.sandboxed else []
            yield health.passed(f"{about}, {login}; {wording.listed(facts)}")


def _breakers(services: Services) -> Iterator[Symptom]:
    """Yield a warning for each open breaker, and one line for the others."""
    rule, now = _rule(services), services.clock.now()
    allowed = []
    for key, breaker_state in agent_client.breakers(services).items():
        wait = failures.before_call(breaker_state, now, rule)[1]
        if wait:
            yield _holding(key, breaker_state, datetime.fromisoformat(now) + timedelta(seconds=wait))
        elif breaker_state != Breaker():
            allowed.append(f"{_words(key, breaker_state)}; calls are allowed")
    yield health.passed("; ".join(allowed) if allowed else "no circuit breaker is open")


def _close(services: Services, symptom: Symptom) -> str:
    """Close a breaker. Refuses while another process owns the working tree."""
    with operation.owned(services, "doctor") as owned:
        journal = owned.record()
        journal.write(journal.event("breaker.changed", key=symptom.subject, **dataclasses.asdict(Breaker())))
    return f"the circuit breaker of {symptom.subject} is closed; the next call is allowed"


def _holding(key: str, breaker_state: Breaker, until: datetime) -> Symptom:
    when = f"{until:%Y-%m-%d %H:%M:%S} UTC"
    return health.warn(
        _words(key, breaker_state),
        means=f"no calls before {when}; then one call decides whether the breaker closes",
        fixes=True,
        subject=key,
    )


def _words(key: str, breaker_state: Breaker) -> str:
    """Describe a breaker; `key` is adapter, binding and model."""
    since = f" since {breaker_state.since}" if breaker_state.since else ""
    count = breaker_state.failures
    calls = f"{count} call{'s' * (count != 1)} in a row failed, the last by {breaker_state.failure}"
    return f"{key}: {breaker_state.state}{since}, {calls}"


def _rule(services: Services) -> BreakerRule:
    """Return the breaker settings, or the defaults if the configuration cannot be read; `config.reads` reports that."""
    try:
        return agent_client.rule(services.settings)
    except InputError:
        return BreakerRule()
