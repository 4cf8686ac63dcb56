"""Folders that a tool makes for itself and lets git ignore from within: caches by their tag, virtual environments."""

from __future__ import annotations

import os

from idumb.git.folder import Folder

_TAG = b"Signature: 8a477f597d28d172789f06886806bc55"


def is_cache(path: str) -> bool:
    """Whether a folder says that it is one; `path` ends with `/`."""
    return _is_tagged(path) or os.path.isfile(path + "pyvenv.cfg")


def _is_tagged(path: str) -> bool:
    tag = path + "CACHEDIR.TAG"
    if not os.path.isfile(tag):  # a pipe would wait for a writer
        return False
    try:
        with open(tag, "rb") as stream:
            return stream.read(len(_TAG)) == _TAG
    except OSError:
        return False


def among(top: Folder) -> tuple[str, ...]:
    """Paths of those that the last scan met, each with `/` at its end."""
    return tuple(sorted(prefix for prefix, folder in top.below() if prefix and ".gitignore" in folder.ignored))
