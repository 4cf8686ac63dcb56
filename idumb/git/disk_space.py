"""Is there enough disk space for files? Asked before the first one is written."""

from __future__ import annotations

from collections.abc import Iterable

from idumb.domain import errors
from idumb.system.files import file_systems

_BLOCK = 4096  # the least space that a file takes


def require_room(sizes: Iterable[int], place: str, largest: str = "") -> None:
    """Refusal `system.full` if files of these sizes do not fit on the file system that holds `place`."""
    rounded = [max(size, _BLOCK) for size in sizes]
    room = file_systems.room(place)
    if sum(rounded) > room.bytes or (room.files is not None and len(rounded) > room.files):
        named = f"; the largest is {largest}" if largest else ""
        raise errors.Refusal(
            "system.full",
            f"Not enough disk space for {len(rounded)} files of {sum(rounded)} bytes{named}"
            f"{file_systems.described(place)}",
            hint="Free disk space, or let git ignore files that need no snapshot; then run the command again",
            details={"path": place, "bytes": sum(rounded), "files": len(rounded), "largest": largest},
        )


def explain(words: str, store: str) -> None:
    """Refusal `system.full` if so little is free that git failed for it; git does not always say so."""
    full = file_systems.nearly_full(store)
    if full:
        first = words.partition("\n")[0]
        raise errors.Refusal("system.full", f"git: {first}{full}", hint="Free disk space, then try again")
