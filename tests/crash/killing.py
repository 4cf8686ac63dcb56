"""Run one `idumb` command line that kills itself at a chosen point: python killing.py CHOICE COMMAND...

A point is the moment before or after a call that makes something durable. CHOICE is a JSON object: `at` is the number
of the point, from 0 (absent: never), `count` a file for the names of all points that were passed, `plant` the name of
a fault. The program itself knows nothing of all this.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from idumb.app import recovery
from idumb.cli import main
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from idumb.store.event_log import SqliteEventLog
from idumb.system.reports import FileReports

DURABLE = (
    (SqliteEventLog, "append"),
    (GitHistory, "commit"),
    (GitTrees, "snapshot"),
    (GitTrees, "keep"),
    (GitTrees, "keep_blobs"),
    (GitTrees, "restore"),
    (FileReports, "write"),
)


class Points:
    """Counts the points that the process passes and ends it, as `kill -9` does, at the chosen one."""

    def __init__(self, at: int | None, count: str | None) -> None:
        self._at = at
        self._count = count
        self._passed = 0

    def here(self, name: str) -> None:
        if self._count is not None:
            with open(self._count, "a", encoding="utf-8") as file:
                file.write(name + "\n")
        if self._passed == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        self._passed += 1

    def around(self, owner: type, name: str) -> None:
        method: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(method)
        def counted(*arguments: Any, **options: Any) -> Any:
            what = f"{owner.__name__}.{name} {_words(arguments)}"
            self.here(f"before {what}")
            result = method(*arguments, **options)
            self.here(f"after {what}")
            return result

        setattr(owner, name, counted)


def _words(arguments: tuple[Any, ...]) -> str:
    """What a call is about: kinds of events, a ref, paths."""
    first = arguments[1] if len(arguments) > 1 else ""
    if isinstance(first, str):
        return first
    return " ".join(str(getattr(one, "kind", one)) for one in first)


def plant(fault: str | None) -> None:
    if fault == "commits are not looked for":
        recovery._commit_of = lambda *_: None
    elif fault == "nothing is put back":
        GitTrees.restore = lambda *_, **__: ()  # type: ignore[method-assign]
    elif fault is not None:
        sys.exit(f"no such fault: {fault}")


if __name__ == "__main__":
    choice = json.loads(sys.argv[1])
    plant(choice.get("plant"))
    points = Points(choice.get("at"), choice.get("count"))
    for owner, name in DURABLE:
        points.around(owner, name)
    sys.exit(main.run(sys.argv[2:]))
