"""All local data of one repository besides plans, commits and refs: listed, copied and removed as a whole."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import NamedTuple

from idumb.domain.errors import Refusal
from idumb.store import backups, ownership
from idumb.system import atomic_write, private_folders, user_folders

UNPACKED = "unpacked"
"""The folder for files that agents unpack from their own program; all homes of a working tree share it."""

_REMOVED = "idumb.removed-"


class LocalFolder(NamedTuple):
    """A folder that idumb keeps for this repository, and its size."""

    contents: str
    path: str
    files: int
    bytes: int


class FileLocalData:
    """What idumb keeps for the repository of one common dir besides plans, commits, refs and `.idumb/`."""

    def __init__(self, common_dir: str, checkouts: str | None, projects: tuple[str, ...] = ()) -> None:
        """`checkouts` is where the repository's checkouts are created; None if unknown.

        `projects` are the subfolders that are projects and have state.
        """
        self._projects = projects
        self._common_dir = common_dir
        self._checkouts = checkouts
        self._folder = os.path.join(common_dir, "idumb")
        self._id = user_folders.repository_id(common_dir)

    def list(self) -> tuple[LocalFolder, ...]:
        present = [(label, path) for label, path in self._places() if os.path.lexists(path)]
        return tuple(_measured(label, path) for label, path in present)

    def _places(self) -> Iterator[tuple[str, str]]:
        """The event log comes last: until it is gone, everything else can be found from it."""
        yield "consent", os.path.join(user_folders.path(), "consent", self._id)
        for folder in self._projects:
            of_project = user_folders.repository_id(self._common_dir, folder)
            yield f"consent of {folder}", os.path.join(user_folders.path(), "consent", of_project)
        yield "backups of the event log", os.path.join(user_folders.path(), backups.FOLDER, self._id)
        if self._checkouts is not None:
            yield "checkouts of the working tree", self._checkouts
        for name in sorted(os.listdir(self._common_dir)):
            if name.startswith(_REMOVED):
                yield "leftovers of a killed deinit", os.path.join(self._common_dir, name)
        yield "event log and state of working trees", self._folder

    def projects(self) -> tuple[str, ...]:
        """Return the subfolders that are projects and have state here."""
        return self._projects

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Take the locks of every working tree; Refusal `lock.held` if one has an owner."""
        return ownership.held_all(self._folder)

    def place_for_backup(self, name: str) -> str:
        """Return an unused folder below the state directory, named after the repository."""
        return atomic_write.free_name(os.path.join(user_folders.path(), "backups", f"{name}-{self._id[:8]}"), "-")

    def begin_backup(self, folder: str) -> None:
        """Create the folder; Refusal `backup.exists` if it is not empty."""
        if os.path.lexists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
            raise Refusal("backup.exists", f"{folder} already exists.", hint="choose another folder")
        private_folders.make(folder)

    def back_up(self, folder: str) -> None:
        """Copy everything below `folder`, forced to disk."""
        for label, path in self._places():
            if os.path.lexists(path) and not os.path.basename(path).startswith(_REMOVED):
                name = "idumb" if path == self._folder else label.replace(" ", "-").replace("/", "-")
                _copy(path, os.path.join(folder, name))
        atomic_write.sync_folder(folder)

    def keep(self, folder: str, name: str, source: str) -> None:
        """Copy one more folder into a backup."""
        _copy(source, os.path.join(folder, name))

    @staticmethod
    def remove_files(path: str) -> None:
        """Remove a folder with its content; a link is removed, not followed.

        Raises OSError if something is mounted in it, or cannot be removed.
        """
        private_folders.require_no_mounts(path)
        with private_folders.opened(os.path.dirname(path)) as above:
            try:
                private_folders.remove_at(os.path.basename(path), above)
            except OSError as problem:  # it has only the name
                raise OSError(problem.errno, problem.strerror, path) from problem
            atomic_write.sync(above)

    def remove(self) -> None:
        """Safe to be killed: the next call finds and removes what was renamed away."""
        for _, path in self._places():
            if path == self._folder and os.path.lexists(path):
                renamed = os.path.join(self._common_dir, f"{_REMOVED}{os.getpid()}")
                os.rename(path, renamed)
                atomic_write.sync_folder(self._common_dir)
                path = renamed  # noqa: PLW2901 - it is the same folder
            if os.path.lexists(path):
                self.remove_files(path)


def _measured(contents: str, path: str) -> LocalFolder:
    files = [os.path.join(here, name) for here, _, names in os.walk(path, onerror=_raise) for name in names]
    return LocalFolder(contents, path, len(files), sum(os.lstat(file).st_size for file in files))


def _copy(source: str, target: str) -> None:
    """Copy folders and files, each forced to disk, and links as links; skip anything else, and what is `UNPACKED`.

    Raises OSError also for a folder that cannot be listed: nothing may be removed that was not copied.
    """

    def copied(path: str, place: str) -> None:
        if os.path.isfile(path):
            with open(path, "rb") as stream:
                atomic_write.write(place, stream.read(), mode=0o600)

    private_folders.make(os.path.dirname(target))
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(UNPACKED), copy_function=copied)
    for here, _, _ in os.walk(target):
        # The entries of folders and links, which no file fsync covers.
        os.chmod(here, 0o700)
        atomic_write.sync_folder(here)


def _raise(problem: OSError) -> None:
    raise problem
