"""The git folder of our own in which a working tree is scanned: its files, its lock, and git in it.

It has an index, a configuration and attributes of its own, and shares only the object store with the user's folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from idumb.domain import errors
from idumb.git import git_program, guarded_files
from idumb.git.discover import Repository
from idumb.system import clock
from idumb.system.files import file_locks, private_folders

INDEX = "index"
_FILES = {
    "config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
    "HEAD": "ref: refs/heads/none\n",
    "info/attributes": "* -text -eol -filter -ident -working-tree-encoding\n",
}
"""Compared before each use: a power cut may empty them. By the attributes, git stores a file's bytes as they are."""
_PAUSE = 0.1  # seconds
_TRIES = 300
SETTINGS: tuple[str, ...] = (
    "core.fileMode=true",  # a restore compares the mode that a file has
    "core.symlinks=true",
    "core.ignoreStat=false",
    "core.sparseCheckout=false",
    "core.splitIndex=false",
    "core.trustctime=true",
    "core.checkStat=default",
)


class OwnFolder:
    """A git folder of idumb's own at `path`, its files, and what runs git there."""

    git: Callable[..., git_program.Result]

    def __init__(self, path: str) -> None:
        self.path = path

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

    def required(self, arguments: Sequence[str], stdin: bytes = b"", **options: Any) -> bytes:
        """Return the output of a command that must succeed; otherwise Refusal `git.failed`."""
        result = self.git(arguments, stdin, **options)
        if result.status != 0:
            raise git_program.failure(arguments, result)
        return result.out


class ShadowFolder(OwnFolder):
    """The git folder for the working tree of `place`. Objects go to `objects`, whose ignore rules apply."""

    has_tracked = False
    """Whether the index begins with everything that is tracked, also with what git ignores."""

    def __init__(self, place: Repository, objects: Repository) -> None:
        super().__init__(os.path.join(objects.common_dir, "idumb", "shadow", place.worktree_id))
        self._place = place
        self._store = objects
        self._guarded = guarded_files.of_repository(objects)
        self._excludes = os.path.join(objects.common_dir, "info", "exclude")
        self._lock = -1

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other scans of this working tree away. A git that outlives us keeps them away until it ends.

        Refusal `git.scanning` if another scan takes too long.
        """
        self._prepare()
        descriptor = os.open(os.path.join(self.path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._wait_for(descriptor)
            self._lock = descriptor
            self.remove(f"{INDEX}.lock")  # of a git that was killed
            yield
        finally:
            self._lock = -1
            os.close(descriptor)

    def _wait_for(self, descriptor: int) -> None:
        for _ in range(_TRIES):
            if file_locks.lock(descriptor):
                return
            clock.SystemClock().pause(_PAUSE)
        git_program.refuse_pipes(self._place.root)
        raise errors.Refusal(
            "git.scanning",
            f"Another command saves {self._place.root} since {_TRIES * _PAUSE:.0f} seconds.",
            hint="idumb status; wait for it, then run the command again",
        )

    def signature(self) -> tuple[int, ...] | None:
        """Return what shows that another process wrote the index."""
        return guarded_files.stat_key(os.path.join(self.path, INDEX))

    def tracked_signature(self) -> tuple[int, ...] | None:
        """Return what shows that other files may be tracked."""
        return guarded_files.stat_key(os.path.join(self._place.git_dir, INDEX))

    def tracked(self, arguments: Sequence[str]) -> bytes:
        """Return the output of a command of the git that knows which files are tracked; nothing if it fails."""
        return git_program.read(self._place.root, arguments).out

    def by_rules(self) -> list[str]:
        """Return the options of `git ls-files` for the rules in the tree, the user's own, and the repository's."""
        excludes = [f"--exclude-from={self._excludes}"] if os.path.isfile(self._excludes) else []
        return ["--exclude-standard", *excludes]

    def git(self, arguments: Sequence[str], stdin: bytes = b"", *, strict: bool = False) -> git_program.Result:  # noqa: ARG002
        """Run git. Unless it is `strict`, a file is as in the commit if a required filter cannot run."""
        variables = {
            "GIT_DIR": self.path,
            "GIT_WORK_TREE": self._place.root,
            "GIT_OBJECT_DIRECTORY": os.path.join(self._store.common_dir, "objects"),
        }
        # As git asks when it makes a repository. A copied configuration may say otherwise, and git would hide a file.
        case = "true" if os.path.lexists(os.path.join(self.path, "CoNfIg")) else "false"
        known = self._guarded.configuration
        settings = [*SETTINGS, f"core.excludesFile={known.ignores[-1]}", f"core.ignoreCase={case}"]
        if (composed := known.effective.get("core.precomposeunicode")) is not None:
            settings.append(f"core.precomposeUnicode={composed}")
        options = [word for setting in settings for word in ("-c", setting)]
        command = [*options, *arguments]
        return git_program.write(self._place.root, command, stdin, variables, keep=(self._lock,))

    def _prepare(self) -> None:
        if all(self.read(name) == text for name, text in _FILES.items()):
            return
        for name in ("info", "refs"):
            private_folders.make(os.path.join(self.path, name), root=self._store.common_dir)
        for name, text in _FILES.items():
            self.write(name, text)
