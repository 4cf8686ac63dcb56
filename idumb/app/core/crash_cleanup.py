"""Whether the operation before was killed, and what it left lying."""

from __future__ import annotations

from idumb.app.core.services import Services
from idumb.domain import wording


def unfinished_since(services: Services) -> str | None:
    """When the newest operation in this work tree began, if it has no end: it was killed. None otherwise.

    Only an owner, or who becomes one, can tell a killed operation from a running one.
    """
    for started in services.log.events(kind="operation.started", newest_first=True):
        if started.payload.get("worktree", services.worktree) == services.worktree:
            ended = services.log.events(
                operation=started.operation, kind="operation.finished", after=started.seq, limit=1
            )
            return None if any(ended) else started.at
    return None


def clear(services: Services) -> None:
    """Remove locks and temporary files that a killed operation left. Only for the owner of the work tree."""
    removed = services.history.remove_stale_files(unfinished_since(services))
    if removed:
        services.reporter.note(
            f"The command before was killed; what it left lying is removed: {wording.listed(removed)}"
        )


def clear_for_owner(services: Services) -> None:
    """The same for a command that is not the owner yet. Refusal `lock.held` where another one is."""
    if unfinished_since(services) is None:
        return
    services.owner.acquire("recovery")
    try:
        clear(services)
    finally:
        services.owner.release()
