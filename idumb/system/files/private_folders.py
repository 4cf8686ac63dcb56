"""Folders that only the user may enter."""

from __future__ import annotations

import contextlib
import os


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
