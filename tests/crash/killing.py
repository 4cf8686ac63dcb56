"""End a process at a chosen point: the moment before or after a call that makes something durable.

`arm` is a hook of `warm.run`. It reads a mapping with these optional keys: `at` is the number of the point, from 0, or
an expression for the beginning of its name, and `occurrence` says which of its matches counts, from 1; `count` is a
file that receives the names of all points; `fine` also counts calls below the ports, and `calls` are counted instead of
all; `signal` is sent instead of SIGKILL; `plant` names a fault; `acks` is a file that receives the acknowledged events;
`cut` is a folder whose file system loses power at the point. idumb itself does not know this module.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from typing import Any

# Names instead of objects: arming must not import a module before its fault is planted.
DURABLE = (
    ("idumb.store.event_log", "SqliteEventLog.append"),
    ("idumb.git.history", "GitHistory.make"),
    ("idumb.git.history", "GitHistory.advance"),
    ("idumb.git.trees", "GitTrees.snapshot"),
    ("idumb.git.trees", "GitTrees.keep"),
    ("idumb.git.trees", "GitTrees.keep_blobs"),
    ("idumb.git.trees", "GitTrees.restore"),
    ("idumb.system.rooted_files", "ProjectFiles.write"),
    ("idumb.git.refs", "move"),
    ("idumb.git.refs", "delete_all"),
)
_OID = re.compile("[0-9a-f]{40}")
MANY_LOOSE = 6
"""So many loose refs are packed: a run of four tasks has some ten."""
FINE = (
    ("idumb.store.connection", "Database.write"),
    ("idumb.store.connection", "Database.record_newest"),
    ("idumb.store.consent", "FileConsentStore.record"),
    ("idumb.git.git_program", "write"),
    ("idumb.git.refs", "move"),
    ("idumb.git.disk", "force"),
    ("idumb.git.path_state", "exchange"),
    ("idumb.git.path_state", "move_to_free"),
    ("idumb.git.write_back", "_move_aside"),
    ("idumb.git.trees", "GitTrees.release_displaced"),
    ("os", "rename"),
    ("os", "unlink"),
    ("os", "rmdir"),
    ("idumb.system.atomic_write", "write"),
    ("idumb.system.rooted_files", "ProjectFiles.remove"),
    ("idumb.git.checkouts.checkout", "Checkout.end"),
)


class Points:
    """Counts the points that the process passes and ends it at the chosen one, as `kill -9` does."""

    def __init__(self, choice: dict[str, Any]) -> None:
        self._at = choice.get("at")
        self._occurrence = choice.get("occurrence", 1)
        self._count = choice.get("count")
        self._cut = choice.get("cut")
        self._signal = choice.get("signal", signal.SIGKILL)
        self._passed = 0
        self._process = os.getpid()

    def here(self, name: str) -> None:
        if os.getpid() != self._process:  # a guard that cleans up after the kill passes no point
            return
        if self._count is not None:
            with open(self._count, "a", encoding="utf-8") as file:
                file.write(name + "\n")
        chosen = self._is_chosen(name)
        self._passed += 1
        if not chosen:
            return
        if self._cut is not None:
            from tests.crash import disk

            disk.cut(self._cut)
        os.kill(os.getpid(), self._signal)

    def _is_chosen(self, name: str) -> bool:
        """Compare the number of the point, or its name; with `occurrence`, a name counts when it occurs that often."""
        if not isinstance(self._at, str):
            return self._passed == self._at
        found = re.match(self._at, name) is not None
        self._occurrence -= found
        return found and self._occurrence == 0

    def around(self, module: str, name: str) -> None:
        owner, attribute = _owner(module, name)
        method: Callable[..., Any] = getattr(owner, attribute)
        skipped = 1 if isinstance(owner, type) else 0
        called = name if isinstance(owner, type) else f"{module.rsplit('.', 1)[-1]}.{name}"

        @functools.wraps(method)
        def counted(*arguments: Any, **options: Any) -> Any:
            call = f"{called} {_words(arguments[skipped:])}"
            self.here(f"before {call}")
            result = method(*arguments, **options)
            self.here(f"after {call}")
            return result

        setattr(owner, attribute, counted)


def _owner(module: str, name: str) -> tuple[Any, str]:
    owner: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    return owner, last


def _words(arguments: tuple[Any, ...]) -> str:
    """Return the subject of a call: kinds of events, a ref, paths, the first line of a message."""
    first = arguments[0] if arguments else ""
    if isinstance(first, str) and _OID.fullmatch(first) and isinstance(arguments[-1], str):
        return arguments[-1].partition("\n")[0]
    if isinstance(first, str):
        return first
    if isinstance(first, (list, tuple)) and not hasattr(first, "_fields"):
        return " ".join(str(getattr(one, "kind", one)) for one in first)
    return ""


def acknowledge(path: str) -> None:
    """Record acknowledged events outside the case's file system."""
    from idumb.store.event_log import SqliteEventLog

    append = SqliteEventLog.append

    @functools.wraps(append)
    def noted(*arguments: Any, **options: Any) -> Any:
        written = append(*arguments, **options)
        with open(path, "a", encoding="ascii") as file:
            for event in written:
                payload = dict(event.payload) if event.kind == "checkpoint.recorded" else {}
                line = {"seq": event.seq, "hash": event.hash, "kind": event.kind, "task": event.task, **payload}
                file.write(json.dumps(line) + "\n")
        return written

    SqliteEventLog.append = noted  # type: ignore[method-assign]


def plant(fault: str | None) -> None:
    """Plant a fault in this process that the programme must detect."""
    if fault == "commits are not looked for":
        from idumb.app.engine import unfinished_attempts

        unfinished_attempts._commit_of = lambda *_: None
    elif fault == "nothing is put back":
        from idumb.git.trees import GitTrees

        GitTrees.restore = lambda *_, **__: ()  # type: ignore[method-assign]
    elif fault == "nothing is forced":
        _force_nothing()
    elif fault == "nothing is compared":
        _compare_nothing()
    elif fault == "no fence at all":
        _take_down_fences()
    elif fault is not None:
        sys.exit(f"no such fault: {fault}")


def _force_nothing() -> None:
    """Disable fsync in this process, in SQLite and in git."""
    import pygit2

    from idumb.git import disk, git_program
    from idumb.store import connection

    os.fsync = lambda _: None  # type: ignore[assignment]
    disk.force = lambda paths: None
    pygit2.option = lambda *_: None  # type: ignore[assignment]
    git_program._DURABLE = ("-c", "core.fsync=none", "-c", "core.fsyncMethod=fsync")
    connection._WANTED_PRAGMAS = {**connection._WANTED_PRAGMAS, "synchronous": 0}


def _compare_nothing() -> None:
    """Restore files whatever they are now."""
    from idumb.app.history import restore_conflicts
    from idumb.git.trees import GitTrees

    restore = GitTrees.restore

    def forced(self: GitTrees, target: str, expected: str, paths: Any, **options: Any) -> Any:
        return restore(self, target, expected, paths, **{**options, "force": True})

    GitTrees.restore = forced  # type: ignore[method-assign]
    restore_conflicts.find = lambda *_, **__: []


def _take_down_fences() -> None:
    """Let an owner write whose working tree was taken over."""
    from idumb.store import event_log, owner_card

    setattr(owner_card.OwnerLock, "holds", lambda _: True)  # noqa: B010
    event_log._require_newest = lambda *_: None
    event_log._require_fence = lambda *_: None


def arm(choice: dict[str, Any]) -> None:
    plant(choice.get("plant"))
    if choice.get("acks") is not None:
        acknowledge(choice["acks"])
    from idumb.git import refs

    refs._MANY = MANY_LOOSE
    points = Points(choice)
    for module, name in choice.get("calls") or (*DURABLE, *(FINE if choice.get("fine") else ())):
        points.around(module, name)
