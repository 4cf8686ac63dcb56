"""The user's own folders for idumb: state (approvals, keys, anchors) and configuration.

A repository can neither name them nor write to them. Only the user may enter them.
"""

from __future__ import annotations

import contextlib
import os
import sys

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
    make_private(folder)
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


SYSTEM_WIDE = "/etc/idumb/policy/tools.yaml"


VARIABLE = "IDUMB_TOOL_POLICY"


def system_wide() -> tuple[tuple[str, bool], ...]:
    """Paths, each with whether the file must be there. The variable adds a file, so it can only narrow what is allowed.

    A file that was asked for by name and is missing must not count as no policy.
    """
    named = os.environ.get(VARIABLE, "")
    return ((SYSTEM_WIDE, False), *(((os.path.abspath(named), True),) if named else ()))


def configuration() -> str:
    """`$XDG_CONFIG_HOME/idumb`, else `~/.config/idumb`. A relative XDG_CONFIG_HOME does not count."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "idumb")


def make_below(root: str, path: str) -> None:
    """Make `path` and what is missing between `root` and it, with mode 0700; `root` itself is never made.

    OSError where `root` is gone. A git folder that somebody moved away would come back with nothing but ours in it,
    and then stand in the way of the one that is moved back.
    """
    if path == root or os.path.isdir(path):
        return
    make_below(root, os.path.dirname(path))
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)


def make_private(path: str) -> None:
    """Make `path` and the folders above it that are missing, each with mode 0700; those that exist stay as they are.

    `os.makedirs` gives its mode to the last folder only.
    """
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent != path:
        make_private(parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
