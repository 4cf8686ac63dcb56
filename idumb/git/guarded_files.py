"""Git's own files that decide what git runs, filters or ignores: no task may change them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping

from idumb.git.discover import Repository

_SHARED = ("config", "info/attributes", "info/exclude", "info/grafts", "objects/info/alternates")
_OWN = ("config.worktree", "commondir", "gitdir")


def digests(place: Repository) -> Mapping[str, str]:
    """Name, as `.git/hooks/pre-commit`, to a hash of mode and bytes; what is not there is left out."""
    found = {}
    for name, path in _files(place):
        known = _digest(path)
        if known is not None:
            found[f".git/{name}"] = known
    if os.path.lexists(os.path.join(place.git_dir, "index")):
        # Its bytes are the user's to change; without it everything that was staged is gone.
        found[".git/index"] = "is there"
    return found


def outside(path: str) -> Mapping[str, str]:
    """The same of one file outside git's folder, named as people write it: `~/.config/git/ignore`."""
    known = _digest(path)
    if known is None:
        return {}
    home = os.path.expanduser("~")
    return {f"~{path[len(home) :]}" if path.startswith(home + os.sep) else path: known}


def _files(place: Repository) -> Iterator[tuple[str, str]]:
    for name in _SHARED:
        yield name, os.path.join(place.common_dir, name)
    for name in _OWN:
        yield name, os.path.join(place.git_dir, name)
    hooks = os.path.join(place.common_dir, "hooks")
    try:
        names = sorted(os.listdir(hooks))
    except OSError:
        return
    for name in names:
        if not name.endswith(".sample"):
            yield f"hooks/{name}", os.path.join(hooks, name)


def _digest(path: str) -> str | None:
    mode, link, data = 0, "", b""
    try:
        mode = os.lstat(path).st_mode
        link = os.readlink(path) if os.path.islink(path) else ""
        # Nothing else is opened: a pipe would wait for a writer.
        if os.path.isfile(path):
            with open(path, "rb") as stream:
                data = stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        # Git cannot read it either. Any other failure must not pass for a change.
        if os.access(path, os.R_OK):
            raise
        data = b"unreadable"
    return hashlib.sha256(f"{mode:o} {link}\0".encode("utf-8", "surrogateescape") + data).hexdigest()
