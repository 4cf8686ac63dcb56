"""Consent to the agents of roles: the question, and what needs it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from idumb.app.consent import asking, needs
from idumb.app.consent.asking import Subject
from idumb.app.core.services import Services
from idumb.domain import agent
from idumb.domain.consent import grant as grants
from idumb.domain.consent.grant import Change, Need
from idumb.domain.settings import ResolvedRole

_WHY = (
    "The configuration names programs to run on this machine. idumb runs them only with your consent to exactly these."
)


def missing(services: Services, need: Need) -> tuple[Change, ...]:
    stored = services.consent.grants(needs.ROLES)
    parts = {name: each for name, each in need.parts.items() if name in agent.ROLES}
    return grants.missing(parts, [grant for grant in stored if grant.revoked is None], stored)


def ensure(services: Services, need: Need, *, approve: Collection[str]) -> None:
    """Require consent to the agents of a need: earlier, by `--approve`, or at the terminal now; Refusal otherwise.

    Without a terminal, the question is kept for `idumb decisions`.
    """
    open_parts = missing(services, need)
    asking.require_known(services, need, approve, agreed=not open_parts)
    if open_parts:
        asking.ask(services, need, open_parts, subject(services, need, open_parts), approve)


def subject(services: Services, need: Need, open_parts: Sequence[Change]) -> Subject:
    names = [name for name in need.parts if name in agent.ROLES]
    what = f"Ask the {', '.join(names)}"
    return Subject(
        what,
        _WHY,
        lines(services, names, open_parts),
        "run them",
        f"consent is recorded for these agents ({need.digest[:16]})",
        f"These agents need your consent before they can run ({need.digest[:16]}): the {', '.join(names)}.",
    )


def lines(services: Services, names: Sequence[str], open_parts: Sequence[Change]) -> tuple[str, ...]:
    """Return one line for each role: what it starts, and what changed since the user agreed."""
    since = {c.name: f"; changed since you agreed: {c.words}" for c in open_parts if c.was is not None}
    return tuple(_line(services, needs.filling_of(services, name)) + since.get(name, "") for name in names)


def _line(services: Services, filled: ResolvedRole) -> str:
    name, argv = filled.binding or "", needs.role_argv(services, filled)
    words = asking.words_of_binding(services, name, argv, models={filled.role: filled.model})
    template = f"; prompt .idumb/prompts/{filled.prompt}.md" if filled.template is not None else ""
    named = needs.named_files(services, [argv]).items()
    files = "".join(f"; uses {path}, sha256 {sha[:16]}" for path, sha in named)
    return f"{filled.role}: {name}: {words}{template}{files}"


def require(services: Services, filled: ResolvedRole) -> None:
    """Refuse to call an agent without consent, in case a use case did not ask with `ensure`."""
    need = needs.of_roles(services, [filled.role])
    open_parts = missing(services, need)
    if open_parts:
        words = subject(services, need, open_parts)
        raise asking.refusal(need, open_parts, words, asking.question(services, need, words))
