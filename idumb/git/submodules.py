"""The submodules of a tree, as far as the user has their commits: their files, and the repositories that store them."""

from __future__ import annotations

import functools
import os
import shlex
from typing import NamedTuple

import pygit2

from idumb.domain import errors, paths
from idumb.git import discover, open_repository
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects
from idumb.git.objects.tree_objects import Item


class Submodule(NamedTuple):
    """Where the user has a submodule."""

    place: Repository
    objects: pygit2.Repository


class Submodules:
    """Those of a tree, by path. `root` is the user's working tree."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._present: dict[str, Submodule] = {}
        self._empty: dict[str, str] = {}

    @property
    def missing(self) -> tuple[str, ...]:
        """Return a sentence for each submodule without files."""
        return tuple(self._empty[path] for path in sorted(self._empty))

    def __getitem__(self, path: str) -> Submodule:
        return self._present[path]

    def forget(self, path: str) -> None:
        """Forget a submodule, and those in it."""
        for known in (self._present, self._empty):
            for inner in [each for each in known if f"{each}/".startswith(f"{path}/")]:
                del known[inner]

    def files(self, path: str, item: Item) -> list[tuple[str, Item]] | None:
        """Return the files of a submodule at its recorded commit, and of those in it; None if the user lacks it."""
        try:
            place = discover.at(os.path.join(self._root, path))
            repository = open_repository.repository(place)
            tree = tree_objects.root_of(repository, pygit2.Oid(item.oid))
        except (errors.Refusal, KeyError):
            outermost = next((folder for folder in paths.folders_above(path) if folder in self._present), path)
            line = f"git submodule update --init --recursive {shlex.quote(outermost)}"
            self._empty[path] = f"submodule {path}: this machine does not have its commit {item.oid.hex()[:10]}; {line}"
            return None
        self._present[path] = Submodule(place, repository)
        files: list[tuple[str, Item]] = []
        for name, _, row in tree_objects.differences(functools.partial(tree_objects.rows, repository), None, tree.raw):
            if name.endswith("/") or row is None:
                continue
            below = self.files(f"{path}/{name}", row) if row.mode == tree_objects.SUBMODULE else None
            files += [(f"{path}/{name}", row)] if below is None else below
        return files

    def owner(self, path: str) -> str:
        """Return the path of the innermost submodule that has a file, "" for a file of the repository itself."""
        owners = [folder for folder in paths.folders_above(path) if folder in self._present]
        return owners[-1] if owners else ""
