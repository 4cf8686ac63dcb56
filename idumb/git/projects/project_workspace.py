"""Where tasks of a project in a subfolder run: the project's folder in a working tree or in a clone of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from idumb.app.ports.repository import BuilderCommits, Conflict, Snapshot
from idumb.app.ports.workspace import AbandonedClone
from idumb.git.clones.abandoned_clones import GitClones
from idumb.git.clones.builder_clone import BuilderClone
from idumb.git.clones.clone import Clone
from idumb.git.projects.project_paths import ProjectPaths
from idumb.git.projects.project_trees import ProjectTrees


class ProjectClone:
    """A clone of the whole repository. Its project folder exists also if the commit has no file there."""

    kind = "clone"

    def __init__(self, whole: Clone, folder: str) -> None:
        self.whole = whole
        self._paths = ProjectPaths(folder)
        self.trees = ProjectTrees(whole.trees, folder)
        self.make_folder()

    def make_folder(self) -> None:
        os.makedirs(self.trees.root, exist_ok=True)

    def deliver(self, base: str, candidate: str, paths: Sequence[str]) -> tuple[str, tuple[Conflict, ...]]:
        tree, conflicts = self.whole.deliver(base, candidate, self._paths.all_own(paths))
        return tree, tuple(replace(conflict, path=self._paths.shown(conflict.path)) for conflict in conflicts)

    def close(self) -> None:
        self.whole.close()


class ProjectCommits:
    """The commits of builders in a clone, with the project's paths; those of other paths begin with `../`."""

    def __init__(self, whole: BuilderClone, workspace: ProjectClone, folder: str) -> None:
        self._whole = whole
        self._workspace = workspace
        self._paths = ProjectPaths(folder)

    @property
    def base(self) -> str | None:
        return self._whole.base

    def begin(self, commit: str | None) -> None:
        self._whole.begin(commit)
        self._workspace.make_folder()

    def take(self) -> BuilderCommits:
        taken = self._whole.take()
        self._workspace.make_folder()
        shown = self._paths.shown
        commits = (
            commit.with_changes(tuple(replace(change, path=shown(change.path)) for change in commit.changes))
            for commit in taken.commits
        )
        return replace(taken, commits=tuple(commits))

    def uncommitted(self, commits: BuilderCommits, base: str, candidate: str) -> tuple[str, ...]:
        return self._paths.all_shown(self._whole.uncommitted(commits, base, candidate))

    def keep(self, commits: BuilderCommits, ref: str) -> str:
        return self._whole.keep(commits, ref)

    def drop(self) -> None:
        self._whole.drop()


class ProjectClones:
    """The clones of the repository, of which each project uses its folder."""

    def __init__(self, whole: GitClones, folder: str) -> None:
        self._whole = whole
        self._folder = folder

    def require_place(self) -> None:
        self._whole.require_place()

    def place(self) -> str:
        return self._whole.place()

    def abandoned(self) -> Sequence[AbandonedClone]:
        return self._whole.abandoned()

    def keep(self, clone: AbandonedClone, ref: str, reason: str) -> Snapshot | None:
        """`clone` may be named by the project's folder in it."""
        return self._whole.keep(replace(clone, path=clone.path.removesuffix(f"/{self._folder}")), ref, reason)

    def remove(self, clone: AbandonedClone) -> None:
        self._whole.remove(clone)
