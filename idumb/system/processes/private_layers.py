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
    from collections.abc import Iterable, Mapping, Sequence

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
    return _launcher(((path, path) for path in folders), layers)


def views(folders: Mapping[str, str], layers: str) -> tuple[str, ...]:
    """Return the same for a program that finds each folder also at another place, and cannot change it there.

    `folders` has the place, an empty folder, and what to find there. What the program writes there is discarded.
    """
    return _launcher(((folder, place) for place, folder in folders.items()), layers)


def _launcher(pairs: Iterable[tuple[str, str]], layers: str) -> tuple[str, ...]:
    words = [word for number, pair in enumerate(pairs) for word in (*pair, os.path.join(layers, str(number)))]
    return (sys.executable, "-I", "-S", os.path.abspath(__file__), *words, _END) if words else ()


def places(launcher: Sequence[str]) -> tuple[str, ...]:
    """Return where a program has layers; `launcher` consists of any number of those of `command` and `views`."""
    layered = list[str]()
    script = os.path.abspath(__file__)
    while script in launcher:
        begin = launcher.index(script) + 1
        end = launcher.index(_END, begin)
        layered += launcher[begin + 1 : end : 3]
        launcher = launcher[end + 1 :]
    return tuple(layered)


def _main(words: Sequence[str]) -> int:
    end = words.index(_END)
    try:
        libc = _own_mounts()
        for at in range(0, end, 3):
            _protect(libc, *words[at : at + 3])
    except OSError as problem:
        sys.stderr.write(f"idumb could not protect your files from this check: {problem}\n")
        return _FAILED
    program = words[end + 1]
    try:
        os.execv(program, list(words[end + 1 :]))  # noqa: S606 - no shell
    except OSError as problem:
        sys.stderr.write(f"{program} could not be started: {problem.strerror}\n")
        return _FAILED


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


def _protect(libc: ctypes.CDLL, path: str, place: str, layer: str) -> None:
    """Cover `place` with a layer above what `path` has."""
    if place != path:  # the layer may be below the path, and only another file system may be
        os.makedirs(layer, mode=0o700, exist_ok=True)
        _mount(libc, "tmpfs", layer, "tmpfs", 0)
    elif not os.path.isdir(path):
        _mount(libc, path, path, None, _BIND)
        flags = sum(flag for bit, flag in _LOCKED.items() if os.statvfs(path).f_flag & bit)
        _mount(libc, None, path, None, _BIND | _REMOUNT | _READ_ONLY | flags)
        return
    folders = []
    for folder in (path, f"{layer}/upper", f"{layer}/work"):
        if folder != path:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        folders.append(os.open(folder, os.O_PATH | os.O_DIRECTORY))
    # By descriptor: the names of the folders may hold the separators of mount options.
    options = zip(("lowerdir", "upperdir", "workdir"), folders, strict=True)
    words = ",".join(f"{name}=/proc/self/fd/{folder}" for name, folder in options)
    status = os.stat(path)
    os.chmod(f"{layer}/upper", status.st_mode & 0o7777)
    _mount(libc, "overlay", place, "overlay", 0, words if os.geteuid() == 0 else f"{words},userxattr")


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
    sys.exit(_main(sys.argv[1:]))
