"""Which untracked paths are ignored. git decides; it is asked about unknown paths only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from idumb.git import git_program, guarded_files
from idumb.git.discover import Repository

Signature = tuple[tuple[int, ...] | None, ...]


class Tracked:
    """The paths of the index. git lists them at the first question after a change."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._signature: Signature | None = None
        self._submodules: Mapping[str, str] | None = None
        self._paths: frozenset[str] = frozenset()
        self._folders: frozenset[str] = frozenset()

    def signature(self) -> Signature:
        return signature([os.path.join(self._repository.git_dir, "index")])

    def refresh(self) -> None:
        """Check whether the index changed. Call this before asking about paths."""
        present = self.signature()
        if present != self._signature:
            self._submodules, self._signature = None, present

    def holds(self, path: str) -> bool:
        """Return whether a tracked file is at or below this path."""
        self._listed()
        return path in self._paths or path in self._folders

    def holds_below(self, path: str) -> bool:
        self._listed()
        return path in self._folders

    def submodule(self, path: str) -> str | None:
        """Return the commit that the index records for a submodule at this path."""
        return self._listed().get(path)

    def submodules(self) -> tuple[str, ...]:
        """Return all submodules of the index."""
        return tuple(sorted(self._listed()))

    def _listed(self) -> Mapping[str, str]:
        """Read paths and folders if that is due. Return each submodule with its commit."""
        if self._submodules is None:
            rows = git_program.output(self._repository.root, ["ls-files", "-s", "-z"]).split(b"\0")
            pairs = [row.partition(b"\t")[::2] for row in rows if row]
            self._paths = frozenset(os.fsdecode(path) for _, path in pairs)
            self._folders = frozenset(_folders(self._paths))
            self._submodules = {
                os.fsdecode(path): meta[7:47].decode("ascii") for meta, path in pairs if meta.startswith(b"160000")
            }
        return self._submodules


def _folders(paths: Iterable[str]) -> set[str]:
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def ignored(root: str, paths: Iterable[str], rules: Repository | None = None) -> frozenset[str]:
    """Return the paths that git's ignore rules cover, tracked or not.

    `rules` is the repository whose external rules apply, if it is another one: whoever works in a clone can write rules
    into the clone's git folder.
    """
    return frozenset(os.fsdecode(path[2:]) for path in _checked(root, paths, rules) if path)


def deciding(root: str, paths: Iterable[str], rules: Repository | None = None) -> dict[str, tuple[str, str]]:
    """Return each path that a rule covers, with the rule's file, relative within the working tree, and its text."""
    rows = _checked(root, paths, rules, "--verbose")  # file, line, pattern and path, in turn
    found = zip(rows[::4], rows[2::4], rows[3::4], strict=False)
    return {os.fsdecode(path[2:]): (os.fsdecode(file), os.fsdecode(rule)) for file, rule, path in found}


def _checked(root: str, paths: Iterable[str], rules: Repository | None, *options: str) -> list[bytes]:
    names = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    if not names:
        return []
    arguments = ["check-ignore", "--no-index", *options, "-z", "--stdin"]
    # This command does not support literal paths; `./` keeps a leading `:` from being magic.
    extra = {"GIT_LITERAL_PATHSPECS": "0"}
    if rules is not None and rules.root != root:
        extra |= {"GIT_DIR": rules.git_dir, "GIT_COMMON_DIR": rules.common_dir, "GIT_WORK_TREE": root}
    result = git_program.read(root, arguments, names, extra)
    if result.status not in {0, 1}:
        raise git_program.failure(arguments, result)
    return result.out.split(b"\0")


def signature(paths: Iterable[str]) -> Signature:
    """Return the stat of each file, so that a change is noticed without reading it."""
    return tuple(guarded_files.stat_key(path) for path in paths)
