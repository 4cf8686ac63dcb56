"""What this machine supports to limit where a program writes, the arguments that do it, and the limits of checks.

A check writes in the proof checkout, in its private folders, and in the caches of its tools.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from idumb.domain.paths import is_below
from idumb.domain.permissions import SANDBOX_BWRAP, Fence, Support, choose_sandbox, sandbox_words
from idumb.domain.settings import NO_NETWORK, USER_HOME, CheckSettings
from idumb.system import child_process, programs

if TYPE_CHECKING:
    from idumb.composition.container import Container

_LONGEST_PROBE = 20
_PROBE = ("/bin/sh", "-c", ":")
_SEMAPHORES = "/dev/shm"  # noqa: S108 - programs create them there


class LocalSandboxes:
    """The sandboxes of this machine. A bubblewrap in `repository` is ignored, because tasks can change it."""

    def __init__(self, repository: str = "") -> None:
        self.support: Callable[[], Support] = functools.cache(lambda: _support(repository))

    def launcher(self, level: str, fence: Fence) -> tuple[str, ...]:
        if level == SANDBOX_BWRAP:
            # Bubblewrap makes an empty folder of semaphores, unless what the fence names is in that of the user.
            named = any(is_below(path, _SEMAPHORES) for path in (*fence.writable, *fence.guarded, *fence.read_only))
            places = {_SEMAPHORES: False} if named else {}
            places |= dict.fromkeys(fence.writable, True)
            places |= dict.fromkeys((*fence.read_only, *fence.guarded), False)
            return programs.confined(self.support().bwrap, places)
        return ()


def _support(repository: str) -> Support:
    if sys.platform != "linux":
        return Support(no_bwrap=f"idumb has no sandbox for {'macOS' if sys.platform == 'darwin' else sys.platform}")
    program = programs.find_bubblewrap(repository)
    if not program:
        return Support("", "bubblewrap is not installed", programs.BUBBLEWRAP)
    problem = _tried((*programs.confined(program, {}), *_PROBE))
    return Support("", f"bubblewrap does not work here: {problem}") if problem else Support(program)


def _tried(argv: Sequence[str]) -> str:
    """Return why a launcher does not work; "" if it does."""
    try:
        ended = child_process.run(argv, cwd="/", environment={}, timeout=_LONGEST_PROBE)
    except OSError as problem:
        return str(problem)
    lines = ended.output.text().strip().splitlines()
    return "" if ended.exit_code == 0 else lines[-1] if lines else ended.words() or f"exit {ended.exit_code}"


class CheckSandbox:
    """The sandbox of a run's checks: no check may write what is the user's or git's.

    `caches` are folders of toolchains, which checks may fill; some may not exist. Checks of a project in a subfolder
    may write in the whole tree that they judge, as at the top.
    """

    def __init__(self, services: Container, settings: CheckSettings, caches: Sequence[str]) -> None:
        user, chosen = services.user_repository, services.settings
        self._below = f"/{services.folder}" if services.folder else ""
        self._sandboxes, self._settings = services.sandboxes, settings
        self._chosen = chosen.sandbox if chosen.sandboxed else None
        self._user = os.path.realpath(user.root)
        guarded = map(os.path.realpath, (*services.guarded(user), f"{user.root}/.git"))
        self._guarded = tuple(dict.fromkeys(path for path in guarded if os.path.exists(path)))
        named = () if self._chosen is None else map(os.path.expanduser, self._chosen.write)
        self._more = (*caches, *filter(os.path.isabs, named))

    def limited(self, root: str, variables: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
        """Return the arguments before those of a check in `root`, which limit it, and the level in words."""
        limits, words = tuple[str, ...](), list[str]()
        if self._chosen is not None:
            level, why = choose_sandbox(self._sandboxes.support())
            limits = self._sandboxes.launcher(level, self._fence(root, variables))
            words.append(f"{level}: {why}" if why else level)
        if self._settings.network == NO_NETWORK:
            support = self._sandboxes.support()
            if support.no_bwrap:
                raise OSError(f"checks.network: none needs bubblewrap, and {sandbox_words(support)}")
            limits = programs.without_network(limits or programs.confined(support.bwrap, {"/": True}))
            words.append("no network")
        return limits, ", ".join(words)

    def _fence(self, root: str, variables: Mapping[str, str]) -> Fence:
        private = os.path.dirname(variables["TMPDIR"])
        written = (self._user, *map(os.path.realpath, self._more))
        # Omit links in what builders and earlier checks wrote: they must not decide where this one writes.
        places = (programs.real_path(path, written) for path in self._more)
        more = [place for place in places if place is not None and self._may(place)]
        extra = [place for place in more if not any(is_below(place, path) for path in self._guarded)]
        if self._settings.home == USER_HOME:
            extra.append(os.path.realpath(variables["HOME"]))
        return Fence(
            tuple(dict.fromkeys((*map(os.path.realpath, (root.removesuffix(self._below), private)), *extra))),
            self._guarded,
            (self._user,),
        )

    def _may(self, place: str) -> bool:
        """Return whether a place may be writable: it exists, and nothing of the user's repository is below."""
        return os.path.isdir(place) and not any(is_below(path, place) for path in (*self._guarded, self._user))
