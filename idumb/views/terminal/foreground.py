"""Whose turn it is on the terminal: a display that redraws itself must be still while a person is asked.

A process has one terminal, so this is the one place in the program with a state of the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Display(Protocol):
    def pause(self) -> None: ...

    def resume(self) -> None: ...


_displays: list[Display] = []


def register(display: Display) -> None:
    _displays.append(display)


def leave(display: Display) -> None:
    if display in _displays:
        _displays.remove(display)


@contextmanager
def taken() -> Iterator[None]:
    """Inside, no display draws."""
    paused = list(_displays)
    for display in paused:
        display.pause()
    try:
        yield
    finally:
        for display in paused:
            display.resume()
