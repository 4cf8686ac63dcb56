"""Consent to the agents of roles: what it covers, the question, its record, and what changed since."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, combinations
from typing import Any

from idumb.app.consent import agent_programs, approval_parts, pending_consent
from idumb.app.consent.pending_consent import PendingQuestion
from idumb.app.core import next_actions
from idumb.app.core.services import Services
from idumb.domain import agent, canonical_json
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import AdapterError, Refusal
from idumb.domain.settings import ResolvedRole
from idumb.lazy_dataclass import dataclass

PLACE = "roles"
"""The phase name under which consent to agents is stored, so that it can be revoked like that of a phase."""


def filling_of(services: Services, role: str) -> ResolvedRole:
    filled = services.settings.role(role)
    if filled.binding is None:
        raise Refusal(
            "role.unbound",
            f"No agent is bound to the role {role}.",
            hint=f"Add `roles: {{{role}: {{binding: NAME}}}}` to .idumb/config.yaml; NAME is one of its bindings",
            details={"role": role},
        )
    return filled


@dataclass(frozen=True, slots=True)
class RoleConsent:
    """The consent that some roles need: `whole` is the hash for `--approve`, `missing` the part that is not given yet.

    The hash covers bindings, programs, scripts, models and templates.
    `missing` maps the hash of each role to what is recorded for it. It is computed before the question, so that an
    answer covers what was shown, whatever changes in between.
    """

    filled: tuple[ResolvedRole, ...]
    whole: str
    missing: Mapping[str, Mapping[str, Any]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.role for each in self.filled)


def required(services: Services, role_names: Iterable[str]) -> RoleConsent:
    """Return the consent that these roles need; Refusal if a role has no binding or its program cannot start."""
    filled = tuple(filling_of(services, role) for role in dict.fromkeys(role_names))
    digests = {each: _digest(services, each) for each in filled}
    missing = {
        digest: _consent_record(services, each)
        for each, digest in digests.items()
        if not services.consent.has_consent(digest)
    }
    return RoleConsent(filled, _combined_digest(digests.values()), missing)


def record(services: Services, needed: RoleConsent, how: str) -> None:
    """Record the consent that was missing."""
    for digest, agreed in needed.missing.items():
        services.consent.record(digest, phase=PLACE, how=how, at=services.clock.now(), agreed=agreed)


def ensure(services: Services, role_names: Iterable[str], *, approve: Collection[str], command: str) -> None:
    """Require consent to these roles: earlier, by `--approve`, or at the terminal now; Refusal otherwise.

    `command` continues once consent is given. Without a terminal, the question is kept for `idumb decisions`.
    """
    needed = required(services, role_names)
    stranger = next((digest for digest in approve if digest != needed.whole), None)
    if stranger is not None:
        other = _why_other_hash(services, stranger, needed.filled)
        raise _refusal(question(services, needed, command), needed.whole, command, other=other)
    if needed.missing and not approve:
        ask_now(services, needed, command)
    elif needed.missing:
        record(services, needed, "--approve")


def ask_now(services: Services, needed: RoleConsent, command: str) -> None:
    """Ask at the terminal; Refusal on a no, `Waiting` without a terminal or an answer in time."""
    decision = question(services, needed, command)
    if decision.agreed(services.asker.ask(decision)):
        record(services, needed, "terminal")
        return
    refusal = _refusal(decision, needed.whole, command)
    if not services.asker.interactive:
        refusal = pending_consent.keep(services, refusal, PendingQuestion(decision.id, command, roles=needed.names))
    raise refusal


def require(services: Services, filled: list[ResolvedRole]) -> None:
    """Refuse to call agents without consent, in case a use case did not ask with `ensure`."""
    digests = [_digest(services, each) for each in filled]
    if all(services.consent.has_consent(digest) for digest in digests):
        return
    whole = _combined_digest(digests)
    needed = RoleConsent(tuple(filled), whole, {})
    raise _refusal(question(services, needed, "idumb COMMAND"), whole, "the same command with")


def question(services: Services, needed: RoleConsent, command: str) -> Decision:
    whole = needed.whole
    means = f"consent is recorded for these agents ({whole[:16]})"
    return Decision.confirmation(
        f"{pending_consent.MARK}{whole}",
        "consent",
        f"Ask the {', '.join(needed.names)}",
        "The configuration names programs to run on this machine. idumb runs them only with your consent to"
        " exactly these.",
        lines(services, needed),
        Choice(pending_consent.YES, "run them", means, f"{command} --approve {whole}"),
        "do not run them",
        "nothing happens",
    )


def lines(services: Services, needed: RoleConsent) -> tuple[str, ...]:
    """Return one line for each role: what it starts."""
    return tuple(_line(services, each) for each in needed.filled)


def _line(services: Services, filled: ResolvedRole) -> str:
    name = filled.binding or ""
    argv = _argv(services, filled)
    words = agent_programs.describe_binding(services, name, argv, models={filled.role: filled.model})
    template = f"; prompt .idumb/prompts/{filled.prompt}.md" if filled.template is not None else ""
    files = "".join(
        f"; uses {path}, sha256 {sha[:16]}" for path, sha in approval_parts.named_files(services, [argv]).items()
    )
    changes = _changes_since_consent(services, filled)
    since = f"; changed since you agreed: {', '.join(changes)}" if changes else ""
    return f"{filled.role}: {name}: {words}{template}{files}{since}"


def _refusal(question: Decision, whole: str, command: str, *, other: str | None = None) -> Refusal:
    """Return the refusal for missing consent; `other` says why the given consent does not apply."""
    missing = f"These agents need your consent before they can run ({whole[:16]}): {question.what.removeprefix('Ask ')}"
    return Refusal(
        "consent.missing" if other is None else "consent.other-agents",
        f"{other or missing}.",
        hint=f"{command} --approve {whole}",
        details=next_actions.details(
            question, consent_hash=whole, decision=question.id, **({} if other is None else {"expected": whole})
        ),
    )


def _combined_digest(hashes: Iterable[str]) -> str:
    return canonical_json.digest(sorted(hashes))


def _digest(services: Services, filled: ResolvedRole) -> str:
    return canonical_json.digest(_bound(services, filled))


def _bound(services: Services, filled: ResolvedRole) -> dict[str, Any]:
    settings = services.settings
    binding = settings.bindings.get(filled.binding or "")
    starts = _argv(services, filled)
    files = approval_parts.named_files(services, [starts])
    bound = {
        "filling": filled.as_dict(),
        "binding": dataclasses.asdict(binding) if binding is not None else None,
        "argv": list(starts),
        "environment": list(settings.environment),
        "limits": dataclasses.asdict(settings.limits),
    }
    return bound | ({"files": files} if files else {})


def _consent_record(services: Services, filled: ResolvedRole) -> dict[str, Any]:
    """What to record with consent: the program's path and a digest of each other part, to name later changes."""
    bound = _bound(services, filled)
    starts = bound.pop("argv")
    readable = {**bound.pop("filling"), "arguments": starts[1:], **bound.pop("files", {}), **bound}
    parts = {name: canonical_json.digest(value) for name, value in readable.items()}
    return {"role": filled.role, "program": starts[0] if starts else None, "parts": parts}


def _changes_since_consent(services: Services, filled: ResolvedRole) -> tuple[str, ...]:
    """Return what changed since the newest consent for this role, in words; () without a change or a consent."""
    records = (record for record in services.consent.all_agreed(PLACE) if record.get("role") == filled.role)
    was, now = next(records, None), _consent_record(services, filled)
    if was is None or not isinstance(was.get("parts"), dict):
        return ()
    program = f"its program (was {was.get('program')}, is {now['program']})"
    names = sorted(name for name in {*was["parts"], *now["parts"]} if was["parts"].get(name) != now["parts"].get(name))
    return (*([program] if was.get("program") != now["program"] else []), *names)


def _argv(services: Services, filled: ResolvedRole) -> tuple[str, ...]:
    try:
        return tuple(services.adapters.get(filled.binding or "").describe())
    except AdapterError as problem:
        words = f"Binding {filled.binding}: {problem.message}"
        raise Refusal(problem.code, words, hint=problem.hint) from problem


def _why_other_hash(services: Services, approve: str, filled: Sequence[ResolvedRole]) -> str:
    """Explain why the hash in `approve` is not that of these roles."""
    hashes = ((each.role, _digest_or_none(services, each)) for each in _fillings(services))
    digests = {role: digest for role, digest in hashes if digest is not None}
    approved = next(
        (group for group in _groups(digests) if _combined_digest(digests[role] for role in group) == approve), None
    )
    needed = [each.role for each in filled]
    changed = [
        f"{each.role}: {', '.join(words)}" for each in filled if (words := _changes_since_consent(services, each))
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
        return _digest(services, filled)
    except Refusal:  # its program is missing
        return None
