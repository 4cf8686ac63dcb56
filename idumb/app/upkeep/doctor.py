"""`idumb doctor`: run every check, even where other commands refuse, and fix what can be fixed without loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.session import operation
from idumb.app.upkeep import doctor_agents, doctor_files, doctor_log
from idumb.domain import health
from idumb.domain.errors import EXIT_FAILED, IdumbError, Refusal, StoreError
from idumb.domain.health import Check, CheckResult, Symptom

FIX = "idumb doctor --fix"
# A fix can reveal the next problem: a restored log names refs that are missing.
_ROUNDS = 4
_SEE_LOG = "see store.opens"
_LOG = "store.opens"


def doctor(services: Services, room_checks: Sequence[Check], *, fix: bool) -> Result:
    """Run every check; with `fix`, fix what they found and check again. `room_checks` are those of other packages."""
    checks = [*room_checks, *doctor_log.checks(services)]
    checks += (*doctor_files.checks(services), *doctor_agents.checks(services))
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
    with operation.owned(services, "doctor") as owned:
        journal = owned.record()
        for result in rest:
            _try(result, done, failed)
        if done:
            journal.write(journal.event("doctor.fixed", done=done, failed=failed))
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
    steps = [FIX if symptom.fixes else symptom.fix for symptom in ordered]
    return list(dict.fromkeys(step for step in steps if step))[:5]
