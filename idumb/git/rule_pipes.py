"""Pipes in the place of git's rules: git would wait for one forever."""

from __future__ import annotations

import os
import shlex
import stat

from idumb.domain import errors

_RULES = frozenset((".gitignore", ".gitattributes"))


def refuse(root: str) -> None:
    """Refusal `git.waits-for-pipe` if a file of rules in the working tree at `root` is a pipe."""
    for here, below, names in os.walk(root):
        below[:] = [name for name in below if name != ".git"]
        for path in (os.path.join(here, name) for name in names if name in _RULES):
            if _is_pipe(path):
                raise errors.Refusal(
                    "git.waits-for-pipe",
                    f"{path} is a pipe, and git would wait for it forever.",
                    hint=f"rm {shlex.quote(path)}, then run the command again",
                    details={"path": path},
                )


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.lstat(path).st_mode)
    except OSError:  # it vanished
        return False
