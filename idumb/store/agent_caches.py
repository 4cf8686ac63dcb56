"""What agents unpack of their own program: shared by their homes in a working tree, and unpacked again on demand."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from idumb.domain import health
from idumb.domain.health import Check, Symptom

FOLDER = "unpacked"
_MEGABYTE = 1_000_000


def check(state_dir: str) -> Check:
    """The check of `idumb doctor`; its fix removes the cache."""
    place = os.path.join(state_dir, FOLDER)

    def look() -> Iterator[Symptom]:
        size = _size(place)
        if size:
            words = (
                f"{size / _MEGABYTE:.0f} MB that an agent unpacked of its own program; it unpacks them again on demand"
            )
            yield Symptom(health.OK, words, place, mends=True)

    def remove(_: Symptom) -> str:
        size = _size(place)
        shutil.rmtree(place)
        return f"{place} was removed ({size / _MEGABYTE:.0f} MB), which agents unpack again on demand"

    return Check("agents.unpacked", "agents unpacked no more than they need", look, remove)


def _size(place: str) -> int:
    return sum(os.lstat(os.path.join(here, name)).st_size for here, _, names in os.walk(place) for name in names)
