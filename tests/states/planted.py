"""Faults that are put into idumb on purpose, and crashes at a chosen call; both only in a process of a case."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import types
from collections.abc import Callable, Iterator
from typing import Any

from idumb.app.history import restore_conflicts
from idumb.git import branch, git_program
from idumb.git.history import GitHistory
from idumb.git.objects import object_writer
from idumb.git.restore import restore_paths
from idumb.git.scan import scanner

FAULTS = ("add all", "no compare and swap", "times only")


def put(fault: str) -> None:
    if fault == "add all":
        _commit = branch.commit

        def careless(place: Any, *arguments: Any, **options: Any) -> Any:
            git_program.write(place.root, ["add", "--all"])
            return _commit(place, *arguments, **options)

        branch.commit = careless
    elif fault == "no compare and swap":
        restore_paths._conflict = lambda *_, **__: None
        restore_conflicts._changed = lambda *_: []
    elif fault == "times only":
        _trust_times()
    else:
        assert not fault, fault


class _Times:
    """A stat without the time at which the inode changed."""

    def __init__(self, status: os.stat_result) -> None:
        self._status = status
        self.st_ctime_ns = 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._status, name)


class _Entry:
    def __init__(self, entry: os.DirEntry[str]) -> None:
        self._entry = entry

    def stat(self, *, follow_symlinks: bool) -> _Times:
        return _Times(self._entry.stat(follow_symlinks=follow_symlinks))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)


def _trust_times() -> None:
    """The scanner believes size and time of modification alone."""
    put_path = object_writer.put_path

    def stored(*arguments: Any) -> Any:
        entry = put_path(*arguments)
        return entry and entry._replace(status=_Times(entry.status))  # type: ignore[arg-type]

    @contextlib.contextmanager
    def scandir(path: str) -> Iterator[Iterator[_Entry]]:
        with os.scandir(path) as listing:
            yield map(_Entry, listing)

    object_writer.put_path = stored  # type: ignore[assignment]
    vars(scanner)["os"] = types.SimpleNamespace(**{**vars(os), "scandir": scandir})


def crash(place: str) -> None:
    """`before commit` or `after commit`: of the second commit that is made on the branch."""
    if not place:
        return
    method: Callable[..., Any] = GitHistory.commit
    calls = iter(range(1000))

    @functools.wraps(method)
    def dying(*arguments: Any, **options: Any) -> Any:
        second = next(calls) == 1
        if second and place == "before commit":
            os.kill(os.getpid(), signal.SIGKILL)
        result = method(*arguments, **options)
        if second:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    GitHistory.commit = dying  # type: ignore[method-assign]
