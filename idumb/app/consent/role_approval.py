"""What consent to the agent of a role is bound to, and why a hash that was named is not that of what would be asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from itertools import chain, combinations
from typing import Any

from idumb.app.consent import approvals
from idumb.app.core.services import Services
from idumb.domain import agent, canonical_json, roles
from idumb.domain.errors import AdapterError, Refusal
from idumb.domain.roles import Filling

PLACE = "roles"
"""Where consent to agents is kept among the phases, so that it can be taken back like theirs."""


def joined(hashes: Iterable[str]) -> str:
    return canonical_json.digest(sorted(hashes))


def digest(services: Services, filled: Filling) -> str:
    return canonical_json.digest(_bound(services, filled))


def _bound(services: Services, filled: Filling) -> dict[str, Any]:
    settings = services.settings
    found = settings.bindings.get(filled.binding or "")
    starts = argv(services, filled)
    files = approvals.named_files(services, [starts])
    bound = {
        "filling": roles.readable(filled),
        "binding": dataclasses.asdict(found) if found is not None else None,
        "argv": list(starts),
        "environment": list(settings.environment),
        "limits": dataclasses.asdict(settings.limits),
    }
    return bound | ({"files": files} if files else {})


def agreed(services: Services, filled: Filling) -> dict[str, Any]:
    """What to record with consent, so that a change can be named: the program's path, and digests of all else."""
    bound = _bound(services, filled)
    starts = bound.pop("argv")
    readable = {**bound.pop("filling"), "arguments": starts[1:], **bound.pop("files", {}), **bound}
    parts = {name: canonical_json.digest(value) for name, value in readable.items()}
    return {"role": filled.role, "program": starts[0] if starts else None, "parts": parts}


def changes(services: Services, filled: Filling) -> tuple[str, ...]:
    """What differs from the newest word for this role, in words; () where there is none, or nothing does."""
    known = (one for one in services.consent.all_agreed(PLACE) if one.get("role") == filled.role)
    was, now = next(known, None), agreed(services, filled)
    if was is None or not isinstance(was.get("parts"), dict):
        return ()
    program = f"its program, {was.get('program')} then and {now['program']} now"
    names = sorted(name for name in {*was["parts"], *now["parts"]} if was["parts"].get(name) != now["parts"].get(name))
    return (*([program] if was.get("program") != now["program"] else []), *names)


def argv(services: Services, filled: Filling) -> tuple[str, ...]:
    try:
        return tuple(services.adapters.get(filled.binding or "").describe())
    except AdapterError as problem:
        words = f"The binding {filled.binding}: {problem.message}"
        raise Refusal(problem.code, words, hint=problem.hint) from problem


def other(services: Services, approve: str, filled: Sequence[Filling]) -> str:
    """Why a hash that was given is not that of the roles that would be asked."""
    hashes = ((each.role, _digest_or_none(services, each)) for each in _fillings(services))
    known = {role: found for role, found in hashes if found is not None}
    given = next((named for named in _groups(known) if joined(known[role] for role in named) == approve), None)
    asked = [each.role for each in filled]
    since = [f"{each.role}: {', '.join(found)}" for each in filled if (found := changes(services, each))]
    if given is None and since:
        return (
            f"--approve names {approve[:16]}, and since these agents were agreed to, this changed: {'; '.join(since)}"
        )
    if given is None:
        return (
            f"--approve names {approve[:16]}: what the {_and(asked)} would start changed since that was shown"
            " (a binding, program, script, model or prompt), or it was shown for something else"
        )
    more = [role for role in asked if role not in given]
    less = [role for role in given if role not in asked]
    words = [f"the {_and(more)} would be asked now as well"] if more else []
    words += [f"the {_and(less)} would not be asked now"] if less else []
    return f"--approve names the {_and(given)}, as configured now, but {', and '.join(words)}"


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _groups(names: Iterable[str]) -> Iterable[tuple[str, ...]]:
    known = tuple(names)
    return chain.from_iterable(combinations(known, size) for size in range(1, len(known) + 1))


def _fillings(services: Services) -> list[Filling]:
    """Of every role that a binding fills."""
    known = (roles.filling(services.settings, role) for role in agent.ROLES)
    return [filled for filled in known if filled.binding is not None]


def _digest_or_none(services: Services, filled: Filling) -> str | None:
    try:
        return digest(services, filled)
    except Refusal:  # its program is not there
        return None
