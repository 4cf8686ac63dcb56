"""The git folder of idumb's own for a checkout, which no program uses: git never searches for one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from idumb.git import git_program
from idumb.git.checkouts.places import Odd
from idumb.git.checkouts.user_git import UserGit
from idumb.git.own_folder import EXCLUDE, OwnFolder
from idumb.system.files import private_folders

SHOWN = "shown"
"""The index of the tree that is shown."""
_CRYPT = "git-crypt"
_OPTIONAL = frozenset(
    ("info/attributes", "info/sparse-checkout", "info/user-attributes", "info/user-excludes", "shallow")
)


class GitFolder(OwnFolder):
    """`root` returns the working tree once it has made sure that it is the right folder; otherwise it raises Odd.

    `user` is what counts of the user's configuration, read before the first program started.
    """

    index = SHOWN

    def __init__(self, path: str, root: Callable[[], str], objects: str, user: UserGit) -> None:
        super().__init__(path, root, objects, user.optional_filters)
        self.user = user
        self._written: tuple[int, ...] | None = None
        self.prepare()

    def without_required_filters(self, arguments: Sequence[str], stdin: bytes = b"") -> git_program.Result:
        """Run a command on the files of the tree that is shown. If a filter fails, a file is as in the commit.

        Nothing is forced to disk, because after a power cut the folder is made again.
        """
        self.remove(f"{SHOWN}.lock")  # of a git that was killed
        self._require_own_index()
        result = self.git(["-c", "core.fsync=none", *self.lenient, *arguments], stdin)
        self._written = self.stamp()
        return result

    def _require_own_index(self) -> None:
        """Raise Odd if a program wrote the index: it could say that a file is as in the tree."""
        present = self.stamp()
        if present is not None and self._written not in (None, present):
            raise Odd(SHOWN)

    def hide(self, paths: Sequence[str]) -> bytes:
        """Let git ignore untracked paths; return all rules of that file."""
        rules = self.user.files.get(EXCLUDE, b"")
        escaped = (re.sub(r"([\\*?[ ])", r"\\\1", path) for path in paths if "\n" not in path)
        rules += b"".join(b"\n/%b" % os.fsencode(path) for path in escaped) + b"\n"
        self.write(EXCLUDE, rules)
        return rules

    def prepare(self) -> None:
        """Write what git needs, unless it is there. If any of it changed, every file is checked out again.

        What a killed command had not written to its end is removed.
        """
        for name in os.listdir(self.path):
            if name.endswith(".tmp"):
                self.remove(name)
        for name in ("info", "refs"):
            private_folders.make(os.path.join(self.path, name))
        files = {"HEAD": b"ref: refs/heads/none\n", **self.user.in_folder(self.path, {"core.safecrlf": "false"})}
        files.pop(EXCLUDE, None)  # `hide` writes it
        if wrong := self.differing({**dict.fromkeys(_OPTIONAL), **files}):
            self.remove(SHOWN)
            self.put(wrong)
        keys = os.path.join(os.path.dirname(self.objects), _CRYPT)
        if os.path.isdir(keys) and not os.path.lexists(os.path.join(self.path, _CRYPT)):
            os.symlink(keys, os.path.join(self.path, _CRYPT))
