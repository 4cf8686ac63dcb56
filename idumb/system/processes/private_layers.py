"""Runs a program for which writing below given folders changes a private layer, and the folders stay as they are.

idumb starts this file as a script: it makes a mount namespace, mounts an overlay on each folder, and becomes the
program. It uses only the standard library without `site`, so that it starts quickly, and no program of the machine.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterable, Sequence

_END = "--"
_FAILED = 126
_NEW_MOUNTS, _NEW_USER = 0x20000, 0x10000000
_BIND, _RECURSIVE, _SLAVE, _REMOUNT, _READ_ONLY = 0x1000, 0x4000, 0x80000, 0x20, 0x1
_LOCKED = {os.ST_NOSUID: 0x2, os.ST_NODEV: 0x4, os.ST_NOEXEC: 0x8} if sys.platform == "linux" else {}
"""Flags of a mount that a user namespace must keep when it changes others."""


def command(folders: Iterable[str], layers: str) -> tuple[str, ...]:
    """Return what to write before the arguments of a program, so that it cannot change `folders`; () without any.

    All paths are absolute and real. What the program writes below the nth folder is in `layers`/n/upper. A file is
    read-only.
    """
    places = [word for number, path in enumerate(folders) for word in (path, os.path.join(layers, str(number)))]
    return (sys.executable, "-I", "-S", os.path.abspath(__file__), *places, _END) if places else ()


def _main(words: Sequence[str]) -> int:
    end = words.index(_END)
    libc = _own_mounts()
    for at in range(0, end, 2):
        _protect(libc, words[at], words[at + 1])
    os.execv(words[end + 1], list(words[end + 1 :]))  # noqa: S606 - no shell


def _own_mounts() -> ctypes.CDLL:
    """Give this process mounts of its own; as another user than root, in a user namespace where it stays that user."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_MOUNTS | (_NEW_USER if user else 0)):
        raise _failure("no mount namespace")
    if user:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as stream:
                stream.write(text)
    _mount(libc, None, "/", None, _RECURSIVE | _SLAVE)
    return libc


def _protect(libc: ctypes.CDLL, path: str, layer: str) -> None:
    if not os.path.isdir(path):
        _mount(libc, path, path, None, _BIND)
        flags = sum(flag for bit, flag in _LOCKED.items() if os.statvfs(path).f_flag & bit)
        _mount(libc, None, path, None, _BIND | _REMOUNT | _READ_ONLY | flags)
        return
    folders = []
    for place in (path, f"{layer}/upper", f"{layer}/work"):
        if place != path:
            os.makedirs(place, mode=0o700, exist_ok=True)
        folders.append(os.open(place, os.O_PATH | os.O_DIRECTORY))
    # By descriptor: the names of the folders may hold the separators of mount options.
    options = zip(("lowerdir", "upperdir", "workdir"), folders, strict=True)
    words = ",".join(f"{name}=/proc/self/fd/{folder}" for name, folder in options)
    status = os.stat(path)
    os.chmod(f"{layer}/upper", status.st_mode & 0o7777)
    _mount(libc, "overlay", path, "overlay", 0, words if os.geteuid() == 0 else f"{words},userxattr")


def _mount(
    libc: ctypes.CDLL, source: str | None, target: str, kind: str | None, flags: int, options: str | None = None
) -> None:
    source_, target_, kind_, options_ = (None if t is None else os.fsencode(t) for t in (source, target, kind, options))
    if libc.mount(source_, target_, kind_, flags, options_):
        raise _failure(target)


def _failure(what: str) -> OSError:
    import ctypes

    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    try:
        sys.exit(_main(sys.argv[1:]))
    except OSError as problem:
        sys.stderr.write(f"idumb could not protect your files from this check: {problem}\n")
        sys.exit(_FAILED)
