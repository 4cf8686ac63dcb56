"""The tree that names everything idumb keeps in a working tree, but commits: the log knows it as it was last."""

from __future__ import annotations

import re
from collections.abc import Mapping

from idumb.app.core.services import Services
from idumb.domain.errors import Refusal

REFS = "refs/idumb/"
ROOTS = f"{REFS}kept/"
_WORKTREE_OF_REF = re.compile(rf"{REFS}worktrees/([^/]+)/")


def recorded(services: Services) -> Mapping[str, str]:
    """Return the newest such tree in the log that exists, by the ref that names it, of each working tree."""
    roots: dict[str, str] = {}
    for event in services.log.events(kind="attempt.started", newest_first=True):
        worktree, root = _WORKTREE_OF_REF.match(event.payload["ref"]), event.payload.get("kept")
        ref = f"{ROOTS}{worktree[1] if worktree is not None else ''}"
        if root and ref not in roots and exists(services, root):
            roots[ref] = root
    return roots


def restore(services: Services) -> None:
    """Create the ref of this working tree again if it was deleted, before anything new is kept."""
    ref = f"{ROOTS}{services.worktree}"
    if ref in services.history.refs(ref):
        return
    root = recorded(services).get(ref)
    if root is not None:
        services.history.keep_ref(ref, root)
        services.reporter.note(f"{ref} was deleted; it names {root[:12]} again, as when an attempt last began")


def exists(services: Services, oid: str) -> bool:
    """Return whether an object can be read."""
    try:
        services.trees.read(oid)
    except (Refusal, KeyError, ValueError):
        return False
    return True
