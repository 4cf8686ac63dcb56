"""A git folder of idumb's own, for a working tree that has none, or another one: its files, its lock, and git in it.

It has an index and a configuration of its own, and shares the object store with the user's folder. git reads neither
the user's nor the system's configuration there: what counts of it is copied into the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from idumb.domain import errors
from idumb.domain.action import Action
from idumb.git import git_program, guarded_files
from idumb.git.discover import Worktree
from idumb.system import clock, escaping, private_folders

INDEX, EXCLUDE = "index", "info/exclude"
NO_BRANCH = b"ref: refs/heads/none\n"
"""HEAD of a folder that has no branch."""
PLAIN = {"core.repositoryformatversion": "0", "core.bare": "false"}
"""The settings without which a folder is none of git's."""
RAW = b"* -text -eol -filter -ident -working-tree-encoding\n"
"""Attributes by which git stores and writes a file's bytes as they are."""
_NAMES = ("core.precomposeunicode", "core.protectntfs", "core.protecthfs")
"""Settings by which git decides how names of files are stored, and which names it refuses."""
_LOCK = "lock"
_DIGEST = 20  # bytes
_PAUSE = 0.1  # seconds
_TRIES = 300


class GitDir:
    """The folder at `path`. `root` returns its working tree, and may raise; `objects` is the store of objects.

    `index` is the file that git uses. By the options `lenient`, a file is as in the commit if a filter that is required
    cannot run.
    """

    index = INDEX

    def __init__(self, path: str, root: Callable[[], str], objects: str, lenient: Sequence[str] = ()) -> None:
        self.path = path
        self.root = root
        self.objects = objects
        self.lenient = lenient
        self._lock: tuple[int, ...] = ()

    def read(self, name: str) -> str:
        """Return the text of a file in the folder, decoded as names are; "" if there is none."""
        return os.fsdecode(guarded_files.content(os.path.join(self.path, name)))

    def write(self, name: str, data: str | bytes) -> None:
        with open(
            os.path.join(self.path, name), "wb", opener=lambda path, flags: os.open(path, flags, 0o600)
        ) as stream:
            stream.write(os.fsencode(data))

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.path, name))

    def differing(self, files: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
        """Return those of these files that do not have these bytes, or are there and should not (None)."""
        return {name: data for name, data in files.items() if self._content(name) != data}

    def put(self, files: Mapping[str, bytes | None]) -> None:
        """Write these files, or remove them (None)."""
        for name, data in files.items():
            self.remove(name) if data is None else self.write(name, data)

    def _content(self, name: str) -> bytes | None:
        place = os.path.join(self.path, name)
        return guarded_files.content(place) if os.path.isfile(place) else None

    def stamp(self) -> tuple[int, ...] | None:
        """Return what shows that somebody wrote the index."""
        return guarded_files.stat_key(os.path.join(self.path, self.index))

    def is_whole(self) -> bool:
        """Return whether the index ends with the digest of its bytes. git does not look, and would overlook files."""
        data = guarded_files.content(os.path.join(self.path, self.index))
        return hashlib.sha1(data[:-_DIGEST], usedforsecurity=False).digest() == data[-_DIGEST:]

    def variables(self) -> dict[str, str]:
        """Return the variables by which git works in this folder, and in no other."""
        return {
            "GIT_DIR": self.path,
            "GIT_WORK_TREE": self.root(),
            "GIT_INDEX_FILE": os.path.join(self.path, self.index),
            "GIT_OBJECT_DIRECTORY": self.objects,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def git(
        self, arguments: Sequence[str], stdin: bytes = b"", *, variables: Mapping[str, str] | None = None
    ) -> git_program.Result:
        own = self.variables()
        return git_program.write(own["GIT_WORK_TREE"], arguments, stdin, {**own, **(variables or {})}, keep=self._lock)

    def required(self, arguments: Sequence[str], stdin: bytes = b"", **options: Any) -> bytes:
        """Return the output of a command that must succeed; otherwise Refusal `git.failed`."""
        return git_program.required(arguments, self.git(arguments, stdin, **options))

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others away who use the index. A git that outlives us keeps them away until it ends.

        Refusal `git.scanning` if another one takes too long.
        """
        descriptor = os.open(os.path.join(self.path, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._wait_for(descriptor)
            self._lock = (descriptor,)
            self.remove(f"{INDEX}.lock")  # of a git that was killed
            yield
        finally:
            self._lock = ()
            os.close(descriptor)

    def _wait_for(self, descriptor: int) -> None:
        for _ in range(_TRIES):
            if private_folders.lock_descriptor(descriptor):
                return
            clock.SystemClock().pause(_PAUSE)
        git_program.refuse_pipes(self.root())
        raise errors.Refusal(
            "git.scanning",
            f"Another command saves {self.root()} since {_TRIES * _PAUSE:.0f} seconds. Wait for it, then run"
            " the command again.",
            hint=Action("status"),
        )


def raw_files(path: str, user: Worktree) -> dict[str, bytes | None]:
    """Return the files of a folder at `path`, which exists, in which git stores bytes as they are.

    It has the user's rules of what is ignored and of names, and the facts about the file system. Refusal
    `git.rules-unreadable`.
    """
    known = guarded_files.of_repository(user).configuration
    # As git asks when it makes a repository. A copied configuration may say otherwise, and git would hide a file.
    is_one_case = os.path.lexists(os.path.join(path, _LOCK.upper()))
    settings = {
        **PLAIN,
        "core.excludesfile": known.ignores[-1],
        "core.ignorecase": str(is_one_case).lower(),
    }
    settings |= {name: value for name in _NAMES if (value := known.effective.get(name)) is not None}
    guarded_files.user_rules(known)  # git reads the file itself, and says nothing if it cannot
    rules = guarded_files.rules(os.path.join(user.common_dir, EXCLUDE))
    return {
        "HEAD": NO_BRANCH,
        "config": escaping.git_configuration(settings),
        "info/attributes": RAW,
        EXCLUDE: rules or None,
    }
