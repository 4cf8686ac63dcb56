"""The project around a folder, with a hint in every refusal."""

from __future__ import annotations

import os

from idumb.domain.errors import Refusal
from idumb.git import discover


def find(start: str) -> discover.Project:
    """Find the project around a folder. Refusal `project.folder-name`, `project.nested`, or of `find_repository`."""
    project = discover.find_project(start, find_repository(start))
    if project.folder:
        require_plain(project)
    inner = discover.unused_project(start, project)
    if inner is not None and os.path.isdir(discover.Project(project.repository, inner).state_dir):
        raise Refusal(
            "project.nested",
            f"{inner} is a project with runs of its own, and {project.root} around it is a project too.",
            hint=f"Move {os.path.join(project.root, '.idumb/config.yaml')} away, and use idumb in each folder alone",
            details={"inner": inner, "outer": project.folder or "."},
        )
    return project


def require_plain(project: discover.Project) -> None:
    if any(character in project.folder for character in "*?[]{}\\\n"):
        raise Refusal(
            "project.folder-name",
            f"{project.folder!r} cannot be a project: its name has a character that patterns use.",
            hint="Rename the folder: its name must have none of * ? [ ] { } \\ and no line break",
        )


def find_repository(start: str) -> discover.Repository:
    """Find the repository around a folder; every refusal has a hint."""
    try:
        return discover.find(start)
    except Refusal as refusal:
        refusal.step = refusal.step or (
            "git status shows the same problem. Restore .git from a clone or a backup, or move it away and run git init"
        )
        raise
