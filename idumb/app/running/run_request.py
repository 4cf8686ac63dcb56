"""What a command that runs tasks asks for: its flags, and where builders work."""

from __future__ import annotations

from idumb.app.core import workspaces
from idumb.app.core.services import Services
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """Flags of `execute-phase`; None means that the configuration decides.

    `again` is the command to which a hint adds `--approve HASH`; None means the default command of the phase.
    """

    phase: str
    approve: tuple[str, ...] = ()
    mode: str | None = None
    max_attempts: int | None = None
    on_deviation: str | None = None
    verify: bool = True
    force: bool = False
    workspace: str | None = None
    branch: str | None = None
    accept_git: tuple[str, ...] = ()
    approval: str | None = None
    deterministic: bool = False
    sandboxed: bool = False
    accept_changed: tuple[str, ...] = ()
    command: str = "execute-phase"
    rehearsal: bool = False
    again: str | None = None


def workspace(services: Services, request: Request) -> str:
    """Return where builders work: `here` or `clone`."""
    configured = services.settings.run.workspace
    if request.workspace or request.rehearsal:
        return request.workspace or configured
    return workspaces.workspace_of(services.settings.git.commit, configured)
