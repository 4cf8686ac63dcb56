"""Follows only links that a program in a sandbox cannot have made."""

from __future__ import annotations

import os
from collections.abc import Iterable

_MOST_LINKS = 40  # as many as the kernel follows


def real_path(path: str, written: Iterable[str]) -> str | None:
    """Return the real path of an absolute path; None if it leads through a link in a folder of `written` or below.

    A program that may write there could have made the link. The folders of `written` are absolute and real.
    """
    folders = tuple(f"{folder.rstrip('/')}/" for folder in written)
    return _followed(path, folders, _MOST_LINKS)


def _followed(path: str, written: tuple[str, ...], left: int) -> str | None:
    place = "/"
    for name in path.split("/"):
        if name == "..":
            place = os.path.dirname(place)
        if name in {"", ".", ".."}:
            continue
        entry = os.path.join(place, name)
        if os.path.islink(entry):
            if left == 0 or f"{place.rstrip('/')}/".startswith(written):
                return None
            target = _followed(os.path.join(place, os.readlink(entry)), written, left - 1)
            if target is None:
                return None
            entry = target
        place = entry
    return place
