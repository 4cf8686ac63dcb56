"""The user's configuration directory: what a person set up by hand, where no repository can put anything."""

from __future__ import annotations

import os


def path() -> str:
    """`$XDG_CONFIG_HOME/idumb`, else `~/.config/idumb`. A relative XDG_CONFIG_HOME does not count."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "idumb")
