"""The submodules of a checkout: their files at the recorded commits, as far as the user has these."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping
from functools import partial

import pygit2

from idumb.domain import errors
from idumb.domain.proof.ledger import Entry
from idumb.git import discover, open_repository
from idumb.git.checkouts.git_folder import GitFolder
from idumb.git.checkouts.places import Odd
from idumb.git.checkouts.tree_files import TreeFiles
from idumb.git.checkouts.user_git import UserGit
from idumb.git.objects import tree_objects
from idumb.system.files import private_folders


class Submodules:
    """Those of the checkout whose git folder is `git`; `user` is the root of the user's working tree.

    `missing` has a sentence for each submodule without files.
    """

    def __init__(self, git: GitFolder, user: str, modules: str, settings: UserGit) -> None:
        self._git = git
        self._user = user
        self._modules = modules
        self._settings = settings
        self._shown: dict[str, TreeFiles] = {}
        self.missing: tuple[str, ...] = ()

    def show(self, links: Mapping[str, str]) -> None:
        """Check out each submodule, path to commit, and those in it."""
        self._shown, missing, waiting = {}, dict[str, str](), [*links.items()]
        for path, commit in waiting:
            repository = self._repository(path, commit)
            if repository is None:
                outermost = next((each for each in self._shown if f"{path}/".startswith(f"{each}/")), path)
                line = f"git submodule update --init --recursive {shlex.quote(outermost)}"
                missing[path] = f"submodule {path}: this machine does not have its commit {commit[:10]}; {line}"
                continue
            name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
            place = os.path.join(self._git.path, "modules", name)
            private_folders.make(place)
            objects = os.path.join(repository.path, "objects")
            files = TreeFiles(GitFolder(place, partial(self._root, path), objects, self._settings), repository)
            files.show(tree_objects.tree_of(repository, commit))
            self._shown[path] = files
            waiting += [(f"{path}/{inner}", oid) for inner, oid in files.submodules().items()]
        self.missing = tuple(missing[path] for path in sorted(missing))

    def forget(self) -> None:
        """Expect that the checkout is empty."""
        private_folders.remove_tree(os.path.join(self._git.path, "modules"))

    def tracked(self) -> dict[str, Entry]:
        return {f"{path}/{name}": item for path, files in self._shown.items() for name, item in files.tracked.items()}

    def restore(self) -> list[str]:
        return [f"{path}/{name}" for path, files in self._shown.items() for name in files.restore()]

    def _root(self, path: str) -> str:
        """Return the folder of a submodule. Raises Odd if a program put a link there."""
        place = os.path.join(self._git.root(), path)
        if os.path.realpath(place) != place or not os.path.isdir(place):
            raise Odd(place)
        return place

    def _repository(self, path: str, commit: str) -> pygit2.Repository | None:
        """Return the user's repository of a submodule if it has the commit."""
        for place in (os.path.join(self._user, path), os.path.join(self._modules, path)):
            try:
                is_tree = os.path.lexists(os.path.join(place, ".git"))
                repository = open_repository.repository(discover.at(place)) if is_tree else pygit2.Repository(place)
                tree_objects.tree_of(repository, commit)
            except (errors.Refusal, KeyError, ValueError, pygit2.GitError, OSError):
                continue
            return repository
        return None
