"""Where an agent's program may write: the scope of its task, scratch, and the folders of its own state."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence

from idumb.agents.adapter import Equipment
from idumb.domain import paths
from idumb.domain.agent import BUILDER, AgentRequest
from idumb.domain.errors import AdapterError
from idumb.domain.runs import sandbox
from idumb.domain.runs.sandbox import Fence
from idumb.domain.settings import SANDBOX_BWRAP, SandboxSettings
from idumb.lazy_dataclass import dataclass
from idumb.system.processes import bubblewrap

_TEMPORARY = ("TMPDIR", "TMP", "TEMP")


@dataclass(frozen=True, slots=True)
class Opened:
    """What one call of a program needs. `level` is the level in force, in words for the record."""

    argv: tuple[str, ...]
    variables: dict[str, str]
    level: str


def opened(
    request: AgentRequest, equipment: Equipment, chosen: SandboxSettings, scratch: str, state: Sequence[str]
) -> Opened:
    """Prepare the sandbox of one call, and create the missing folders of the workspace that it may write.

    `scratch` is a folder of this call, `state` are folders of the agent. Raises AdapterError if the settings require a
    sandbox and none can be had, OSError if a folder cannot be made.
    """
    root = os.path.realpath(request.workspace)
    for path in chosen.write if request.role == BUILDER else ():
        if not os.path.isabs(os.path.expanduser(path)) and _existing(root, path) is not None:
            os.makedirs(os.path.join(root, path), exist_ok=True)
    fence = _fence(request, equipment, chosen, (scratch, *state))
    if equipment.sandboxes is None:
        raise AssertionError("agents that work have the port")
    sandboxes = equipment.sandboxes()
    level, why = sandbox.choose(fence, sandboxes.support())
    argv, words = sandboxes.launcher(level, fence), f"{level}: {why}" if why else level
    if level != sandbox.DETECTION:
        temporary = os.path.join(scratch, "tmp")
        os.makedirs(temporary, 0o700, exist_ok=True)
        return Opened(argv, dict.fromkeys(_TEMPORARY, temporary), words)
    if chosen.level == SANDBOX_BWRAP:
        raise AdapterError("agent.no-sandbox", f"No sandbox for {request.subject}: {why}.", hint="")
    return Opened(argv, {}, words)


@contextlib.contextmanager
def opened_for_steps(request: AgentRequest, equipment: Equipment, chosen: SandboxSettings) -> Iterator[Opened]:
    """Prepare the sandbox of the programs that a task's steps start, with scratch of their own."""
    if equipment.inputs is not None:
        os.makedirs(equipment.inputs, 0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="idumb-", dir=equipment.inputs, ignore_cleanup_errors=True) as scratch:
        yield opened(request, equipment, chosen, scratch, ())


def _fence(request: AgentRequest, equipment: Equipment, chosen: SandboxSettings, own: Sequence[str]) -> Fence:
    root = os.path.realpath(request.workspace)
    builds = request.role == BUILDER
    allowed = request.allowed_paths if builds else ()
    places = [place for folder in sandbox.scope_folders(allowed) if (place := _existing(root, folder)) is not None]
    guarded = [*map(os.path.realpath, equipment.guarded)]
    writable = [*_real(own, root, chosen.write), *(place for place in places if place != root)]
    writable += [*_configured(chosen.write, root, guarded), git_folder(root)] if builds else []
    read_only = []
    if root in places:
        writable.append(root)
        read_only += _outside(root, request)
    else:
        read_only.append(root)
    return Fence(
        _present(writable),
        tuple(path for path in _present(guarded) if path not in writable),
        _present(path for path in read_only if path not in writable),
        tuple(path for path in guarded if os.path.islink(path) and _is_in(path, writable)),
    )


def git_folder(workspace: str) -> str:
    """Return git's folder of a workspace: in it, or above it if a project is in a subfolder."""
    place = workspace
    while not os.path.lexists(os.path.join(place, ".git")) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    return os.path.join(workspace if place == os.path.dirname(place) else place, ".git")


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(sandbox.is_below(os.path.dirname(path), folder) for folder in folders)


def _present(places: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path in dict.fromkeys(places) if os.path.exists(path))


def _existing(root: str, folder: str) -> str | None:
    """Return a folder of the working tree, or the deepest one above it; None if a link or a file is on the way."""
    place = root
    for name in filter(None, folder.split("/")):
        below = os.path.join(place, name)
        if not os.path.lexists(below):
            return place
        if os.path.islink(below) or not os.path.isdir(below):
            return None
        place = below
    return place


def _configured(places: Sequence[str], root: str, guarded: Sequence[str]) -> list[str]:
    """Return the configured places, without those in a folder that no agent may write."""
    named = [os.path.join(root, os.path.expanduser(place)) for place in places]
    return [place for place in _real(named, root, places) if not any(sandbox.is_below(place, g) for g in guarded)]


def _real(named: Iterable[str], root: str, configured: Iterable[str]) -> list[str]:
    """Return real paths, without those that lead through a link that an earlier attempt could have made."""
    written = (root, *(os.path.realpath(os.path.join(root, os.path.expanduser(place))) for place in configured))
    return [real for path in named if (real := bubblewrap.real_path(path, written)) is not None]


def _outside(root: str, request: AgentRequest) -> list[str]:
    """Return what the task must not write at the top of the working tree."""
    allowed = request.allowed_paths

    def protected(name: str) -> bool:
        return paths.protecting_rule(name, request.protected, allowed) is not None

    with os.scandir(root) as listing:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing if not entry.is_symlink()]
    outside = sandbox.outside_scope([entry for entry in entries if entry[0] != ".git"], allowed, protected)
    return [os.path.join(root, name) for name in outside]
