"""Faults of T9 in the process that rolls back: a kill before one of its durable steps, or a planted fault."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

from idumb.app.history import restore_conflicts

NO_COMPARISON = "compare-and-swap is off"
LIVE_INDEX = "the target is the live index"


def arrange(given: dict[str, Any]) -> None:
    if given["kill"] is not None:
        _kill_before(given["kill"])
    if given["plant"] == NO_COMPARISON:
        _compare_nothing()
    elif given["plant"] == LIVE_INDEX:
        _aim_at_the_index()


def _kill_before(step: int | str) -> None:
    """End the process, as `kill -9` does, before its durable step of that number, or the first of that name.

    The name is that of a function or the kind of an event to append; `restore 2` is the second call.
    """
    from idumb.git.history import GitHistory
    from idumb.git.restore import atomic_moves, write_back
    from idumb.git.trees import GitTrees
    from idumb.store.event_log import SqliteEventLog

    passed, calls = [0], Counter[str]()

    def wrap(owner: Any, name: str) -> None:
        method: Callable[..., Any] = getattr(owner, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            kinds = [event.kind for event in arguments[1]] if name == "append" else []
            calls[name] += 1
            if step in (passed[0], name, f"{name} {calls[name]}", *kinds):
                os.kill(os.getpid(), signal.SIGKILL)
            passed[0] += 1
            return method(*arguments, **options)

        setattr(owner, name, counted)

    wrap(SqliteEventLog, "append")
    for name in ("make", "advance"):
        wrap(GitHistory, name)
    for name in ("snapshot", "keep", "restore", "release_displaced"):
        wrap(GitTrees, name)
    for name in ("exchange", "place"):
        wrap(atomic_moves, name)
    wrap(write_back, "_move_aside")
    for name in ("rename", "replace", "unlink", "rmdir"):
        wrap(os, name)


def _compare_nothing() -> None:
    from idumb.git.trees import GitTrees

    restore = GitTrees.restore

    def forced(self: GitTrees, target: str, expected: str, paths: Any, **options: Any) -> Any:
        return restore(self, target, expected, paths, **{**options, "force": True})

    GitTrees.restore = forced  # type: ignore[method-assign]
    restore_conflicts._changed = lambda *_: []


def _aim_at_the_index() -> None:
    from idumb.app.history import restore as restoring
    from idumb.git.trees import GitTrees

    put_back = restoring.restore_paths

    def aimed(services: Any, journal: Any, contract: Any, target: Any, *rest: Any) -> Any:
        import dataclasses

        trees = services.trees
        assert isinstance(trees, GitTrees)
        trees.repository.index.read()
        live = str(trees.repository.index.write_tree())
        return put_back(services, journal, contract, dataclasses.replace(target, target=live), *rest)

    setattr(restoring, "restore_paths", aimed)  # noqa: B010
