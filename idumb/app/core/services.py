"""What every use case has: its services, as a type, its result, and the names of what idumb keeps and writes."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Struct, field

from idumb.domain import errors
from idumb.domain.action import Action, plain

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
ProofCheckout: TypeAlias = "Checkout"
"""Where checks run: it holds exactly one tree."""
Checks: TypeAlias = "ShellChecks"
EventLog: TypeAlias = "SqliteEventLog"


class Result(Struct, frozen=True):
    """`failure` (code, message, hint) is set if the command worked and its answer is no; `details` belong to it.

    `data` is JSON-serialisable but for the actions in it, of which an answer has the commands and the tools.
    """

    data: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int = errors.EXIT_DONE
    warnings: tuple[str, ...] = ()
    failure: tuple[str, str, Action | str | None] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


def fields(value: object, *names: str) -> dict[str, Any]:
    """Return these fields of a value as JSON-serialisable data."""
    return {name: plain(msgspec.to_builtins(getattr(value, name))) for name in names}


def same_command(services: Services, *words: str) -> Action:
    """Return the command as the user typed it, without consent and answers, and with these words added."""
    typed = services.typed
    place = typed.index("--") if "--" in typed else len(typed)
    command = (*typed[:place], *words, *typed[place:])
    return Action("".join(command[:1]), command[1:])


# Refs of what idumb keeps.


def write_forced(services: Services, path: str, text: str) -> None:
    """Write a file of the user, which must survive a power failure."""
    services.files.write_source(path, text)
    services.trees.force((path,))


def run_ref(services: Services, run: str, name: str, worktree: str | None = None) -> str:
    """Return a ref of a run, by default of this working tree: `refs/idumb/worktrees/main/runs/1f0c/plans`."""
    return f"refs/idumb/worktrees/{worktree or services.worktree}/runs/{run}/{name}"


def plans_ref(services: Services, run: str, version: int, worktree: str | None = None) -> str:
    """Return the ref of the plans of one version of a run's contract."""
    return run_ref(services, run, "plans" if version == 1 else f"plans-{version}", worktree)


def attempt_ref(services: Services, run: str, task: str, attempt: int, name: str = "") -> str:
    """Return a ref of an attempt, such as `…/T1-01/2/base`; without `name`, the prefix of all its refs."""
    return run_ref(services, run, f"{task}/{attempt}/{name}".removesuffix("/"))


def kept_at(services: Services, snapshot: str, path: str, part: str = "worktree") -> str:
    """Return the git revision of a path in a snapshot: `70baf95:worktree/sub/a.py` for `a.py` of the project `sub`."""
    return f"{snapshot}:{part}/{from_top(services, path)}"


def from_top(services: Services, path: str) -> str:
    """Return a path of the project, or outside it, as a path from the top of the repository."""
    return posixpath.normpath(f"{services.folder}/{path}") if services.folder else path


def from_start(services: Services, path: str) -> str:
    """Return a path of the project as a command needs it in the folder in which idumb was started."""
    relative = posixpath.relpath(posixpath.join(services.root, path), services.start)
    return f"./{relative}" if relative.startswith("-") else relative


# Paths of the files that idumb writes for users to read.

BRAIN = ".idumb/brain"
STATE_FILE = f"{BRAIN}/state.json"


def is_projection(path: str) -> bool:
    """Whether idumb builds this file, or all files of this folder (`path/`), from the log, and git ignores it."""
    return path == STATE_FILE or (path.startswith(f"{BRAIN}/execution/") and path.endswith(("/progress.json", "/")))


def execution_folder(phase: str) -> str:
    return f"{BRAIN}/execution/{phase}"


def checkpoint_path(phase: str, task: str) -> str:
    return f"{execution_folder(phase)}/checkpoint-{task}.md"


def report_path(folder: str, kind: str) -> str:
    """`.planning/phases/01-name/01-name-SUMMARY.md`."""
    return f"{folder}/{folder.rsplit('/', 1)[-1]}-{kind}.md"


def progress_path(phase: str) -> str:
    return f"{execution_folder(phase)}/progress.json"
