"""The messages of the commits that programs made in a checkout: all that idumb reads of the `.git` that they see.

They can put anything there, such as links, pipes and endless data. So git does not look: neither the configuration nor
alternates count, and a commit that a program packed is not read.
"""

from __future__ import annotations

import os
import stat
import zlib
from contextlib import suppress

from idumb import lazy_pattern
from idumb.git.checkouts.visible_git import GIT
from idumb.git.restore import path_state

_MOST, _LONGEST = 50, 4000
"""How many messages are read, and how many bytes of each commit and file."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OID = lazy_pattern.compile("[0-9a-f]{40}")
_PARENT = lazy_pattern.compile("(?m)^parent ([0-9a-f]{40})$")


def messages(top: int, head: str | None) -> tuple[str, ...]:
    """Return those of HEAD and its first parents above the commit `head`, the oldest first; `top` is the checkout."""
    found, oid = list[str](), _tip(top)
    while oid and oid != head and len(found) < _MOST and (commit := _commit(top, oid)):
        about, _, message = commit.partition("\n\n")
        parent = _PARENT.search(about)
        oid = parent[1] if parent else ""
        found.append(message.strip())
    return tuple(reversed(found))


def _tip(top: int) -> str:
    name = _content(top, "HEAD").decode("utf-8", "surrogateescape").strip()
    value = _content(top, name[5:]).decode("ascii", "replace").strip() if name.startswith("ref: ") else name
    return value if _OID.fullmatch(value) else ""


def _commit(top: int, oid: str) -> str:
    """Return what a commit says; "" if there is no such file."""
    with suppress(zlib.error):
        data = zlib.decompressobj().decompress(_content(top, f"objects/{oid[:2]}/{oid[2:]}"), _LONGEST)
        if data.startswith(b"commit "):
            return data.partition(b"\0")[2].decode("utf-8", "replace")
    return ""


def _content(top: int, path: str) -> bytes:
    """Return the beginning of a file of that `.git`; b"" if there is none."""
    parts = [GIT, *path.split("/")]
    with suppress(OSError, ValueError):
        if not {"", ".", ".."}.intersection(parts):
            with (
                path_state.parent(top, parts) as folder,
                open(os.open(parts[-1], _READ, dir_fd=folder), "rb") as file,
            ):
                return file.read(_LONGEST) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    return b""
