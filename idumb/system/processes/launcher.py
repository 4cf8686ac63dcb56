"""Runs a program with limits: of its resources, of its life, and in a network in which it reaches nothing but itself.

idumb starts this file as a script: it sets the limits, makes a network namespace, starts the loopback device, and
becomes the program. So nothing runs between a fork and an exec of a process with threads. It uses only the standard
library without `site`, so that it starts quickly, and no program of the machine.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Mapping, Sequence

_ALONE, _PARENT, _END = "alone", "parent", "--"
_PARENT_DEATH_SIGNAL, _KILL = 1, 9
_NO_NEW_PRIVILEGES = 38
_CAPABILITIES = 0x20080522  # version 3 of the interface: 64 bits in two halves
_KEPT = sum(1 << bit for bit in (0, 1, 3, 4, 5, 6, 7, 10))
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE: those that bubblewrap leaves to root."""
_FAILED = 126
_NOT_FOUND = 127
_REFUSED = "idumb could not start this program: "
_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000
_INTERNET, _DATAGRAMS = 2, 2
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41

NAMES: Mapping[str, str] = {
    "memory": "RLIMIT_AS",
    "cpu": "RLIMIT_CPU",
    "processes": "RLIMIT_NPROC",
    "file_size": "RLIMIT_FSIZE",
    "open_files": "RLIMIT_NOFILE",
}
"""The system's names of resource limits."""


def without_network() -> tuple[str, ...]:
    """Return what to write before the arguments of a program that is to have no network."""
    return _command(_ALONE)


def limited(limits: Mapping[str, int], *, bound: bool = False) -> tuple[str, ...]:
    """Return what to write before the arguments of a program with limits; nothing if there are none.

    The names are those of `NAMES`; a limit that the system does not have is omitted. Linux kills a `bound` program when
    this process ends, however it ends.
    """
    import resource

    settings = [f"{NAMES[name]}={value}" for name, value in limits.items() if hasattr(resource, NAMES[name])]
    if bound and sys.platform == "linux":
        settings.append(f"{_PARENT}={os.getpid()}")
    return _command(*settings) if settings else ()


def why_not_started(code: int, said: bytes) -> str:
    """Return why the program could not be started, from the exit code and the first words of this file; else ""."""
    text = said.decode("utf-8", "replace")
    failed = code in (_FAILED, _NOT_FOUND) and text.startswith(_REFUSED)
    return text.removeprefix(_REFUSED).strip() if failed else ""


def _command(*settings: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", os.path.abspath(__file__), *settings, _END)


def _main(words: Sequence[str]) -> int:
    end = words.index(_END)
    for setting in words[:end]:
        if setting == _ALONE:
            _leave_network()
        elif setting.startswith(_PARENT):
            _end_with(int(setting.partition("=")[2]))
        else:
            _limit(*setting.split("="))
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a program inherits that
        signal.signal(number, signal.SIG_DFL)
    os.execvp(words[end + 1], list(words[end + 1 :]))  # noqa: S606 - no shell


def _end_with(parent: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(_PARENT_DEATH_SIGNAL, _KILL, 0, 0, 0):
        raise _failure("no signal at the end of the parent")
    if os.getppid() != parent:  # it ended before
        os.kill(os.getpid(), _KILL)


def _limit(name: str, value: str) -> None:
    import resource

    number, hard = getattr(resource, name), int(value)
    most = resource.getrlimit(number)[1]
    resource.setrlimit(number, (hard, hard) if most == resource.RLIM_INFINITY else (min(hard, most),) * 2)


def _leave_network() -> None:
    import ctypes

    if sys.platform != "linux":
        raise OSError("only Linux has network namespaces")
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_NETWORK | (_NEW_USER if user else 0)):
        raise _failure("no network namespace")
    if user:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as stream:
                stream.write(text)
    _start_loopback(libc)
    if not user:
        _drop_capabilities(libc)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Keep few, also in programs that are started later: root could join the network of another process."""
    import ctypes
    import struct

    header, sets = struct.pack("=Ii", _CAPABILITIES, 0), ctypes.create_string_buffer(24)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.capget(header, sets):
        raise _failure("capabilities")
    effective, permitted, *_ = struct.unpack("=6I", sets)
    if libc.capset(header, struct.pack("=6I", effective & _KEPT, permitted & _KEPT, 0, 0, 0, 0)):
        raise _failure("capabilities")


def _start_loopback(libc: ctypes.CDLL) -> None:
    """Start the device. `socket` and `fcntl` would take longer to import than everything else together."""
    device = libc.socket(_INTERNET, _DATAGRAMS, 0)
    request = b"lo".ljust(16, b"\0") + _UP_AND_RUNNING.to_bytes(2, sys.byteorder) + bytes(22)
    if device < 0 or libc.ioctl(device, _SET_FLAGS, request):
        raise _failure("no loopback device")
    os.close(device)


def _failure(words: str) -> OSError:
    import ctypes

    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), words)


if __name__ == "__main__":
    try:
        sys.exit(_main(sys.argv[1:]))
    except OSError as problem:
        sys.stderr.write(f"{_REFUSED}{problem}\n")
        sys.exit(_NOT_FOUND if isinstance(problem, FileNotFoundError) else _FAILED)
