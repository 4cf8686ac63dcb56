"""The user's state directory: consent, keys, anchors. A repository can neither name it nor write to it."""

from __future__ import annotations

import os
import sys

from idumb.system.files import private_folders

CLONES = "IDUMB_CLONES"


def path() -> str:
    """`$XDG_STATE_HOME/idumb`, else `~/.local/state/idumb`. A relative XDG_STATE_HOME does not count."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "idumb")


def clones() -> tuple[str, bool]:
    """Where private copies of repositories are made, and whether the user's environment names it: `$IDUMB_CLONES`.

    Else `idumb-clones` beside the state directory, or in Application Support. Not within it: agents work in there.
    """
    chosen = os.environ.get(CLONES, "")
    if chosen:
        return chosen.rstrip("/") or "/", True
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        parts = ("Library", "Application Support") if sys.platform == "darwin" else (".local", "state")
        base = os.path.join(os.path.expanduser("~"), *parts)
    return os.path.join(base, "idumb-clones"), False


def repository_id(common_dir: str) -> str:
    """SHA-256 of real path, device and inode: a copy, and another repository put at the same path, are strangers."""
    import hashlib

    real = os.path.realpath(common_dir)
    found = os.stat(real)
    return hashlib.sha256(f"{real}\0{found.st_dev}\0{found.st_ino}".encode("utf-8", "surrogateescape")).hexdigest()


def prepare(*parts: str) -> str:
    """The folder `parts` below the state directory, made with mode 0700 where it is missing."""
    folder = os.path.join(path(), *parts)
    private_folders.make_private(folder)
    return folder


def problem(*parts: str) -> str | None:
    """Why what lies in the folder `parts` cannot be trusted, or None. Folders that are missing are no problem."""
    folder = path()
    for part in (None, *parts):
        folder = folder if part is None else os.path.join(folder, part)
        found = unsafe(folder, folder=True)
        if found is not None:
            return found
    return None


def unsafe(place: str, *, folder: bool = False) -> str | None:
    """Why a file (or folder) could have been written by somebody else, or None."""
    import stat

    try:
        found = os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    right_type = stat.S_ISDIR(found.st_mode) if folder else stat.S_ISREG(found.st_mode)
    if not right_type:
        return f"{place} is not a {'folder' if folder else 'file'}"
    if found.st_uid != os.geteuid():
        return f"{place} belongs to another user (uid {found.st_uid})"
    if found.st_mode & 0o022:
        return f"{place} can be written by other users (mode {found.st_mode & 0o777:04o})"
    return None
