"""Runs a program with limits of its resources and of its life.

idumb starts this file as a script: it sets the limits and becomes the program. So nothing runs between a fork and an
exec of a process with threads. It uses only the standard library without `site`, so that it starts quickly.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PARENT, _END = "parent", "--"
_PARENT_DEATH_SIGNAL, _KILL = 1, 9
_FAILED = 126
_NOT_FOUND = 127
_REFUSED = "idumb could not start this program: "

NAMES: Mapping[str, str] = {
    "memory": "RLIMIT_AS",
    "cpu": "RLIMIT_CPU",
    "processes": "RLIMIT_NPROC",
    "file_size": "RLIMIT_FSIZE",
    "open_files": "RLIMIT_NOFILE",
}
"""The system's names of resource limits."""


def limited(limits: Mapping[str, int], *, bound: bool = False) -> tuple[str, ...]:
    """Return what to write before the arguments of a program with limits; nothing if there are none.

    The names are those of `NAMES`; a limit that the system does not have is omitted. Linux kills a `bound` program when
    this process ends, however it ends.
    """
    import resource

    settings = [f"{NAMES[name]}={value}" for name, value in limits.items() if hasattr(resource, NAMES[name])]
    if bound and sys.platform == "linux":
        settings.append(f"{_PARENT}={os.getpid()}")
    return (sys.executable, "-I", "-S", os.path.abspath(__file__), *settings, _END) if settings else ()


def why_not_started(code: int, said: bytes) -> str:
    """Return why the program could not be started, from the exit code and the first words of this file; else ""."""
    text = said.decode("utf-8", "replace")
    failed = code in (_FAILED, _NOT_FOUND) and text.startswith(_REFUSED)
    return text.removeprefix(_REFUSED).strip() if failed else ""


def _main(words: Sequence[str]) -> int:
    end = words.index(_END)
    for setting in words[:end]:
        if setting.startswith(_PARENT):
            _end_with(int(setting.partition("=")[2]))
        else:
            _limit(*setting.split("="))
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a program inherits that
        signal.signal(number, signal.SIG_DFL)
    os.execvp(words[end + 1], list(words[end + 1 :]))  # noqa: S606 - no shell


def _end_with(parent: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(_PARENT_DEATH_SIGNAL, _KILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no signal at the end of the parent")
    if os.getppid() != parent:  # it ended before
        os.kill(os.getpid(), _KILL)


def _limit(name: str, value: str) -> None:
    import resource

    number, hard = getattr(resource, name), int(value)
    most = resource.getrlimit(number)[1]
    resource.setrlimit(number, (hard, hard) if most == resource.RLIM_INFINITY else (min(hard, most),) * 2)


if __name__ == "__main__":
    try:
        sys.exit(_main(sys.argv[1:]))
    except OSError as problem:
        sys.stderr.write(f"{_REFUSED}{problem}\n")
        sys.exit(_NOT_FOUND if isinstance(problem, FileNotFoundError) else _FAILED)
