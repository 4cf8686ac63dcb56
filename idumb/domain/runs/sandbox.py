"""What a sandbox has to keep from being written, and whether there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from idumb.domain import paths, wording
from idumb.domain.settings import SANDBOX_BWRAP
from idumb.lazy_dataclass import dataclass

DETECTION = "detection only"
"""The level without a sandbox: writes elsewhere are not prevented. idumb names those in the repository."""


@dataclass(frozen=True, slots=True)
class Support:
    """What a machine supports: the path of a usable bubblewrap.

    `no_bwrap` says why it has none, `add` which package would add it; each is "" if it is there.
    """

    bwrap: str = ""
    no_bwrap: str = ""
    add: str = ""


@dataclass(frozen=True, slots=True)
class Fence:
    """Where a program may write. All paths are absolute, real and exist.

    - `writable`: it may write there and below.
    - `guarded`: it must never write there, even below a writable folder. What is writable below stays writable.
    - `read_only`: it must not write there. What is writable below stays writable.
    - `links`: guarded paths that are links in a writable folder. No sandbox keeps a program from replacing them.
    """

    writable: tuple[str, ...]
    guarded: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


def choose(fence: Fence, support: Support) -> tuple[str, str]:
    """Return the level in force and, without a sandbox, why there is none."""
    if fence.links:
        return DETECTION, f"no sandbox can protect {wording.listed(fence.links)}, which is a link"
    return (DETECTION, support.no_bwrap) if support.no_bwrap else (SANDBOX_BWRAP, "")


def description(support: Support) -> str:
    """Return what a machine supports, in words."""
    package = f"; the package {support.add} adds one" if support.add else ""
    return f"{support.no_bwrap}{package}" if support.no_bwrap else "bubblewrap"


def is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def scope_folders(allowed: Iterable[str]) -> tuple[str, ...]:
    """Return the folders, relative to the working tree, in which a task that declares `allowed` writes; "" is the top.

    For a file it is the folder of the file, because tools write a new file and rename it.
    """
    return tuple(dict.fromkeys(folder for path in allowed for folder in paths.fixed_folders(path)))


def may_write_below(name: str, allowed: Iterable[str]) -> bool:
    """Return whether a declared path or glob can match something in this folder at the top of the working tree."""
    return any(_can_start(name, path) for path in allowed)


def _can_start(name: str, glob: str) -> bool:
    first, slash, _ = glob.partition("/")
    if any(c in first for c in "{}"):
        return True
    return first == "**" or (bool(slash) and paths.matches(name, first))


def outside_scope(
    entries: Iterable[tuple[str, bool]], allowed: tuple[str, ...], is_protected: Callable[[str], bool]
) -> tuple[str, ...]:
    """Return which entries at the top of a working tree, as (name, is a folder), a task must not write."""
    return tuple(
        name
        for name, is_folder in entries
        if is_protected(name)
        or not (paths.matches_any(name, allowed) or (is_folder and may_write_below(name, allowed)))
    )
