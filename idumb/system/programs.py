"""Programs of the user: found on PATH and never in a repository, and confined by bubblewrap to given places.

Links lead to such a place only if no program in a sandbox can have made them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence

BUBBLEWRAP = "bubblewrap"
"""The name of its package."""
_MOST_LINKS = 40  # as many as the kernel follows

_READ_ONLY, _WRITABLE = ("--ro-bind", "/", "/", "--dev", "/dev"), ("--dev-bind", "/", "/")
_PROCESSES = ("--proc", "/proc", "--unshare-pid", "--die-with-parent")
_OF_KERNEL = tuple(f"/proc/{name}" for name in ("sys", "sysrq-trigger", "fs", "acpi", "driver", "scsi", "mtrr"))
"""Settings of the kernel. Bubblewrap does not cover `/proc/sys` for root, who could set there what a crash starts."""
_KEPT_BY_ROOT = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE")
"""Capabilities with which root can neither mount nor reach another process."""


def outside(name: str, root: str | None) -> Iterator[str]:
    """Yield the programs of this name in the absolute folders of PATH that are not in `root` and do not lead there.

    Every program is below `/`; questions that concern no working tree are asked there.
    """
    top = os.path.realpath(root) if root else os.sep
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        program = os.path.join(folder, name)
        is_inside = top != os.sep and os.path.realpath(program).startswith(top + os.sep)
        if os.path.isabs(folder) and not is_inside and os.path.isfile(program) and os.access(program, os.X_OK):
            yield program


def find_bubblewrap(repository: str) -> str:
    """Return the real path of bubblewrap on PATH; "" if there is none, or if others or tasks could have written it."""
    # In a user namespace, the owner of the system has another number than 0.
    owners = {0, os.geteuid(), os.stat("/").st_uid}
    for program in outside("bwrap", repository):
        status = os.stat(program)
        if status.st_uid in owners and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return os.path.realpath(program)
    return ""


def confined(program: str, places: Mapping[str, bool]) -> tuple[str, ...]:
    """Return what to write before the arguments of a program.

    `places` tells for absolute real paths whether the program may write there; a deeper one overrides those above it.
    The program sees no other process, so that it cannot reach the files of one that has more permissions.
    """
    words = [program, *(_WRITABLE if places.get("/") else _READ_ONLY), *_PROCESSES]
    for path in filter(os.path.exists, _OF_KERNEL):
        words += ["--ro-bind", path, path]
    for path in sorted(places.keys() - {"/"}, key=lambda path: (path.count("/"), path)):
        words += ["--bind" if places[path] else "--ro-bind", path, path]
    if os.geteuid() == 0:
        words += ["--cap-drop", "ALL", *(word for name in _KEPT_BY_ROOT for word in ("--cap-add", f"CAP_{name}"))]
    return (*words, "--")


def without_network(words: Sequence[str]) -> tuple[str, ...]:
    """Return what `confined` returned, for a program that is to have no network."""
    return (words[0], "--unshare-net", *words[1:])


def real_path(path: str, written: Iterable[str], left: int = _MOST_LINKS) -> str | None:
    """Return the real path of an absolute path; None if it leads through a link in a folder of `written` or below.

    A program that may write there could have made the link. The folders of `written` are absolute and real. At most
    `left` links are followed.
    """
    folders = tuple(f"{folder.rstrip('/')}/" for folder in written)
    place = "/"
    for name in path.split("/"):
        if name == "..":
            place = os.path.dirname(place)
        if name in {"", ".", ".."}:
            continue
        entry = os.path.join(place, name)
        if os.path.islink(entry):
            if left == 0 or f"{place.rstrip('/')}/".startswith(folders):
                return None
            target = real_path(os.path.join(place, os.readlink(entry)), folders, left - 1)
            if target is None:
                return None
            entry = target
        place = entry
    return place
