"""Which folders are caches or virtual environments: a tool marks them, and ignores everything in them."""

from __future__ import annotations

import os
import re
import stat

from idumb.domain.paths import IGNORE_FILE

_TAG = b"Signature: 8a477f597d28d172789f06886806bc55"
_TOOL = re.compile(rb"#.*\b(created|generated) by \S", re.IGNORECASE)
_MOST = 4096


def is_cache(path: str) -> bool:
    """Return whether the folder marks itself as a cache; `path` ends with `/`."""
    return _is_tagged(path) or os.path.isfile(path + "pyvenv.cfg") or _is_signed(path)


def is_in_both(path: str, other: str) -> bool:
    """Return whether two folders, each ending with `/`, hold the same short `.gitignore`."""
    rules = _rules(path)
    return rules is not None and rules == _rules(other)


def _is_signed(path: str) -> bool:
    """Return whether its `.gitignore` starts with a tool's own comment and ignores everything and nothing else."""
    lines = [line.strip() for line in (_rules(path) or b"").splitlines()]
    if not lines or not _TOOL.match(lines[0]):
        return False
    return [line for line in lines if line and not line.startswith(b"#")] == [b"*"]


def _rules(path: str) -> bytes | None:
    """Return the `.gitignore` of a folder; nothing if it is long or not a regular file."""
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
    if not os.path.isfile(tag):  # a pipe would block until a writer comes
        return False
    try:
        with open(tag, "rb") as stream:
            return stream.read(len(_TAG)) == _TAG
    except OSError:
        return False
