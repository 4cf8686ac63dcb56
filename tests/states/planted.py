"""Faults that are put into idumb on purpose, and crashes at a chosen call; both only in a process of a case."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable
from typing import Any

from idumb.app.history import restore_conflicts
from idumb.git import git_program, refs, shadow, shadow_folder
from idumb.git.history import GitHistory
from idumb.git.restore import write_back

FAULTS = ("add all", "no compare and swap", "times only")


def put(fault: str) -> None:
    if fault == "add all":
        _advance = refs.advance

        def careless(place: Any, *arguments: Any, **options: Any) -> Any:
            git_program.write(place.root, ["add", "--all"])
            return _advance(place, *arguments, **options)

        refs.advance = careless
    elif fault == "no compare and swap":
        write_back._conflict = lambda *_, **__: None
        restore_conflicts._changed = lambda *_: []
    elif fault == "times only":
        _trust_times()
    else:
        assert not fault, fault


def _trust_times() -> None:
    """The scanner believes size and time of modification alone."""
    shadow_folder.SETTINGS = tuple(
        setting.replace("trustctime=true", "trustctime=false") for setting in shadow_folder.SETTINGS
    )
    shadow.Shadow._drop_young = lambda *_: None  # type: ignore[method-assign]


def crash(place: str) -> None:
    """`before commit` or `after commit`: of the second commit that is made on the branch."""
    if not place:
        return
    method: Callable[..., Any] = GitHistory.advance
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

    GitHistory.advance = dying  # type: ignore[method-assign]
