"""The user of this machine: the name, and idumb's folders for state (approvals, keys, backups) and configuration.

A repository can neither choose nor write to them. Only the user has access.
"""

from __future__ import annotations

import itertools
import os
import sys

from idumb.system import private_folders

CHECKOUTS, POLICY = "IDUMB_CHECKOUTS", "IDUMB_TOOL_POLICY"
"""Variables of the environment."""
SYSTEM_WIDE = "/etc/idumb/policy/tools.yaml"


def path() -> str:
    """Return `$XDG_STATE_HOME/idumb`, else `~/.local/state/idumb`. A relative XDG_STATE_HOME is ignored."""
    return os.path.join(_base("XDG_STATE_HOME", ".local", "state"), "idumb")


def checkouts() -> tuple[str, bool]:
    """Return the folder for the checkouts of repositories, and whether the environment sets it: `$IDUMB_CHECKOUTS`.

    The default is `idumb-checkouts` next to the state directory, or in Application Support. It is outside the state
    directory, because agents work in checkouts.
    """
    chosen = os.environ.get(CHECKOUTS, "")
    if chosen:
        return chosen.rstrip("/") or "/", True
    default = ("Library", "Application Support") if sys.platform == "darwin" else (".local", "state")
    return os.path.join(_base("XDG_STATE_HOME", *default), "idumb-checkouts"), False


def _base(variable: str, *default: str) -> str:
    base = os.environ.get(variable, "")
    # Without a home, as a user of a container has none, "~" stays: below "/", so that no folder in a project is meant.
    return base if os.path.isabs(base) else os.path.join("/", os.path.expanduser("~"), *default)


def repository_id(common_dir: str, project: str = "") -> str:
    """Return the SHA-256 of real path, device and inode: a copied or replaced repository has a different one.

    So has a `project` in one of its folders.
    """
    import hashlib

    real = os.path.realpath(common_dir)
    status = os.stat(real)
    below = f"\0{project}" if project else ""
    text = f"{real}\0{status.st_dev}\0{status.st_ino}{below}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def prepare(*parts: str) -> str:
    """Return the folder `parts` below the state directory; create it with mode 0700."""
    folder = os.path.join(path(), *parts)
    private_folders.make(folder)
    return folder


def problem(*parts: str) -> str | None:
    """Return why the content of the folder `parts` is not trustworthy, or None. Missing folders are fine."""
    folders = itertools.accumulate(parts, os.path.join, initial=path())
    return next(filter(None, (private_folders.unsafe(folder, folder=True) for folder in folders)), None)


def system_wide() -> tuple[tuple[str, bool], ...]:
    """Return paths, each with whether the file must exist. The variable adds a file, so it can only restrict.

    A missing file that was named explicitly must not count as an absent policy.
    """
    added_path = os.environ.get(POLICY, "")
    return ((SYSTEM_WIDE, False), *(((os.path.abspath(added_path), True),) if added_path else ()))


def configuration() -> str:
    """Return `$XDG_CONFIG_HOME/idumb`, else `~/.config/idumb`. A relative XDG_CONFIG_HOME is ignored."""
    return os.path.join(_base("XDG_CONFIG_HOME", ".config"), "idumb")


def user_name() -> str:
    """Return the user name, under which decisions are recorded; the user's number if there is none."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
