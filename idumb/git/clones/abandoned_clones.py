"""Clones that a killed command left: find them, keep their contents in the user's repository, remove them."""

from __future__ import annotations

import contextlib
import os
import sys

import pygit2

from idumb.app.ports.repository import BuilderCommits, Snapshot
from idumb.app.ports.workspace import AbandonedClone
from idumb.domain.errors import Refusal
from idumb.git import discover, open_repository, refs, shadow_folder
from idumb.git.clones import agent_repository, builder_clone, clone, clone_places
from idumb.git.clones.agent_repository import Objects, Unusable
from idumb.git.clones.clone import BRANCH, TAKEN
from idumb.git.discover import Repository
from idumb.git.trees import GitTrees
from idumb.system.processes import child_process, process_tree

_NO_LIMIT = lambda: sys.maxsize  # noqa: E731


class GitClones:
    """The clones of one repository, whichever command created them. Each project uses those of its `folder`."""

    def __init__(self, repository: Repository, folder: str = "") -> None:
        self._repository = repository
        self._folder = folder

    def require_place(self) -> None:
        """Refusal `clones.unusable` if no clone can be created."""
        place = clone.place_of(self._repository)
        clone_places.prepare(place, self._repository.common_dir)
        clone_places.tidy(place)

    def place(self) -> str:
        """The folder of the clones."""
        return clone.place_of(self._repository)

    def abandoned(self) -> tuple[AbandonedClone, ...]:
        """The existing clones, also those of older versions. Some may be in use."""
        if self._repository.worktree_id == clone.WORKTREE:
            return ()
        paths = clone_places.clones(self._repository.root, self._repository.common_dir)
        folders = dict.fromkeys(path.removesuffix(TAKEN) for path in paths)
        return tuple(AbandonedClone(os.path.basename(path), path) for path in folders)

    def keep(self, abandoned: AbandonedClone, ref: str, reason: str) -> Snapshot | None:
        """`abandoned` may be named by the project's folder in it."""
        path = abandoned.path.removesuffix(f"/{self._folder}")
        self._repository.guard()
        process_tree.end_all(
            child_process.PLACE_COOKIE,
            child_process.run_cookies(abandoned.run, path)[child_process.PLACE_COOKIE],
        )
        if not os.path.isdir(path) or os.path.islink(path):
            return None
        user = GitTrees(self._repository)
        for git_folder in (path + TAKEN, os.path.join(path, ".git")):
            with contextlib.suppress(Unusable):  # the files are kept in any case
                self._keep_commits(user, git_folder, f"{ref}-commits")
        head = user.repository
        # An agent can leave anything in its git folder, so git runs with a folder of idumb's own.
        builder_clone.move_git_folder_aside(path)
        clone.make_git_folder(self._repository, path, open_repository.head_of(head))
        trees = GitTrees(discover.at(path), self._repository, self._repository, _NO_LIMIT)
        return trees.snapshot(ref, reason)

    def _keep_commits(self, user: GitTrees, aside: str, ref: str) -> None:
        """Bring home the commits that an agent made there, if any."""
        if not os.path.isdir(aside) or os.path.islink(aside):
            return
        agent_repository.require_plain(aside, open_repository.alternates(open_repository.lenders(self._repository)))
        last = agent_repository.tip(aside, BRANCH)
        if last is None or pygit2.Oid(hex=last) in user.repository.odb:
            return
        objects = Objects(builder_clone.odb_of(self._repository, aside))
        commits = agent_repository.chain(
            objects, last, None, lambda commit: pygit2.Oid(hex=commit) in user.repository.odb
        )
        base = commits[0].parents[0] if commits and commits[0].parents else None
        builder_clone.bring_home(user, objects, BuilderCommits(base, last, commits))
        refs.move(user.repository, self._repository, ref, last)

    def remove(self, abandoned: AbandonedClone) -> None:
        self._repository.guard()
        clone_places.require_plain(os.path.dirname(abandoned.path))
        shadow_folder.discard(abandoned.path, self._repository)
        clone.remove(abandoned.path)
        if os.path.lexists(abandoned.path):
            raise Refusal(
                "git.clone-stays",
                f"{abandoned.path} could not be removed.",
                hint=f"rm -rf {abandoned.path}",
                details={"path": abandoned.path},
            )
        clone_places.tidy(self.place())
