"""Runs a program that can write only to given places, by Landlock.

idumb starts this file as a script: it restricts itself and becomes the program, so that nothing runs between a fork and
an exec of a process with threads. It uses only the standard library without `site`, so that it starts quickly.

The program also loses the capabilities with which root could leave the sandbox: type into the user's terminal, load a
module into the kernel, or join the namespaces of other processes.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterable, Sequence

OLDEST, NEWEST = 2, 7
"""Versions of the kernel's interface. The first one forbids every rename between folders."""
TRUNCATES, SIGNALS = 3, 6
"""The versions that control truncation, and signals to other processes."""

_END = "--"
_FAILED = 126
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_NO_NEW_PRIVILEGES = 38
_CAPABILITIES = 0x20080522  # version 3 of the interface: 64 bits in two halves
_KEPT = sum(1 << bit for bit in (0, 1, 3, 4, 5, 6, 7, 10))
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE: those that bubblewrap leaves to root."""
_SIGNAL_SCOPE = 2
_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_DEVICES = 1 << 6 | 1 << 11  # MAKE_CHAR and MAKE_BLOCK, which nothing grants
_ENTRIES = sum(1 << bit for bit in (4, 5, 7, 8, 9, 10, 12))  # REMOVE_*, and MAKE_* of what is no device


def version() -> int:
    """Return the version of the kernel's interface, 0 if the kernel has none or does not allow it."""
    if sys.platform != "linux":
        return 0
    import ctypes

    answer: int = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_ASK_VERSION))
    return max(0, answer)


def command(version: int, places: Iterable[str]) -> tuple[str, ...]:
    """Return what to write before the arguments of a program that may write only to `places` and below them.

    The places exist, and their paths are absolute. `version` is that of the kernel's interface.
    """
    return (sys.executable, "-I", "-S", os.path.abspath(__file__), str(version), *places, _END)


def without_capabilities() -> tuple[str, ...]:
    """Return what to write before the arguments of a program that may write anywhere, but has few capabilities."""
    return command(0, ())


def _main(words: Sequence[str]) -> int:
    import ctypes

    end = words.index(_END)
    libc, version = ctypes.CDLL(None, use_errno=True), min(int(words[0]), NEWEST)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise _failure("prctl")
    _drop_capabilities(libc)
    if version:
        _restrict(libc, version, words[1:end])
    os.execv(words[end + 1], list(words[end + 1 :]))  # noqa: S606 - no shell


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Keep no other capability. Without new privileges, no program that is started later can get it back."""
    import ctypes
    import struct

    header, sets = struct.pack("=Ii", _CAPABILITIES, 0), ctypes.create_string_buffer(24)
    if libc.capget(header, sets):
        raise _failure("capget")
    effective, permitted, _, *upper = struct.unpack("=6I", sets)
    kept = (effective & _KEPT, permitted & _KEPT, 0, 0, 0, 0)
    if (effective, permitted, *upper) != (*kept[:2], 0, 0, 0) and libc.capset(header, struct.pack("=6I", *kept)):
        raise _failure("capset")


def _restrict(libc: ctypes.CDLL, version: int, places: Sequence[str]) -> None:
    import ctypes
    import struct

    in_file = _WRITE_FILE | (_TRUNCATE if version >= TRUNCATES else 0)
    in_folder = in_file | _ENTRIES | _REFER
    attributes = struct.pack("=QQQ", in_folder | _DEVICES, 0, _SIGNAL_SCOPE)[: 24 if version >= SIGNALS else 8]
    rules = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    if rules < 0:
        raise _failure("landlock_create_ruleset")
    for place in places:
        handle = os.open(place, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", in_folder if os.path.isdir(place) else in_file, handle)
        if libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, ctypes.c_uint(0)):
            raise _failure(place)
        os.close(handle)
    if libc.syscall(_RESTRICT_SELF, rules, ctypes.c_uint(0)):
        raise _failure("landlock_restrict_self")
    os.close(rules)


def _failure(place: str) -> OSError:
    import ctypes

    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), place)


if __name__ == "__main__":
    try:
        sys.exit(_main(sys.argv[1:]))
    except OSError as problem:
        sys.stderr.write(f"idumb could not start this program in its sandbox: {problem}\n")
        sys.exit(_FAILED)
