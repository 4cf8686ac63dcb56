"""Projects in subfolders of one repository, and the bytes of what is beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.gitrepo import QUICK_COMMIT, Entry, GitSandbox, work_tree
from tests.support.project import Project


class SubProject(Project):
    """A project in the folder `start` of a repository. Its plans and files are there."""

    @property
    def folder(self) -> Path:
        return self.start

    @property
    def name(self) -> str:
        return self.start.relative_to(self.repo.root).as_posix()

    def commit_own(self) -> None:
        own = [f"{self.name}/{name}" for name in (".idumb", ".planning") if (self.start / name).exists()]
        self.repo.git("add", "--", *own)
        self.repo.git(*QUICK_COMMIT, "--quiet", "--allow-empty", "-m", "plan", "--", *own)


def create(repo: GitSandbox, name: str) -> SubProject:
    """Set up a project in a subfolder, with a commit."""
    repo.commit_with({f"{name}/README.md": f"# {name}\n"}, f"folder {name}", f"{name}/README.md")
    project = SubProject(repo, repo.root / name)
    assert project.quick("init", "--here").code == 0
    project.commit_own()
    return project


def outside(project: SubProject) -> dict[str, Entry]:
    """Every file of the working tree outside the project's folder, with its bytes and mode."""
    found = work_tree(project.repo.root)
    return {path: entry for path, entry in found.items() if not path.startswith(f"{project.name}/")}


@contextmanager
def unchanged(project: SubProject) -> Iterator[None]:
    """What is outside the project's folder, and what is staged there, is the same at the end of the block."""
    before = outside(project), _staged(project)
    yield
    assert (outside(project), _staged(project)) == before


def _staged(project: SubProject) -> list[str]:
    rows = project.repo.git("ls-files", "--stage", "-v").splitlines()
    return [row for row in rows if not row.partition("\t")[2].startswith(f"{project.name}/")]
