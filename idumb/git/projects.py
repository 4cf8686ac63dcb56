"""The projects in folders of a repository: which there are, and their paths."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from idumb.app.ports import Conflict
from idumb.domain.proof.ledger import Change
from idumb.domain.runs import project_key
from idumb.git import discover, git_program
from idumb.git.discover import Worktree
from idumb.system.private_folders import names_in

OUTSIDE = "../"
"""The beginning of each path outside the project's folder. No plan can declare such a path."""

Row = TypeVar("Row", Change, Conflict)


class ProjectPaths:
    """Converts between paths of a project and paths of its repository. A `/` at the end of a path stays.

    `folder` is the project's, relative to the top of the repository: in `web`, `src/a.js` is `web/src/a.js` of the
    repository, and its `README` is `../README`. For the top, "", every path stays as it is.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._prefix = f"{folder}/" if folder else ""
        self._above = folder.split("/")

    def root(self, top: str) -> str:
        """Return the project's folder in the working tree whose absolute path is `top`."""
        return os.path.join(top, self.folder) if self.folder else top

    def contains(self, path: str) -> bool:
        """Return whether a path of the repository is in the project."""
        return path.startswith(self._prefix) and path != f"{self.folder}/"

    def to_project(self, path: str) -> str:
        """Return a path of the repository as a path of the project. Outside, it begins with `../`."""
        if self.contains(path):
            return path[len(self._prefix) :]
        names = path.split("/")
        common = 0
        while common < min(len(names), len(self._above)) - 1 and names[common] == self._above[common]:
            common += 1
        return OUTSIDE * (len(self._above) - common) + "/".join(names[common:])

    def to_repository(self, path: str) -> str:
        """Return a path of the project, or outside it, as a path of the repository."""
        if not path.startswith(OUTSIDE):
            return self._prefix + path
        joined = posixpath.normpath(self._prefix + path)
        return f"{joined}/" if path.endswith("/") else joined

    def rule(self, pattern: str) -> str:
        """Return a pattern of git-ignore in the project's folder as one of the repository; a plain name fits anywhere.

        So `node_modules` is also the folder of a workspace above the project.
        """
        negation, own = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
        return f"{negation}/{self._prefix}{own.lstrip('/')}" if self.folder and "/" in own.rstrip("/") else pattern

    def inside(self, paths: Iterable[str]) -> list[str]:
        """Return paths of the project as paths of the repository. ValueError for any other: it is never written."""
        names = [*paths]
        for path in names if self.folder else ():
            if path.startswith(("/", OUTSIDE)) or ".." in path.split("/"):
                message = f"{path!r} is outside the project in {self.folder}, so idumb does not write it"
                raise ValueError(message)
        return [self._prefix + path for path in names]

    def all_to_repository(self, paths: Iterable[str]) -> list[str]:
        return [self.to_repository(path) for path in paths]

    def of_project(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return those paths of the repository that are in the project, as paths of the project."""
        return tuple(self.to_project(path) for path in paths if self.contains(path))

    def all_to_project(self, paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.to_project(path) for path in paths)

    def rows_to_project(self, rows: Iterable[Row]) -> tuple[Row, ...]:
        """Return the same changes or conflicts with paths of the project."""
        return tuple(replace(row, path=self.to_project(row.path)) for row in rows)


def with_state(worktree: Worktree) -> tuple[str, ...]:
    """Return the folders of the projects that idumb has state of, in any working tree; "" for the top."""
    names = names_in(os.path.join(worktree.common_dir, "idumb", "worktrees"))
    return tuple(sorted({project_key.parts(name)[1] for name in names}))


def below(worktree: Worktree, folder: str) -> Mapping[str, bool]:
    """Return the projects below a folder, from the top, and whether idumb has state of them.

    Those are folders with a configuration that git does not ignore, and those with state.
    """
    states = with_state(worktree)
    prefix = f"{folder}/" if folder else ""
    pattern = f":(glob){prefix}**/{discover.CONFIGURATION}"
    arguments = ["ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", pattern]
    listed = git_program.read(worktree.root, arguments, extra=git_program.PATTERNS)
    files = (os.fsdecode(path) for path in listed.out.split(b"\0") if path)
    found = {*(path.removesuffix(f"/{discover.CONFIGURATION}") for path in files), *states}
    present = (each for each in found if os.path.isdir(os.path.join(worktree.root, each)))
    inner = sorted(each for each in present if each.startswith(prefix) and each not in ("", folder))
    return {each: each in states for each in inner}
