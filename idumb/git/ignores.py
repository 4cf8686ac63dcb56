"""Which untracked paths are ignored: git decides, asked about unknown paths only."""

from __future__ import annotations

import os
from collections.abc import Iterable

from idumb.git import program
from idumb.git.discover import Repository

Signature = tuple[tuple[int, ...] | None, ...]


# So many questions are answered by looking into the raw index; with more, parsing it is cheaper.
_RAW_QUESTIONS = 64
_SUBMODULE_MODE = b"\0\0\xe0\0"


class Tracked:
    """The paths of the index. Git lists them only when the raw bytes of the index cannot rule a path out."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._signature: Signature | None = None
        self._raw: bytes | None = None
        self._asked = 0
        self._paths: frozenset[str] = frozenset()
        self._folders: frozenset[str] = frozenset()
        self._submodules: dict[str, str] = {}

    def signature(self) -> Signature:
        return signature([os.path.join(self._repository.git_dir, "index")])

    def refresh(self) -> None:
        """Look whether the index changed. To be called before questions are asked."""
        present = self.signature()
        if present != self._signature:
            self._raw = self._read()
            self._asked = 0
            if self._raw is None:
                self._load()
            self._signature = present

    def holds(self, path: str) -> bool:
        """Whether a tracked file is at or below this path."""
        if self._ruled_out(path, b"\0", b"/"):
            return False
        return path in self._paths or path in self._folders

    def holds_below(self, path: str) -> bool:
        return not self._ruled_out(path, b"/") and path in self._folders

    def submodule(self, path: str) -> str | None:
        """The commit that the index records for a submodule at this path."""
        return None if self._ruled_out(path, b"\0") else self._submodules.get(path)

    def submodules(self) -> tuple[str, ...]:
        """All that the index records; where its raw bytes hold no such mode, git is not asked."""
        if self._raw is not None:
            if _SUBMODULE_MODE not in self._raw:
                return ()
            self._raw = None
            self._load()
        return tuple(sorted(self._submodules))

    def _ruled_out(self, path: str, *ends: bytes) -> bool:
        if self._raw is None:
            return False
        self._asked += 1
        name = os.fsencode(path)
        if self._asked <= _RAW_QUESTIONS and not any(name + end in self._raw for end in ends):
            return True
        self._raw = None
        self._load()
        return False

    def _read(self) -> bytes | None:
        """The index, where it holds whole paths: versions 2 and 3, not split in two files."""
        try:
            with open(os.path.join(self._repository.git_dir, "index"), "rb") as stream:
                data = stream.read()
        except FileNotFoundError:
            return b""
        return data if data[4:8] in {b"\0\0\0\2", b"\0\0\0\3"} and b"link" not in data else None

    def _load(self) -> None:
        rows = program.output(self._repository.root, ["ls-files", "-s", "-z"]).split(b"\0")
        pairs = [row.partition(b"\t")[::2] for row in rows if row]
        self._submodules = {
            os.fsdecode(path): meta[7:47].decode("ascii") for meta, path in pairs if meta.startswith(b"160000")
        }
        self._paths = frozenset(os.fsdecode(path) for _, path in pairs)
        self._folders = frozenset(_folders(self._paths))


def _folders(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def ignored(root: str, paths: Iterable[str]) -> frozenset[str]:
    """Those of the paths that git's ignore rules cover, tracked or not."""
    given = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    if not given:
        return frozenset()
    arguments = ["check-ignore", "--no-index", "-z", "--stdin"]
    # The one command that knows no literal paths; `./` keeps a leading `:` from meaning anything.
    result = program.read(root, arguments, given, {"GIT_LITERAL_PATHSPECS": "0"})
    if result.status not in {0, 1}:
        raise program.failure(arguments, result)
    return frozenset(os.fsdecode(path[2:]) for path in result.out.split(b"\0") if path)


def rule_files(repository: Repository) -> tuple[str, ...]:
    """Files outside the work tree that decide what is ignored, whether they exist or not."""
    result = program.read(repository.root, ["config", "--path", "--get", "core.excludesFile"])
    configured = os.fsdecode(result.out.rstrip(b"\n"))
    surroundings = program.environment(repository.root)
    home = surroundings.get("HOME", "")
    xdg = surroundings.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return (
        os.path.join(repository.common_dir, "info", "exclude"),
        os.path.join(repository.common_dir, "config"),
        os.path.join(repository.git_dir, "config.worktree"),
        surroundings.get("GIT_CONFIG_GLOBAL") or os.path.join(home, ".gitconfig"),
        os.path.join(xdg, "git", "config"),
        os.path.join(repository.root, configured) if configured else os.path.join(xdg, "git", "ignore"),
    )


def signature(paths: Iterable[str]) -> Signature:
    """What stat says of each file, so that a change can be noticed without reading it."""
    return tuple(stat_key(path) for path in paths)


def stat_key(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)
