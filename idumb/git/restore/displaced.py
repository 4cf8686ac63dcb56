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

from idumb.git.discover import Repository
from idumb.git.restore import path_state
from idumb.git.restore.path_state import Spot, Step


class Shelf(NamedTuple):
    """The folder of displaced files of one working tree. It exists only while it holds any."""

    root: str

    def incoming(self) -> Spot:
        """Return where a new file is until it is complete. The next one replaces what a kill left there."""
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        spot = Spot(None, os.path.join(self.root, "incoming"))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spot.name)
        return spot

    def free(self, step: Step) -> Spot:
        """Return a free place for the file that the step displaces."""
        ids = "-".join("none" if entry is None else entry.oid for entry in (step.want, step.present.entry))
        paths = (os.path.join(self.root, f"{ids}-{number}", step.path) for number in itertools.count())
        path = next(path for path in paths if not os.path.lexists(path))
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return Spot(None, path)

    def release(self) -> tuple[str, ...]:
        """Remove every file with the bytes that a restore took or gave; return the paths of the others, which stay."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.root, "incoming"))
        places = [os.path.join(folder, name) for folder, name in self._names()]
        saved = [place for place in places if not _is_released(place, self.root)]
        for folder, _, _ in os.walk(self.root, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        return tuple(sorted(saved))

    def _names(self) -> Iterator[tuple[str, str]]:
        for folder, folders, names in os.walk(self.root):
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            yield from ((folder, name) for name in (*names, *links))


def shelf(place: Repository) -> Shelf:
    """Return the one of a working tree: in git's folder, or in `.idumb` if that is on another file system."""
    if is_on_one_file_system(place.root, place.common_dir):
        return Shelf(os.path.join(place.common_dir, "idumb", "displaced", place.worktree_id))
    return Shelf(os.path.join(place.root, ".idumb", "displaced"))


def is_on_one_file_system(*folders: str) -> bool:
    return len({os.stat(folder).st_dev for folder in folders}) == 1


def _is_released(place: str, root: str) -> bool:
    """Remove a displaced file with one of the contents that its path names; return False if it has another."""
    ids = os.path.relpath(place, root).partition(os.sep)[0].split("-")
    try:
        entry = path_state.look_at(Spot(None, place)).entry
        if entry is None or entry.oid not in ids:
            return False
        os.unlink(place)
    except OSError:
        return False
    return True
