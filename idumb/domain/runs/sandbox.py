"""What a sandbox has to keep from being written, and which one can do it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from idumb.domain import paths, wording
from idumb.domain.settings import SANDBOX_AUTO, SANDBOX_BWRAP, SANDBOX_LANDLOCK
from idumb.lazy_dataclass import dataclass

DETECTION = "detection only"
"""The level without a sandbox: writes elsewhere are not prevented. idumb names those in the repository."""

LADDER: Mapping[str, tuple[str, ...]] = {
    SANDBOX_AUTO: (SANDBOX_BWRAP, SANDBOX_LANDLOCK),
    SANDBOX_LANDLOCK: (SANDBOX_LANDLOCK,),
    SANDBOX_BWRAP: (SANDBOX_BWRAP,),
}
"""What each setting tries, in this order. Bubblewrap protects more and starts faster (docs/design/decisions.md)."""

_TRUNCATION = 3  # the first version of Landlock that controls it


@dataclass(frozen=True, slots=True)
class Support:
    """What a machine supports: the version of Landlock (0 for none) and the path of a usable bubblewrap.

    `no_landlock` and `no_bwrap` say why it has none, `add` which package would add it; each is "" if it is there.
    """

    landlock: int = 0
    bwrap: str = ""
    no_landlock: str = ""
    no_bwrap: str = ""
    add: str = ""


@dataclass(frozen=True, slots=True)
class Fence:
    """Where a program may write. All paths are absolute, real and exist.

    - `writable`: it may write there and below.
    - `guarded`: it must never write there, even below a writable folder. What is writable below stays writable.
    - `read_only`: it should not write there, but a sandbox that cannot prevent it counts as one.
    - `links`: guarded paths that are links in a writable folder. No sandbox keeps a program from replacing them.
    """

    writable: tuple[str, ...]
    guarded: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


def choose(level: str, fence: Fence, support: Support) -> tuple[str, str]:
    """Return the level in force and, without a sandbox, why there is none."""
    if fence.links:
        return DETECTION, f"no sandbox can protect {wording.listed(fence.links)}, which is a link"
    reasons = []
    for candidate in LADDER[level]:
        reason = _landlock_problem(fence, support) if candidate == SANDBOX_LANDLOCK else support.no_bwrap
        if not reason:
            return candidate, ""
        reasons.append(reason)
    return DETECTION, "; ".join(reasons)


def best(level: str, support: Support) -> tuple[str, str]:
    """Return the level of a task with no file beside `.git`, and, without a sandbox, why there is none."""
    return choose(level, Fence(()), support)


def description(support: Support) -> str:
    """Return what a machine supports, in words."""
    if support.no_landlock and support.no_landlock == support.no_bwrap:
        return support.no_landlock
    kernel = support.no_landlock or f"Landlock (version {support.landlock})"
    if weaker := weakness(SANDBOX_LANDLOCK, support) if support.landlock else "":
        kernel = f"{kernel}, but {weaker}"
    program = support.no_bwrap or "bubblewrap"
    package = (
        f"; the package {support.add} would also protect .git from tasks with files beside it" if support.add else ""
    )
    return f"{kernel}; {program}{package}"


def weakness(level: str, support: Support) -> str:
    """Return what this level does not prevent on this machine, beyond what no sandbox does; "" if nothing."""
    if level == SANDBOX_LANDLOCK and support.landlock < _TRUNCATION:
        return "files elsewhere can still be emptied, because this kernel's Landlock does not control truncation"
    return ""


def _landlock_problem(fence: Fence, support: Support) -> str:
    if support.no_landlock:
        return support.no_landlock
    around = any(is_below(guarded, place) for place in fence.writable for guarded in fence.guarded)
    return "Landlock cannot allow new files beside .git and protect .git" if around else ""


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
