"""Consent to the agents of roles: what it covers, how it is asked for, and how it is recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from idumb.app.consent import agent_programs, approval_parts, pending_consent, role_approval
from idumb.app.consent.pending_consent import PendingQuestion
from idumb.app.core import next_actions
from idumb.app.core.services import Services
from idumb.domain import roles
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import Refusal
from idumb.domain.roles import ResolvedRole

PLACE = role_approval.PLACE


def filling_of(services: Services, role: str) -> ResolvedRole:
    filled = roles.resolve(services.settings, role)
    if filled.binding is None:
        raise Refusal(
            "role.unbound",
            f"No agent fills the role {role}.",
            hint=f"Write `roles: {{{role}: {{binding: NAME}}}}` in .idumb/config.yaml, with NAME one of its bindings",
            details={"role": role},
        )
    return filled


def consent_hash(services: Services, asked: Iterable[str]) -> str:
    """What `--approve` must name, so that these roles may be asked: bindings, programs, scripts, models, templates."""
    return role_approval.combined_digest(
        role_approval.digest(services, filling_of(services, role)) for role in dict.fromkeys(asked)
    )


@dataclass(frozen=True, slots=True)
class RoleConsent:
    """Consent to some roles: `whole` is the hash that names them together, `missing` what nobody agreed to yet.

    `missing` has what to record by the hash of each role, looked at before a question, so that the word is to what was
    shown, whatever is changed meanwhile.
    """

    filled: tuple[ResolvedRole, ...]
    whole: str
    missing: Mapping[str, Mapping[str, Any]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.role for each in self.filled)


def required(services: Services, asked: Iterable[str]) -> RoleConsent:
    """Refusal where a role is not filled, or its program cannot be started."""
    filled = tuple(filling_of(services, role) for role in dict.fromkeys(asked))
    own = {each: role_approval.digest(services, each) for each in filled}
    missing = {
        digest: role_approval.consent_record(services, each)
        for each, digest in own.items()
        if not services.consent.given(digest)
    }
    return RoleConsent(filled, role_approval.combined_digest(own.values()), missing)


def record(services: Services, to: RoleConsent, how: str) -> None:
    """Record a person's consent to what was missing."""
    for digest, agreed in to.missing.items():
        services.consent.record(digest, phase=PLACE, how=how, at=services.clock.now(), agreed=agreed)


def ensure(services: Services, asked: Iterable[str], *, approve: Collection[str], command: str) -> None:
    """Consent to what these roles start: given before, by `--approve`, or at the terminal now; Refusal otherwise.

    `command` is what a person types to go on, without `--approve`. Where nobody can be asked, the question is kept.
    """
    to = required(services, asked)
    stranger = next((one for one in approve if one != to.whole), None)
    if stranger is not None:
        other = role_approval.why_other_hash(services, stranger, to.filled)
        raise _refusal(question(services, to, command), to.whole, command, other=other)
    if to.missing and not approve:
        ask_now(services, to, command)
    elif to.missing:
        record(services, to, "--approve")


def ask_now(services: Services, to: RoleConsent, command: str) -> None:
    """Ask at the terminal; Refusal where the answer is no, `Waiting` where nobody can be asked or answered in time."""
    put = question(services, to, command)
    answer = services.asker.ask(put)
    if answer is not None and answer.choice == pending_consent.YES:
        record(services, to, "terminal")
        return
    refusal = _refusal(put, to.whole, command)
    if not services.asker.interactive:
        refusal = pending_consent.keep(services, refusal, PendingQuestion(put.id, command, roles=to.names))
    raise refusal


def require(services: Services, filled: list[ResolvedRole]) -> None:
    """The use case asks with `ensure_consent`; nobody reaches an agent around it."""
    own = [role_approval.digest(services, each) for each in filled]
    if all(services.consent.given(digest) for digest in own):
        return
    whole = role_approval.combined_digest(own)
    to = RoleConsent(tuple(filled), whole, {})
    raise _refusal(question(services, to, "idumb COMMAND"), whole, "the same command with")


def question(services: Services, to: RoleConsent, command: str) -> Decision:
    whole = to.whole
    return Decision(
        id=f"{pending_consent.MARK}{whole}",
        kind="consent",
        what=f"Ask the {', '.join(to.names)}",
        why="The configuration names programs that run on this machine. They run only when you agree to exactly them.",
        evidence=lines(services, to),
        choices=(
            Choice(
                "run",
                "run it",
                f"consent is recorded for these agents ({whole[:16]})",
                f"{command} --approve {whole}",
            ),
            Choice("no", "do not run it", "nothing happens"),
        ),
    )


def lines(services: Services, to: RoleConsent) -> tuple[str, ...]:
    """What each of the roles starts, one line each."""
    return tuple(_line(services, each) for each in to.filled)


def _line(services: Services, filled: ResolvedRole) -> str:
    name = filled.binding or ""
    argv = role_approval.argv(services, filled)
    words = agent_programs.describe_binding(services, name, argv, models={filled.role: filled.model})
    own = f"; prompt .idumb/prompts/{filled.prompt}.md" if filled.template is not None else ""
    used = "".join(
        f"; uses {path}, sha256 {sha[:16]}" for path, sha in approval_parts.named_files(services, [argv]).items()
    )
    found = role_approval.changes_since_consent(services, filled)
    since = f"; changed since you agreed: {', '.join(found)}" if found else ""
    return f"{filled.role}: {name}: {words}{own}{used}{since}"


def _refusal(question: Decision, whole: str, command: str, *, other: str | None = None) -> Refusal:
    """Nobody's word is there; `other` says why the one that was given is not for this."""
    missing = f"Nobody consented to these agents ({whole[:16]}): {question.what.removeprefix('Ask ')}"
    return Refusal(
        "consent.missing" if other is None else "consent.other-agents",
        f"{other or missing}.",
        hint=f"{command} --approve {whole}",
        details={
            "what": question.what,
            "why": question.why,
            "evidence": list(question.evidence),
            "choices": next_actions.rows(question.choices),
            "consent_hash": whole,
            "decision": question.id,
            **({} if other is None else {"expected": whole}),
        },
    )
