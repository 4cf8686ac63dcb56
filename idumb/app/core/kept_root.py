"""The tree that names everything idumb keeps in a working tree, but commits: the log knows it as it was last."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

from idumb import lazy_pattern
from idumb.app.core.services import Services
from idumb.domain.errors import Refusal

REFS = "refs/idumb/"
ROOTS = f"{REFS}kept/"
_WORKTREE_OF_REF = lazy_pattern.compile(rf"{REFS}(?:worktrees|kept)/([^/]+)")


def recorded(services: Services) -> Mapping[str, str]:
    """Return the newest such tree in the log that exists, by the ref that names it, of each working tree."""
    roots: dict[str, str] = {}
    for ref, root in _newest_first(services):
        if ref not in roots and exists(services, root):
            roots[ref] = root
    return roots


def present(services: Services) -> Mapping[str, str]:
    """Return the tree of this working tree as it is now, and its ref, as an event records them; {} if there is none."""
    ref = f"{ROOTS}{services.worktree}"
    root = services.history.refs(ref).get(ref)
    return {"kept": root, "ref": ref} if root else {}


def restore(services: Services) -> None:
    """Restore the ref of this working tree before anything new is kept, if it was deleted or set back.

    Otherwise the next tree in the log would lack names too.
    """
    ref = f"{ROOTS}{services.worktree}"
    here = services.history.refs(ref).get(ref)  # "" if a power cut emptied its file
    roots = (root for name, root in _newest_first(services) if name == ref)
    root = next((root for root in roots if root == here or exists(services, root)), None)
    if root is None or root == here:
        return
    if here is None:
        services.history.keep_ref(ref, root)
        services.reporter.note(f"{ref} was deleted; it names {root[:12]} again, as when idumb last recorded it")
    elif lost := missing(services, ref, root):
        services.history.keep_ref(ref, root)
        services.reporter.note(
            f"{ref} lacked {len(lost)} names that it had when idumb last recorded it; it has them again"
        )


def missing(services: Services, ref: str, root: str) -> Mapping[str, str]:
    """Return the names in a recorded tree that its ref lacks; none if a tree cannot be read, as `doctor` reports."""
    try:
        return services.history.missing_names(ref, root)
    except Refusal:
        return {}


def _newest_first(services: Services) -> Iterator[tuple[str, str]]:
    """Yield refs and trees that events record."""
    kinds = ("attempt.started", "operation.finished")
    events = (services.log.events(kind=kind, newest_first=True) for kind in kinds)
    for event in heapq.merge(*events, key=lambda event: -event.seq):
        worktree = _WORKTREE_OF_REF.match(event.payload.get("ref") or "")
        if worktree is not None and event.payload.get("kept"):
            yield f"{ROOTS}{worktree[1]}", event.payload["kept"]


def exists(services: Services, oid: str) -> bool:
    """Return whether an object can be read."""
    try:
        services.trees.read(oid)
    except (Refusal, KeyError, ValueError):
        return False
    return True
