"""Where an agent's program may write: its checkout, scratch, and the folders of its own state."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from idumb.agents.adapter import Equipment
from idumb.domain import permissions
from idumb.domain.agent import BUILDER, AgentRequest
from idumb.domain.errors import AdapterError
from idumb.domain.permissions import Fence
from idumb.lazy_dataclass import dataclass
from idumb.system import programs

_TEMPORARY = ("TMPDIR", "TMP", "TEMP")


@dataclass(frozen=True, slots=True)
class Opened:
    """What one call of a program needs. `level` is the level in force, in words for the record."""

    argv: tuple[str, ...]
    variables: dict[str, str]
    level: str


def opened(request: AgentRequest, equipment: Equipment, scratch: str, state: Sequence[str]) -> Opened:
    """Prepare the sandbox of one call.

    `scratch` is a folder of this call, `state` are folders of the agent. Raises AdapterError if the settings require a
    sandbox and none can be had, OSError if a folder cannot be made.
    """
    fence = _fence(request, equipment, (scratch, *state))
    if equipment.sandboxes is None:
        raise AssertionError("agents that work have the port")
    sandboxes = equipment.sandboxes()
    level, why = permissions.choose_sandbox(sandboxes.support())
    argv, words = sandboxes.launcher(level, fence), f"{level}: {why}" if why else level
    if level != permissions.DETECTION:
        temporary = os.path.join(scratch, "tmp")
        os.makedirs(temporary, 0o700, exist_ok=True)
        return Opened(argv, dict.fromkeys(_TEMPORARY, temporary), words)
    if equipment.settings.requires_sandbox:
        raise AdapterError("agent.no-sandbox", f"No sandbox for {request.subject}: {why}.", hint="")
    return Opened(argv, {}, words)


def _fence(request: AgentRequest, equipment: Equipment, own: Sequence[str]) -> Fence:
    """Return where a program may write: in `own`, and a builder in its checkout and the configured absolute places."""
    root, chosen = os.path.realpath(request.workspace), equipment.settings.sandbox
    named = [place for path in (chosen.write if chosen else ()) if os.path.isabs(place := os.path.expanduser(path))]
    # An earlier attempt could have made a link in what a builder may write.
    written = (root, *map(os.path.realpath, named))
    guarded = _present(map(os.path.realpath, equipment.guarded))
    writable = _real(own, written)
    if request.role == BUILDER:
        outside = (place for place in _real(named, written) if not any(permissions.is_below(place, g) for g in guarded))
        writable += [root, git_folder(root), *outside]
    allowed = _present(writable)
    return Fence(allowed, tuple(path for path in guarded if path not in allowed), () if root in allowed else (root,))


def git_folder(workspace: str) -> str:
    """Return git's folder of a workspace: in it, or above it if a project is in a subfolder."""
    place = workspace
    while not os.path.lexists(os.path.join(place, ".git")) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    return os.path.join(workspace if place == os.path.dirname(place) else place, ".git")


def _present(places: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path in dict.fromkeys(places) if os.path.exists(path))


def _real(named: Iterable[str], written: Sequence[str]) -> list[str]:
    """Return real paths, without those that lead through a link below `written`."""
    return [real for path in named if (real := programs.real_path(path, written)) is not None]
