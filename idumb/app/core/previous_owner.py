"""What an earlier owner of the working tree left: files of a killed command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app.core.services import Services
from idumb.domain import wording
from idumb.domain.runs import project_key


def shown(holder: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the owner as answers show it."""
    names = ("pid", "host", "since", "command", "standing")
    return None if holder is None else {name: holder.get(name) for name in names}


def killed_operation_start(services: Services) -> str | None:
    """Return when the newest operation in this working tree, of any project, began if it never finished; else None.

    Call this as the owner, or before acquiring ownership: a running operation looks the same as a killed one.
    """
    here, _ = project_key.place(services.worktree)
    for started in services.log.events(kind="operation.started", newest_first=True):
        if project_key.place(started.payload.get("worktree", here))[0] == here:
            ended = services.log.events(
                operation=started.operation, kind="operation.finished", after=started.seq, limit=1
            )
            return None if any(ended) else started.at
    return None


def remove_stale_files(services: Services) -> None:
    """Remove locks and temporary files of a killed operation. Only for the owner of the working tree."""
    removed = services.history.remove_stale_files(killed_operation_start(services))
    if removed:
        services.reporter.note(
            f"The previous command was killed; its leftover files were removed: {wording.listed(removed)}"
        )


def acquire_and_remove_stale_files(services: Services) -> None:
    """Do the same for a command that is not the owner yet. Refusal `lock.held` if another process is."""
    if killed_operation_start(services) is None:
        return
    services.owner.acquire("recovery")
    try:
        remove_stale_files(services)
    finally:
        services.owner.release()
