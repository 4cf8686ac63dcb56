"""What a command that runs tasks asks for: its flags."""

from __future__ import annotations

from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """Flags of `execute-phase`; None means that the configuration decides.

    With `in_place`, only a person works, in the user's own tree, so that no checkout is needed.
    """

    phase: str
    approve: tuple[str, ...] = ()
    mode: str | None = None
    max_attempts: int | None = None
    on_deviation: str | None = None
    verify: bool = True
    force: bool = False
    branch: str | None = None
    accept_git: tuple[str, ...] = ()
    approval: str | None = None
    deterministic: bool = False
    accept_changed: bool = False
    command: str = "execute-phase"
    rehearsal: bool = False
    in_place: bool = False
