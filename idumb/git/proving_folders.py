"""Where the working trees of checks are, and how those of killed commands go."""

from __future__ import annotations

import contextlib
import os

from idumb.git.clones import locked_folders
from idumb.git.discover import Repository
from idumb.system.files import outside_folders, user_folders

_NAME = "idumb-proving"
_SHORT = 16


def place(repository: Repository) -> str:
    """Return the folder of a repository's proving trees: outside the working tree, and with no manifest above it."""
    free = (
        folder
        for folder in map(os.path.realpath, _candidates())
        if not f"{folder}/".startswith(f"{repository.root.rstrip('/')}/")
        and outside_folders.manifest_above(folder) is None
    )
    return os.path.join(next(free, _candidates()[0]), user_folders.repository_id(repository.common_dir)[:_SHORT])


def clear() -> None:
    """Remove the proving trees that killed commands left, of any repository."""
    for above in _candidates():
        if not os.path.isdir(above) or user_folders.unsafe(above, folder=True) is not None:
            continue
        with contextlib.suppress(OSError):  # the next command tries again
            for top in (os.path.join(above, name) for name in os.listdir(above)):
                for folder in locked_folders.abandoned(top):
                    locked_folders.remove(folder)
                locked_folders.remove_empty(top)
            locked_folders.remove_empty(above)


def _candidates() -> tuple[str, str]:
    own = f"{_NAME}-{os.geteuid()}"
    return os.path.join(user_folders.beside_state(), _NAME), os.path.join("/var/tmp", own)  # noqa: S108
