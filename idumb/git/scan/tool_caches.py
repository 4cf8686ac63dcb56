"""Folders that a tool makes for itself and lets git ignore from within: caches, reports, virtual environments."""

from __future__ import annotations

import os
import re
import stat

from idumb.domain.paths import IGNORE_FILE
from idumb.git.scan.folder_state import Folder

_TAG = b"Signature: 8a477f597d28d172789f06886806bc55"
_TOOL = re.compile(rb"#.*\b(created|generated) by \S", re.IGNORECASE)
_MOST = 4096


def is_cache(path: str) -> bool:
    """Whether a folder says that it is one; `path` ends with `/`."""
    return _is_tagged(path) or os.path.isfile(path + "pyvenv.cfg") or _is_signed(path)


def is_in_both(path: str, other: str) -> bool:
    """Whether two folders, each ending with `/`, hold the same short `.gitignore`."""
    rules = _rules(path)
    return rules is not None and rules == _rules(other)


def _is_signed(path: str) -> bool:
    """Whether its `.gitignore` begins with the comment that a tool made it, and ignores all and nothing else."""
    lines = [line.strip() for line in (_rules(path) or b"").splitlines()]
    if not lines or not _TOOL.match(lines[0]):
        return False
    return [line for line in lines if line and not line.startswith(b"#")] == [b"*"]


def _rules(path: str) -> bytes | None:
    """The `.gitignore` of a folder; none where it is long or no file, for a pipe would wait for a writer."""
    file = path + IGNORE_FILE
    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            return None
        with open(file, "rb") as stream:
            found = stream.read(_MOST + 1)
    except OSError:
        return None
    return found if len(found) <= _MOST else None


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
    return tuple(sorted(prefix for prefix, folder in top.below() if prefix and IGNORE_FILE in folder.ignored))
