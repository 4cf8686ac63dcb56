"""The ports of a project: those of the repository at its top, and in a subfolder the same with the project's paths.

`folder` is the project's folder from the top of the repository, "" at the top.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` is slow
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from idumb.app.ports.repository import History
    from idumb.app.ports.workspace import Clones, CommittingClone, FreshClone, Workspace
    from idumb.gates.proving import Proving
    from idumb.git.clones.abandoned_clones import GitClones
    from idumb.git.clones.builder_clone import BuilderClone
    from idumb.git.clones.clone import Clone
    from idumb.git.clones.fresh_clone import FreshClone as WholeClone
    from idumb.git.history import GitHistory
    from idumb.git.projects.project_trees import ProjectTrees
    from idumb.git.proving_tree import ProvingTree
    from idumb.git.trees import GitTrees


def history(whole: GitHistory, folder: str) -> History:
    if not folder:
        return whole
    from idumb.git.projects.project_history import ProjectHistory

    return ProjectHistory(whole, folder)


def trees(whole: GitTrees, folder: str) -> GitTrees | ProjectTrees:
    if not folder:
        return whole
    from idumb.git.projects.project_trees import ProjectTrees

    return ProjectTrees(whole, folder)


def clone(whole: Clone, folder: str) -> Workspace:
    if not folder:
        return whole
    from idumb.git.projects.project_workspace import ProjectClone

    return ProjectClone(whole, folder)


def clones(whole: GitClones, folder: str) -> Clones:
    if not folder:
        return whole
    from idumb.git.projects.project_workspace import ProjectClones

    return ProjectClones(whole, folder)


def commits(workspace: Workspace, opened: Callable[[Clone], BuilderClone], folder: str) -> CommittingClone:
    """Return the commits in a workspace. `opened` returns those of a clone of the repository."""
    from idumb.git.clones.clone import Clone

    if isinstance(workspace, Clone):
        return opened(workspace)
    from idumb.git.projects.project_workspace import ProjectClone, ProjectCommits

    if not isinstance(workspace, ProjectClone):
        raise TypeError("builders commit in a clone")
    return ProjectCommits(opened(workspace.whole), workspace, folder)


def proving(whole: ProvingTree, folder: str) -> Proving:
    if not folder:
        return whole
    from idumb.git.projects.project_proving import ProjectProving

    return ProjectProving(whole, folder)


def fresh_clone(whole: WholeClone, folder: str) -> tuple[FreshClone, Proving]:
    """Return the clone, and the same as the working tree of its checks."""
    if not folder:
        return whole, whole
    from idumb.git.projects.project_proving import ProjectFreshClone

    clone = ProjectFreshClone(whole, folder)
    return clone, clone


def is_cached(cached: Callable[[str], bool], folder: str) -> Callable[[str], bool]:
    """Return a function on paths of the repository for one on paths of the project."""
    prefix = f"{folder}/"
    return (lambda path: path.startswith(prefix) and cached(path[len(prefix) :])) if folder else cached


def from_top(folder: str, *groups: Sequence[str]) -> tuple[Sequence[str], ...]:
    """Return each group of the project's paths as paths from the top of the repository."""
    return tuple([f"{folder}/{path}" for path in group] if folder else group for group in groups)
