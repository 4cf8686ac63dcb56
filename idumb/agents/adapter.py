"""What adapters are built from and have in common, and where their programs may write.

That is their checkout, scratch, and the folders of their own state.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from idumb.agents import transcript
from idumb.domain import paths, permissions
from idumb.domain.action import Action
from idumb.domain.agent import BUILDER, AgentRequest, Readiness
from idumb.domain.errors import AdapterError
from idumb.domain.permissions import Fence
from idumb.domain.settings import Binding, Settings
from idumb.system import programs

if TYPE_CHECKING:
    from idumb.app.history.recordings import Recordings
    from idumb.app.ports import Sandboxes
    from idumb.system.redaction import Stream

ApplyPatch = Callable[[str, Callable[[str], str | None]], tuple[bool, str]]
Redact = Callable[[str], str]

FORMAT = "1"
_TEMPORARY = ("TMPDIR", "TMP", "TEMP")
_KINDS: Mapping[Any, str] = {str: "a text", int: "a whole number", Mapping: "a mapping", tuple: "a list"}


def _environment(names: Iterable[str]) -> dict[str, str]:
    from idumb.system import child_process

    return child_process.environment(names)


class Equipment(Struct, frozen=True):
    """What the adapters of one workspace, `repository`, are built from.

    `environment` returns the variables of this process with the given names. `transcripts` is a folder for what
    agents do; `stream` redacts that. `guard` raises if this process must no longer write. `inputs`
    is a folder for input files and private homes of programs (default: the system's temporary folder); it is emptied
    when the adapters are built, because files in it belong to an executor that was killed. `recordings` finds runs to
    replay. `handoffs` is a folder for work done elsewhere. `unpacked` is a folder for files that agents unpack; all
    homes share it. `sandboxes` opens the port. `guarded` are
    folders that no agent may write: those of git, and of the user's approvals and keys.
    """

    settings: Settings
    repository: str
    apply_patch: ApplyPatch
    redact: Redact
    transcripts: str | None = None
    stream: Callable[[], Stream] | None = None
    guard: Callable[[], None] = lambda: None
    inputs: str | None = None
    recordings: Recordings | None = None
    handoffs: str | None = None
    unpacked: str | None = None
    sandboxes: Callable[[], Sandboxes] | None = None
    guarded: tuple[str, ...] = ()
    environment: Callable[[Iterable[str]], dict[str, str]] = _environment

    @property
    def allowed(self) -> tuple[str, ...]:
        """Names of the variables that every agent sees."""
        return self.settings.environment

    def variables(self, binding: Binding) -> dict[str, str]:
        """Return the variables that every agent sees, and those that only this binding adds."""
        return self.environment((*self.allowed, *binding.environment))


class Adapter:
    """One adapter that idumb ships, with one binding, whose adapter is its `name`. Subclasses define `run`."""

    version = FORMAT
    continues = True
    options: Mapping[str, tuple[Any, ...] | type] = MappingProxyType({})
    """The options of a binding: the values of each, or their type."""

    def __init__(self, binding: Binding, equipment: Equipment) -> None:
        self.name = binding.adapter
        self._binding = binding
        self._equipment = equipment
        self._redact = equipment.redact

    def describe(self) -> Sequence[str]:
        """Check the binding. Return the arguments that start its program, if any. Raises AdapterError."""
        return ()

    def ready(self) -> Readiness:
        """Return what is known of the agent without a request. Raises AdapterError if it cannot work."""
        self.describe()
        return Readiness()

    def _transcript(self, request: AgentRequest) -> transcript.Transcript:
        """Return a transcript for one request; without a folder for transcripts, nothing of it is kept."""
        folder, stream = self._equipment.transcripts, self._equipment.stream
        place = "" if folder is None else transcript.place(folder, request.subject, request.attempt, request.role)
        return transcript.Transcript(place, stream)

    def _bad_option(self, words: str) -> AdapterError:
        """Return the refusal of an option; `words` follow the name of the binding."""
        adapter = self._binding.adapter
        return AdapterError(
            "agent.bad-option",
            f"The binding {self._binding.name} ({adapter}) {words}.",
            hint=Action.of("help", "agents"),
        )

    def _require_options(self) -> None:
        """Raise AdapterError unless the adapter knows each option of the binding, and accepts its value."""
        for name, value in self._binding.options.items():
            accepted = self.options.get(name)
            if accepted is None:
                known = ", ".join(self.options) or "none"
                raise self._bad_option(f"has no option {name[:60]}; its options are: {known}")
            values = accepted if isinstance(accepted, tuple) else ()
            fits = any(value == one and type(value) is type(one) for one in values)
            if isinstance(accepted, type):
                fits = isinstance(value, accepted) and not isinstance(value, bool)
            if not fits:
                words = " or ".join(str(one).lower() for one in values) or _KINDS[accepted]
                raise self._bad_option(f"needs {words} as its option {name}")


class Sandboxed(Struct, frozen=True):
    """What one call of a program needs. `level` is the level in force, in words for the record."""

    argv: tuple[str, ...]
    variables: dict[str, str]
    level: str


def sandboxed(request: AgentRequest, equipment: Equipment, scratch: str, state: Sequence[str]) -> Sandboxed:
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
        return Sandboxed(argv, dict.fromkeys(_TEMPORARY, temporary), words)
    if equipment.settings.requires_sandbox:
        raise AdapterError("agent.no-sandbox", f"No sandbox for {request.subject}: {why}.", hint="")
    return Sandboxed(argv, {}, words)


def _fence(request: AgentRequest, equipment: Equipment, own: Sequence[str]) -> Fence:
    """Return where a program may write: in `own`, and a builder in its checkout and the configured absolute places."""
    root, chosen = os.path.realpath(request.workspace), equipment.settings.sandbox
    named = [place for path in (chosen.write if chosen else ()) if os.path.isabs(place := os.path.expanduser(path))]
    # An earlier attempt could have made a link in what a builder may write.
    written = (root, *map(os.path.realpath, named))
    guarded = _present(map(os.path.realpath, equipment.guarded))
    writable = _real(own, written)
    if request.role == BUILDER:
        outside = (place for place in _real(named, written) if not any(paths.is_below(place, g) for g in guarded))
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
