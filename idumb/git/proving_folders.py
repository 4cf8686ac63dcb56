"""Where the working trees of checks are, and how those of killed commands go."""

from __future__ import annotations

import contextlib
import os

from idumb.git.discover import Repository
from idumb.system.files import private_folders, user_folders

_NAME = "idumb-proving"
_SHORT = 16


def place(repository: Repository) -> str:
    """Return the folder of a repository's proving trees: outside the working tree, and with no manifest above it."""
    outside = [
        folder
        for folder in map(os.path.realpath, _candidates())
        if not f"{folder}/".startswith(f"{repository.root.rstrip('/')}/")
        and private_folders.unsafe(folder, folder=True) is None
    ]
    free = (folder for folder in outside if private_folders.manifest_above(folder) is None)
    chosen = next(free, outside[0] if outside else _candidates()[0])
    return os.path.join(chosen, user_folders.repository_id(repository.common_dir)[:_SHORT])


def clear() -> None:
    """Remove the proving trees that killed commands left, of any repository."""
    for above in _candidates():
        if not os.path.isdir(above) or private_folders.unsafe(above, folder=True) is not None:
            continue
        with contextlib.suppress(OSError):  # the next command tries again
            for top in (os.path.join(above, name) for name in os.listdir(above)):
                if os.path.islink(top):  # a check may have put it there, and it may lead to files of the user
                    os.unlink(top)
                for folder in private_folders.abandoned(top):
                    private_folders.remove(folder)
                private_folders.remove_empty(top)
            private_folders.remove_empty(above)


def _candidates() -> tuple[str, str]:
    own = f"{_NAME}-{os.geteuid()}"
    return os.path.join(user_folders.beside_state(), _NAME), os.path.join("/var/tmp", own)  # noqa: S108
