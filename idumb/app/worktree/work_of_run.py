"""The files that a run changed, which none of its checks may change again."""

from __future__ import annotations

from idumb.app.core import run_lookup
from idumb.app.core.services import Services
from idumb.domain.runs.run import RunState


def paths(state: RunState) -> frozenset[str]:
    """Return the paths that the tasks of a run left in their checkpoints."""
    return frozenset(p for t in state.tasks.values() if t.checkpoint is not None for p in t.checkpoint.files)


def has_changed(services: Services, run: str, tree: str, path: str) -> bool:
    """Return whether a run changed a path: in a task, or since it started. False before the first run."""
    state = run_lookup.run_of(services, run)
    if path in paths(state):
        return True
    if not state.base.tree:
        return False
    try:
        base = services.history.tree_of(state.base.commit)
    except KeyError:  # the user rewrote history, and git removed the commit
        return True
    return services.trees.entry(base, path) != services.trees.entry(tree, path)
