"""The ownership of a working tree in memory: each `MemoryOwnership` is one process that asks for the same tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from idumb.app.ports import StopRequest
from idumb.domain.errors import Refusal


@dataclass(slots=True)
class MemoryWorktree:
    """The working tree: its last token and its owner. `elsewhere`: the owner is on another machine."""

    fence: int = 0
    owner: MemoryOwnership | None = None
    elsewhere: bool = False


class MemoryOwnership:
    """As `FileOwnership`, except signals to other processes."""

    def __init__(self, worktree: MemoryWorktree) -> None:
        self._worktree = worktree
        self._fence = 0
        self._request: StopRequest | None = None
        self._command = ""

    def acquire(self, command: str, *, force: bool = False) -> int:
        tree = self._worktree
        if tree.owner is not None and not (force and tree.elsewhere):
            code = "lock.elsewhere" if tree.elsewhere else "lock.held"
            raise Refusal(
                code, f"This working tree is in use by another idumb: {tree.owner._command}", hint="idumb status"
            )
        tree.fence += 1
        tree.owner, tree.elsewhere = self, False
        self._fence, self._command, self._request = tree.fence, command, None
        return self._fence

    def release(self) -> None:
        if self._worktree.owner is self:
            self._worktree.owner = None
            self._fence = 0

    def guard(self) -> None:
        if self._fence and self._worktree.owner is not self:
            raise Refusal("lock.lost", "This process no longer owns the working tree.", hint="idumb doctor")

    def holder(self) -> Mapping[str, Any] | None:
        owner = self._worktree.owner
        standing = "elsewhere" if self._worktree.elsewhere else "running"
        return None if owner is None else {"command": owner._command, "fence": owner._fence, "standing": standing}

    def ask_to_stop_after_task(self, holder: Mapping[str, Any], by: str, why: str) -> None:
        owner = self._worktree.owner
        if owner is not None and owner._fence == holder["fence"]:
            owner._request = StopRequest(by, why, after_task=True)

    def stop_request(self) -> StopRequest | None:
        return self._request if self._worktree.owner is self else None
