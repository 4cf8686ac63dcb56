"""Displaced files: what a restore moved out of the working tree, kept in git's folder until the operation ends.

A program that holds such a file open may still write to it, so each is compared once more before it is removed. Its
path tells with what: `<new id>-<displaced id>-<number>/<path>`. So this works after a kill too.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from typing import NamedTuple

from idumb.git.restore import path_state
from idumb.git.restore.path_state import Spot, Step

_BESIDE = "beside"
_DOT = ".idumb-displaced-"


class Shelf(NamedTuple):
    """The folder of displaced files of one project. It exists only while it holds any; `tree` is the working tree."""

    root: str
    tree: str

    def incoming(self) -> Spot:
        """Return where a new file is until it is complete. The next one replaces what a kill left there."""
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        spot = Spot(None, os.path.join(self.root, "incoming"))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spot.name)
        return spot

    def free(self, step: Step) -> Spot:
        """Return a free place for the file that the step displaces."""
        return Spot(None, self._free(self.root, step))

    def free_beside(self, step: Step, folder: int) -> Spot:
        """Return a free name in the path's own folder, for a git folder on another file system; a link leads to it."""
        names = (f"{_DOT}{number}" for number in itertools.count())
        name = next(name for name in names if path_state.look_at(Spot(folder, name)).status is None)
        place = os.path.join(self.tree, os.path.dirname(step.path), name)
        os.symlink(place, self._free(os.path.join(self.root, _BESIDE), step))
        return Spot(folder, name)

    def _free(self, root: str, step: Step) -> str:
        ids = "-".join("none" if entry is None else entry.oid for entry in (step.want, step.present.entry))
        paths = (os.path.join(root, f"{ids}-{number}", step.path) for number in itertools.count())
        path = next(path for path in paths if not os.path.lexists(path))
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return path

    def release(self) -> tuple[str, ...]:
        """Remove every file with the bytes that a restore took or gave; return the paths of the others, which stay."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.root, "incoming"))
        saved = [place for note in self._notes() if (place := _released(note, self.root)) is not None]
        for folder, _, _ in os.walk(self.root, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        return tuple(sorted(saved))

    def _notes(self) -> Iterator[str]:
        for folder, folders, names in os.walk(self.root):
            yield from (os.path.join(folder, name) for name in names)
            yield from (path for name in folders if os.path.islink(path := os.path.join(folder, name)))


def _released(note: str, root: str) -> str | None:
    """Return the path of the displaced file of a note if it has other bytes than were displaced."""
    ids, _, below = os.path.relpath(note, root).partition(os.sep)
    place = note
    if ids == _BESIDE:
        ids, place = below.partition(os.sep)[0], os.readlink(note)
    try:
        present = path_state.look_at(Spot(None, place))
    except OSError:
        return place
    if present.status is not None:
        if present.entry is None or present.entry.oid not in ids.split("-"):
            return place
        os.unlink(place)
    if place != note:
        os.unlink(note)
    return None
