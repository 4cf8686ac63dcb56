"""The `Sandboxes` port: what this machine supports to limit where a program writes, and the arguments that do it."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence

from idumb.domain.runs.sandbox import Fence, Support, is_below
from idumb.domain.settings import SANDBOX_BWRAP, SANDBOX_LANDLOCK
from idumb.system.processes import bubblewrap, child_process, landlock

_LONGEST_PROBE = 20
_PROBE = ("/bin/sh", "-c", ":")
_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"))
_SEMAPHORES = "/dev/shm"  # noqa: S108 - programs create them there


class LocalSandboxes:
    """The sandboxes of this machine. A bubblewrap in `repository` is ignored, because tasks can change it."""

    def __init__(self, repository: str = "") -> None:
        self.support: Callable[[], Support] = functools.cache(lambda: _support(repository))

    def launcher(self, level: str, fence: Fence) -> tuple[str, ...]:
        if level == SANDBOX_LANDLOCK:
            devices = (path for path in _DEVICES if os.path.exists(path))
            return landlock.command(self.support().landlock, (*fence.writable, *_semaphores(fence), *devices))
        if level == SANDBOX_BWRAP:
            # Bubblewrap makes an empty one, unless what the fence names is in that of the user.
            places = {_SEMAPHORES: False} if os.path.isdir(_SEMAPHORES) and not _semaphores(fence) else {}
            places |= dict.fromkeys(fence.writable, True)
            places |= dict.fromkeys((*fence.read_only, *fence.guarded), False)
            return bubblewrap.command(self.support().bwrap, places)
        return ()


def _support(repository: str) -> Support:
    if sys.platform != "linux":
        words = f"idumb has no sandbox for {'macOS' if sys.platform == 'darwin' else sys.platform}"
        return Support(no_landlock=words, no_bwrap=words)
    version, no_landlock = _landlock()
    program = bubblewrap.find(repository)
    if not program:
        return Support(version, "", no_landlock, "bubblewrap is not installed", bubblewrap.PACKAGE)
    problem = _tried((*bubblewrap.command(program, {}), *_PROBE))
    no_bwrap = f"bubblewrap does not work here: {problem}" if problem else ""
    return Support(version, "" if problem else program, no_landlock, no_bwrap)


def _landlock() -> tuple[int, str]:
    version = landlock.version()
    if version == 0:
        return 0, "the kernel has no Landlock"
    if version < landlock.OLDEST:
        words = f"the kernel has version {version} of Landlock, and version {landlock.OLDEST} is the oldest usable one"
        return 0, words
    problem = _tried((*landlock.command(version, ("/dev/null",)), *_PROBE))
    return (0, f"Landlock does not work here: {problem}") if problem else (version, "")


def _tried(argv: Sequence[str]) -> str:
    """Return why a launcher does not work; "" if it does."""
    try:
        ended = child_process.run(argv, cwd="/", environment={}, timeout=_LONGEST_PROBE)
    except OSError as problem:
        return str(problem)
    lines = ended.output.text().strip().splitlines()
    return "" if ended.exit_code == 0 else lines[-1] if lines else ended.words() or f"exit {ended.exit_code}"


def _semaphores(fence: Fence) -> tuple[str, ...]:
    """Return the folder of semaphores, unless the working tree or something guarded is below it."""
    kept = (*fence.writable, *fence.guarded, *fence.read_only)
    safe = os.path.isdir(_SEMAPHORES) and not any(is_below(path, _SEMAPHORES) for path in kept)
    return (_SEMAPHORES,) if safe else ()
