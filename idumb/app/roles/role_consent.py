"""Consent to the agents of roles: what it covers, the question, and its record."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from idumb.app.consent import agent_programs, approval_parts, pending_consent, role_approval
from idumb.app.consent.pending_consent import PendingQuestion
from idumb.app.core import next_actions
from idumb.app.core.services import Services
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import Refusal
from idumb.domain.settings import ResolvedRole

PLACE = role_approval.PLACE


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
    digests = {each: role_approval.digest(services, each) for each in filled}
    missing = {
        digest: role_approval.consent_record(services, each)
        for each, digest in digests.items()
        if not services.consent.has_consent(digest)
    }
    return RoleConsent(filled, role_approval.combined_digest(digests.values()), missing)


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
        other = role_approval.why_other_hash(services, stranger, needed.filled)
        raise _refusal(question(services, needed, command), needed.whole, command, other=other)
    if needed.missing and not approve:
        ask_now(services, needed, command)
    elif needed.missing:
        record(services, needed, "--approve")


def ask_now(services: Services, needed: RoleConsent, command: str) -> None:
    """Ask at the terminal; Refusal on a no, `Waiting` without a terminal or an answer in time."""
    decision = question(services, needed, command)
    answer = services.asker.ask(decision)
    if answer is not None and answer.choice == pending_consent.YES:
        record(services, needed, "terminal")
        return
    refusal = _refusal(decision, needed.whole, command)
    if not services.asker.interactive:
        refusal = pending_consent.keep(services, refusal, PendingQuestion(decision.id, command, roles=needed.names))
    raise refusal


def require(services: Services, filled: list[ResolvedRole]) -> None:
    """Refuse to call agents without consent, in case a use case did not ask with `ensure`."""
    digests = [role_approval.digest(services, each) for each in filled]
    if all(services.consent.has_consent(digest) for digest in digests):
        return
    whole = role_approval.combined_digest(digests)
    needed = RoleConsent(tuple(filled), whole, {})
    raise _refusal(question(services, needed, "idumb COMMAND"), whole, "the same command with")


def question(services: Services, needed: RoleConsent, command: str) -> Decision:
    whole = needed.whole
    return Decision(
        id=f"{pending_consent.MARK}{whole}",
        kind="consent",
        what=f"Ask the {', '.join(needed.names)}",
        why="The configuration names programs to run on this machine. idumb runs them only with your consent to"
        " exactly these.",
        evidence=lines(services, needed),
        choices=(
            Choice(
                "run",
                "run them",
                f"consent is recorded for these agents ({whole[:16]})",
                f"{command} --approve {whole}",
            ),
            Choice("no", "do not run them", "nothing happens"),
        ),
    )


def lines(services: Services, needed: RoleConsent) -> tuple[str, ...]:
    """Return one line for each role: what it starts."""
    return tuple(_line(services, each) for each in needed.filled)


def _line(services: Services, filled: ResolvedRole) -> str:
    name = filled.binding or ""
    argv = role_approval.argv(services, filled)
    words = agent_programs.describe_binding(services, name, argv, models={filled.role: filled.model})
    template = f"; prompt .idumb/prompts/{filled.prompt}.md" if filled.template is not None else ""
    files = "".join(
        f"; uses {path}, sha256 {sha[:16]}" for path, sha in approval_parts.named_files(services, [argv]).items()
    )
    changes = role_approval.changes_since_consent(services, filled)
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
