"""Folders that only the user may enter."""

from __future__ import annotations

import contextlib
import os


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
