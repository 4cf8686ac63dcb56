"""The branch on which a new run begins. A name that git does not allow is refused first."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from idumb.app.core.services import Services
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.settings import BRANCH_PHASE

_BRANCHES = "refs/heads/"


def chosen(services: Services, contract: Contract, requested: str | None) -> str | None:
    """Return the branch on which a new run begins; None for that of HEAD."""
    settings = services.settings.git
    configured = settings.branch_name if settings.branch == BRANCH_PHASE else None
    return requested or (configured and configured.replace("{phase}", contract.phase)) or None


def begin(services: Services, contract: Contract, requested: str | None) -> None:
    """Switch to the branch that was requested for a new run, unless HEAD is on it."""
    name = chosen(services, contract, requested)
    if name and services.history.head().branch != name:
        _require_free(name, services.history.refs(_BRANCHES))
        services.history.begin_branch(name)
        services.reporter.note(f"on the new branch {name}")


def _require_free(name: str, refs: Iterable[str]) -> None:
    """Refuse a whole ref name, and a name below or above an existing branch."""
    if name.startswith("refs/"):
        short = name.removeprefix(_BRANCHES)
        raise Refusal(
            "git.branch-name",
            f"{name} is the full name of a ref; omit refs/heads/.",
            hint="--branch NAME" if short.startswith("refs/") else f"--branch {shlex.quote(short)}",
        )
    branches = [ref.removeprefix(_BRANCHES) for ref in refs]
    inside = next((b for b in branches if name.startswith(f"{b}/") or b.startswith(f"{name}/")), None)
    if inside is not None:
        raise Refusal(
            "git.branch-exists",
            f"Branch {inside} exists, and git cannot also have {name}: one name would be a folder of the other.",
            hint=f"Choose another name: --branch {shlex.quote(name.replace('/', '-') if '/' in name else name + '-1')}",
        )
