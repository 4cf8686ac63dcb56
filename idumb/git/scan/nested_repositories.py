"""Find submodules and nested repositories, which a plan must not write into, without scanning the working tree."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from idumb.git.discover import Repository
from idumb.git.scan import ignores


def of_places(place: Repository, places: Iterable[str]) -> tuple[str, ...]:
    """Return every submodule of the index, and each of the places and their parent folders that is a repository."""
    tracked = ignores.Tracked(place)
    tracked.refresh()
    found = set(tracked.submodules())
    own = os.path.realpath(place.root)
    for folder in dict.fromkeys(above for path in places for above in _leading(path)):
        inside = os.path.join(place.root, folder)
        # A link may lead back to the top.
        if folder not in found and os.path.lexists(os.path.join(inside, ".git")) and os.path.realpath(inside) != own:
            found.update(() if tracked.holds_below(folder) else (folder,))
    return tuple(sorted(found))


def _leading(path: str) -> Iterator[str]:
    """Return the path and every folder above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]
