"""What a sandbox has to keep from being written, and whether there is one."""

from __future__ import annotations

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
    """

    writable: tuple[str, ...]
    guarded: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()


def choose(support: Support) -> tuple[str, str]:
    """Return the level in force and, without a sandbox, why there is none."""
    return (DETECTION, support.no_bwrap) if support.no_bwrap else (SANDBOX_BWRAP, "")


def description(support: Support) -> str:
    """Return what a machine supports, in words."""
    package = f"; the package {support.add} adds one" if support.add else ""
    return f"{support.no_bwrap}{package}" if support.no_bwrap else "bubblewrap"


def is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")
