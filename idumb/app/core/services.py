"""The services of a use case, as a type; and the refs of what idumb keeps."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, TypeAlias

from idumb.domain.action import Action

if TYPE_CHECKING:
    from idumb.composition.container import Container
    from idumb.gates.checks import ShellChecks
    from idumb.git.checkouts.checkout import Checkout
    from idumb.git.trees import GitTrees, Here
    from idumb.store.event_log import SqliteEventLog

Services: TypeAlias = "Container"
"""What a use case gets from outside. These are types only: `app` imports no implementation when it runs."""
Trees: TypeAlias = "GitTrees"
Workspace: TypeAlias = "Checkout | Here"
"""Where a task is built: a checkout, or the user's own working tree, where nobody but people may work."""
Checks: TypeAlias = "ShellChecks"
EventLog: TypeAlias = "SqliteEventLog"


def run_ref(services: Services, run: str, name: str, worktree: str | None = None) -> str:
    """Return a ref of a run, by default of one of this working tree."""
    return f"refs/idumb/worktrees/{worktree or services.worktree}/runs/{run}/{name}"


def plans_ref(services: Services, run: str, version: int, worktree: str | None = None) -> str:
    """Return the ref of the plans of one version of a run's contract."""
    return run_ref(services, run, "plans" if version == 1 else f"plans-{version}", worktree)


def attempt_ref(services: Services, run: str, task: str, attempt: int, name: str = "") -> str:
    """Return a ref of an attempt; without `name`, the prefix of all its refs."""
    return run_ref(services, run, f"{task}/{attempt}/{name}".removesuffix("/"))


def kept_at(services: Services, snapshot: str, path: str) -> str:
    """Return the git revision of a path in a snapshot, whose paths start at the top of the repository."""
    return f"{snapshot}:worktree/{from_top(services, path)}"


def from_top(services: Services, path: str) -> str:
    """Return a path of the project, or outside it, as a path from the top of the repository."""
    return posixpath.normpath(f"{services.folder}/{path}") if services.folder else path


def again(services: Services, *words: str) -> Action:
    """Return the command as the user typed it, without consent and answers, and with these words added."""
    typed = services.typed
    place = typed.index("--") if "--" in typed else len(typed)
    command = (*typed[:place], *words, *typed[place:])
    return Action("".join(command[:1]), command[1:])
