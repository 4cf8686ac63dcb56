"""What a command asks before it makes services: its project, the status view, and who is at work here.

`idumb status` asks for these, so this module imports nothing heavy.
"""

from __future__ import annotations

import gc
import json
import os
from typing import TYPE_CHECKING, Any

from idumb.domain.errors import Refusal
from idumb.git import discover
from idumb.store import status_view
from idumb.system import user_folders

if TYPE_CHECKING:
    from idumb.composition.container import Container

_WATCHED = (
    ".idumb/config.yaml",
    ".idumb/policy/tools.yaml",
    ".planning/ROADMAP.md",
    *(f".planning/{folder}" for folder in ("phases", "quick", "workflows")),
)


def find_project(start: str) -> discover.Project:
    """Find the project around a folder. Refusal `project.folder-name`, `project.nested`, or of `discover.find`."""
    project = discover.find_project(start, discover.find(start))
    if project.folder:
        require_plain(project)
    inner = discover.unused_project(start, project)
    if inner is not None and os.path.isdir(discover.Project(project.worktree, inner).state_dir):
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


def saved_status(start: str) -> dict[str, Any] | None:
    """Return the saved status view if nothing that it shows has changed; opens neither database nor plans."""
    project = find_project(start)
    if discover.unused_project(start, project) is not None:
        return None  # a new view warns of it
    view = status_view.read(project.state_dir, project.root)
    return None if view is None else _with_owner(view, _owner(project.worktree))


def refreshed_status(services: Container) -> dict[str, Any]:
    """Build the status view and, if the state directory is writable, save it."""
    from idumb.app.reading import status
    from idumb.domain.plans import phase_ids

    gc.disable()
    repository, project = services.repository, services.project
    folders = [folder for _, folder in services.plans.phases()]
    files = [path for folder in folders for path in services.plans.named(folder)]
    files += [path for phase in services.log.phases() if (path := phase_ids.step_plan_path(phase)) is not None]
    # A phase that ran elsewhere shows in the commits only, and a rebase may drop those of a run.
    commits = os.path.join(repository.git_dir, "logs", "HEAD")
    rules = [path for path, _ in user_folders.system_wide()]
    inputs = [*_WATCHED, *rules, *folders, *files, commits, services.consent.folder]
    observed = status_view.observe(project.state_dir, project.root, inputs)
    view = status.view(services)
    redactor = services.redactor
    if redactor.holds(json.dumps(view)):
        view = redactor.value(view)
    try:
        # The saved view contains these paths unredacted, because they must be exact.
        exposes_secret = redactor.holds(json.dumps(inputs))
        has_folder = os.path.isdir(os.path.join(project.root, ".idumb"))
        if has_folder and not exposes_secret and not status.lists_consent(view):
            status_view.write(project.state_dir, project.root, view, inputs, seen=observed)
    except OSError:
        pass  # a read-only repository still shows its status
    return _with_owner(view, _owner(repository))


def _with_owner(view: dict[str, Any], owner: dict[str, Any] | None) -> dict[str, Any]:
    """Add the owner. While a command is at work, name no next command: a script might stop the work."""
    if owner is None or not view["initialised"]:
        return {**view, "owner": owner}
    why = f"wait until {owner['command']} has ended, or stop it with idumb stop"
    asked = (question["what"] for row in view["phases"] for question in row["decisions"][:1])
    why += "".join(f". A question waits, perhaps at its terminal: {what}" for what in asked)
    return {**view, "owner": owner, "next": {**view["next"], "command": None, "tool": None, "why": why}}


def _owner(repository: discover.Worktree) -> dict[str, Any] | None:
    """Return the process that owns the working tree now. A saved view cannot know it."""
    path = os.path.join(repository.state_dir, "owner.json")
    if not os.path.lexists(path):
        return None
    from idumb.store import owner_card

    card = owner_card.holder(path) or {}
    return {name: card.get(name) for name in ("pid", "host", "since", "command", "standing")} if card else None


def surrounding_agent(start: str) -> str | None:
    """Describe the agent or check of this repository that this command runs inside; None at a user's own terminal.

    Outside any repository, only the mark in this command's own environment counts.
    """
    from idumb.store import owner_card
    from idumb.system import process_tree

    own = process_tree.own_mark()
    try:
        repository = discover.find(start)
    except Refusal:
        return own.who if own is not None else None
    for mark in (own, *process_tree.marks_above()):
        if mark is not None and _belongs_to(repository, mark.folder):
            return mark.who
    owner = _owner(repository)
    if owner is None or owner["standing"] == owner_card.ELSEWHERE or owner["pid"] not in process_tree.ancestors():
        return None
    return f"a process that idumb {owner['command']} started"


def _belongs_to(repository: discover.Worktree, folder: str) -> bool:
    """Whether a folder is a working tree of this repository or one of idumb's checkouts of it."""
    from idumb.git.checkouts import places

    real = os.path.realpath(folder)
    if f"{real}/".startswith(f"{repository.root}/") or places.is_copy_of(repository.common_dir, real):
        return True
    try:
        return discover.find(real).common_dir == repository.common_dir
    except Refusal:
        return False
