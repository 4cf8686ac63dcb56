"""`idumb doctor`: run every check, even where other commands refuse, and fix what can be fixed without loss.

The checks of configuration and agents are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from msgspec.structs import asdict

from idumb.app.attempt import agent_client
from idumb.app.core.services import Result, Services
from idumb.app.session import operation
from idumb.app.upkeep import doctor_log
from idumb.domain import agent, failures, health, wording
from idumb.domain.agent import Readiness
from idumb.domain.errors import EXIT_FAILED, AdapterError, IdumbError, Refusal, StoreError
from idumb.domain.failures import Breaker, BreakerRule
from idumb.domain.health import Check, CheckResult, Symptom

_FIX = "idumb doctor --fix"
# A fix can reveal the next problem: a restored log names refs that are missing.
_ROUNDS = 4
_SEE_LOG = "see store.opens"
_LOG = "store.opens"
_SHOWN = 20
_CONFIGURATION = ".idumb/config.yaml"


def doctor(services: Services, room_checks: Sequence[Check], *, fix: bool) -> Result:
    """Run every check; with `fix`, fix what they found and check again. `room_checks` are those of other packages."""
    configuration = Check("config.reads", f"{_CONFIGURATION} can be read", partial(_configuration, services))
    checks = [*room_checks, *doctor_log.checks(services), configuration, *_agent_checks(services)]
    results = _look(checks)
    fixed: list[str] = []
    warnings: tuple[str, ...] = ()
    for _ in range(_ROUNDS if fix else 0):
        if not any(_is_fixable(result) for result in results):
            break
        done, warnings = _fix(services, results)
        fixed += done
        results = _look(checks)
        if not done:
            break
    return _result(results, fixed, warnings)


def outside(refusal: Refusal, machine_checks: Sequence[Check]) -> Result:
    """Report why the repository cannot be used, and check the machine."""
    symptom = health.problem(refusal.message, means="nothing can run here", fix=refusal.hint or "")
    place = Check("git.repository", "the repository is usable", lambda: [symptom])
    return _result(_look([place, *machine_checks]), [], ())


def _look(checks: Iterable[Check]) -> list[CheckResult]:
    """Run the checks. Report an unreadable log once; later checks that need it count as not examined."""
    results: list[CheckResult] = []
    log_reported = False
    for check in checks:
        try:
            symptoms = tuple(check.look())
        except StoreError as error:
            symptoms = (
                (_unreadable(error),) if not log_reported else (health.warn(health.NOT_EXAMINED, means=_SEE_LOG),)
            )
            log_reported = True
        except IdumbError as refusal:
            symptoms = (_unreadable(refusal),)
        except (OSError, ValueError, KeyError) as trouble:  # the check itself failed
            words = f"{type(trouble).__name__}: {trouble}"
            symptoms = (health.problem(words, means="this could not be checked"),)
        log_reported = log_reported or (
            check.code == _LOG and health.worst(s.state for s in symptoms) == health.PROBLEM
        )
        results.append(CheckResult(check, symptoms))
    return results


def _unreadable(error: IdumbError) -> Symptom:
    return health.problem(error.message, means="this could not be checked", fix=error.hint or "")


def _is_fixable(seen: CheckResult) -> bool:
    return seen.check.fix is not None and any(symptom.fixes for symptom in seen.symptoms)


def _fix(services: Services, seen: Sequence[CheckResult]) -> tuple[list[str], tuple[str, ...]]:
    """Return what was fixed, one line each, and what could not be. The event log comes first: it records the rest."""
    done: list[str] = []
    failed: list[str] = []
    todo = [result for result in seen if _is_fixable(result)]
    for result in (result for result in todo if result.check.alone):
        _try(result, done, failed)
    rest = [result for result in todo if not result.check.alone]
    if not rest:
        return done, tuple(failed)
    try:
        services.log.head()
    except StoreError as error:  # it cannot record a fix
        return done, (*failed, f"nothing else was fixed: {error.message}")
    with operation.recorded(services, "doctor") as journal:
        for result in rest:
            _try(result, done, failed)
        if done:
            journal.append("doctor.fixed", done=done, failed=failed)
    return done, tuple(failed)


def _try(seen: CheckResult, done: list[str], failed: list[str]) -> None:
    fix: Callable[[Symptom], str] | None = seen.check.fix
    for symptom in (candidate for candidate in seen.symptoms if candidate.fixes and fix is not None):
        try:
            done.append(fix(symptom))  # type: ignore[misc]
        except (IdumbError, OSError) as problem:
            failed.append(f"{seen.check.code}: {symptom.found}: {problem}")


def _result(seen: Sequence[CheckResult], fixed: list[str], warnings: tuple[str, ...]) -> Result:
    count = health.count(seen)
    data: dict[str, Any] = {
        "healthy": not count[health.PROBLEM],
        "checks": [result.as_dict() for result in seen],
        "counts": count,
        "fixed": fixed,
        "next": _next(seen),
    }
    if data["healthy"]:
        return Result(data, warnings=warnings)
    words = f"{count[health.PROBLEM]} of {len(seen)} checks found a problem"
    return Result(data, EXIT_FAILED, warnings, ("doctor.problems", words, data["next"][0] if data["next"] else None))


def _next(seen: Sequence[CheckResult]) -> list[str]:
    """Return the next steps, problems first; everything that `--fix` can do is one step."""
    symptoms = [symptom for result in seen for symptom in result.symptoms if symptom.state != health.OK]
    ordered = sorted(symptoms, key=lambda symptom: symptom.state != health.PROBLEM)
    steps = [_FIX if symptom.fixes else symptom.fix for symptom in ordered]
    return list(dict.fromkeys(step for step in steps if step))[:5]


def _configuration(services: Services) -> Iterator[Symptom]:
    if not services.files.exists(_CONFIGURATION):
        yield health.warn("the file is missing", _CONFIGURATION, means="idumb is not set up here", fix="idumb init")
        return
    try:
        _ = services.settings
    except IdumbError as problem:
        messages = [f"{f.place}: {f.message}" for f in getattr(problem, "findings", ())] or [problem.message]
        for message in messages[:_SHOWN]:
            yield health.problem(message, _CONFIGURATION, means="commands that need it cannot run", fix="Fix this line")


def _agent_checks(services: Services) -> tuple[Check, ...]:
    """Return the checks of agents; none if the configuration cannot be read."""
    try:
        rule = agent_client.rule(services.settings)
    except (IdumbError, OSError):  # `config.reads` reports it
        return ()
    look, close = partial(_breakers, services, rule), partial(_close, services)
    # `_close` acquires ownership itself, so that a check without a fix records nothing.
    return (
        Check("agents.bindings", "every agent can work", partial(_bindings, services)),
        Check("agents.breakers", "every agent can be called", look, close, alone=True),
    )


def _bindings(services: Services) -> Iterator[Symptom]:
    """Yield a line for each binding."""
    settings = services.settings
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
            fix = failures.how_to_log_in(binding.adapter)
            yield health.problem(f"{about}, not logged in: {ready.how}", means="it cannot work here", fix=fix)
        else:
            login = f"logged in {ready.how}" if ready.logged_in else "nobody can ask about its login"
            able, roles = agent.capabilities(who), [r for r in agent.ROLES if settings.role(r).binding == name]
            facts = [f"is the {wording.listed(roles)}" if roles else "has no role"]
            facts += ["reports its state"] if able.reports_progress else []
            facts += ["works in a sandbox"] if able.sandboxed else []
            yield health.passed(f"{about}, {login}; {wording.listed(facts)}")


def _breakers(services: Services, rule: BreakerRule) -> Iterator[Symptom]:
    """Yield a warning for each open breaker, and one line for the others."""
    now, allowed = services.clock.now(), []
    for key, breaker_state in agent_client.breakers(services).items():
        wait = failures.before_call(breaker_state, now, rule)[1]
        if wait:
            yield _holding(key, breaker_state, datetime.fromisoformat(now) + timedelta(seconds=wait))
        elif breaker_state != Breaker():
            allowed.append(f"{_words(key, breaker_state)}; calls are allowed")
    yield health.passed("; ".join(allowed) if allowed else "no circuit breaker is open")


def _close(services: Services, symptom: Symptom) -> str:
    """Close a breaker. Refuses while another process owns the working tree."""
    with operation.recorded(services, "doctor") as journal:
        journal.append("breaker.changed", key=symptom.subject, **asdict(Breaker()))
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
