"""The trees of a checkout: what `git add -A` would record there under the user's configuration."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from idumb.app.ports.repository import Conflict
from idumb.git import tree_objects
from idumb.git.checkouts.git_folder import SHOWN, GitFolder
from idumb.git.discover import Repository
from idumb.git.own_folder import INDEX, OwnFolder
from idumb.git.shadow import Shadow
from idumb.git.trees import GitTrees

if TYPE_CHECKING:
    from idumb.app.ports.repository import Snapshot


_CHANGED = "was changed since"


class CheckoutTrees(GitTrees):
    """`user` are the trees of the user's working tree, `git` is idumb's git folder for the checkout at `top`.

    `raw` returns a tree with some of its files as git checks them out.

    Git reads only what differs from the tree that is shown. Names and objects are in the user's repository.
    """

    def __init__(
        self, user_place: Repository, user: GitTrees, git: GitFolder, top: str, name: str, raw: Callable[..., str]
    ) -> None:
        place = Repository(top, git.path, git.path, name)
        super().__init__(place, user_place, user.limit, user.paths.folder)
        self._git = git
        self._raw = raw

    @functools.cached_property
    def shadow(self) -> Shadow:
        folder = OwnFolder(self._git.path, self._git.root, self._git.objects, self._git.lenient)
        return Shadow(self._place, self._objects, self.limit(), folder, tracking=self._git)

    def begin(self) -> None:
        """Begin the next scan with the index of the tree that is shown."""
        copied = os.path.join(self._git.path, f"{INDEX}.new")
        shutil.copyfile(os.path.join(self._git.path, SHOWN), copied)
        os.replace(copied, os.path.join(self._git.path, INDEX))

    def snapshot(self, ref: str, reason: str, also: Iterable[str] = ()) -> Snapshot:
        """Keep the scanned tree alone: the index of a checkout is nobody's work."""
        return self.keep(ref, self.scan(also), reason)

    def restore(self, target: str, expected: str, paths: Iterable[str], *, force: bool = False) -> tuple[Conflict, ...]:
        """Compare what git would commit, and write what git checks out."""
        paths = tuple(paths)
        if not force:
            present = self.scan(paths)
            trees = (expected, target)
            wrong = [p for p in paths if self.entry(present, p) not in [self.entry(tree, p) for tree in trees]]
            if wrong:
                return tuple(Conflict(path, _CHANGED) for path in wrong)
        written = self._raw(target, paths)
        return super().restore(written, written, paths, force=True)

    def committed(self, head: str | None, source: str, paths: Sequence[str]) -> str:
        """Scans are what git commits already."""
        return self.overlay(tree_objects.tree_of(self.repository, head), source, paths)
