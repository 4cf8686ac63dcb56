"""What consent to the agent of a role binds, and what changed since."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from itertools import chain, combinations
from typing import Any

from idumb.app.consent import approval_parts
from idumb.app.core.services import Services
from idumb.domain import agent, canonical_json
from idumb.domain.errors import AdapterError, Refusal
from idumb.domain.settings import ResolvedRole

PLACE = "roles"
"""The phase name under which consent to agents is stored, so that it can be revoked like that of a phase."""


def combined_digest(hashes: Iterable[str]) -> str:
    return canonical_json.digest(sorted(hashes))


def digest(services: Services, filled: ResolvedRole) -> str:
    return canonical_json.digest(_bound(services, filled))


def _bound(services: Services, filled: ResolvedRole) -> dict[str, Any]:
    settings = services.settings
    binding = settings.bindings.get(filled.binding or "")
    starts = argv(services, filled)
    files = approval_parts.named_files(services, [starts])
    bound = {
        "filling": filled.as_dict(),
        "binding": dataclasses.asdict(binding) if binding is not None else None,
        "argv": list(starts),
        "environment": list(settings.environment),
        "limits": dataclasses.asdict(settings.limits),
    }
    return bound | ({"files": files} if files else {})


def consent_record(services: Services, filled: ResolvedRole) -> dict[str, Any]:
    """What to record with consent: the program's path and a digest of each other part, to name later changes."""
    bound = _bound(services, filled)
    starts = bound.pop("argv")
    readable = {**bound.pop("filling"), "arguments": starts[1:], **bound.pop("files", {}), **bound}
    parts = {name: canonical_json.digest(value) for name, value in readable.items()}
    return {"role": filled.role, "program": starts[0] if starts else None, "parts": parts}


def changes_since_consent(services: Services, filled: ResolvedRole) -> tuple[str, ...]:
    """Return what changed since the newest consent for this role, in words; () without a change or a consent."""
    records = (record for record in services.consent.all_agreed(PLACE) if record.get("role") == filled.role)
    was, now = next(records, None), consent_record(services, filled)
    if was is None or not isinstance(was.get("parts"), dict):
        return ()
    program = f"its program (was {was.get('program')}, is {now['program']})"
    names = sorted(name for name in {*was["parts"], *now["parts"]} if was["parts"].get(name) != now["parts"].get(name))
    return (*([program] if was.get("program") != now["program"] else []), *names)


def argv(services: Services, filled: ResolvedRole) -> tuple[str, ...]:
    try:
        return tuple(services.adapters.get(filled.binding or "").describe())
    except AdapterError as problem:
        words = f"Binding {filled.binding}: {problem.message}"
        raise Refusal(problem.code, words, hint=problem.hint) from problem


def why_other_hash(services: Services, approve: str, filled: Sequence[ResolvedRole]) -> str:
    """Explain why the hash in `approve` is not that of these roles."""
    hashes = ((each.role, _digest_or_none(services, each)) for each in _fillings(services))
    digests = {role: digest for role, digest in hashes if digest is not None}
    approved = next(
        (group for group in _groups(digests) if combined_digest(digests[role] for role in group) == approve), None
    )
    needed = [each.role for each in filled]
    changed = [
        f"{each.role}: {', '.join(words)}" for each in filled if (words := changes_since_consent(services, each))
    ]
    if approved is None and changed:
        return f"--approve names {approve[:16]}, but these agents changed after you approved them: {'; '.join(changed)}"
    if approved is None:
        return (
            f"--approve names {approve[:16]}, but the {_joined(needed)} changed after idumb showed that hash"
            " (a binding, program, script, model or prompt), or the hash is of something else"
        )
    more = [role for role in needed if role not in approved]
    less = [role for role in approved if role not in needed]
    reasons = [f"this command also calls the {_joined(more)}"] if more else []
    reasons += [f"this command does not call the {_joined(less)}"] if less else []
    return f"--approve names the {_joined(approved)} as configured now, but {', and '.join(reasons)}"


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _groups(names: Iterable[str]) -> Iterable[tuple[str, ...]]:
    all_names = tuple(names)
    return chain.from_iterable(combinations(all_names, size) for size in range(1, len(all_names) + 1))


def _fillings(services: Services) -> list[ResolvedRole]:
    """The filling of every role that has a binding."""
    fillings = (services.settings.role(role) for role in agent.ROLES)
    return [filled for filled in fillings if filled.binding is not None]


def _digest_or_none(services: Services, filled: ResolvedRole) -> str | None:
    try:
        return digest(services, filled)
    except Refusal:  # its program is missing
        return None
