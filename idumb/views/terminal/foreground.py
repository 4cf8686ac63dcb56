"""Pause displays that redraw themselves while a question is on the terminal.

A process has one terminal, so this module has process-wide state.
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
    """Pause all displays within the context."""
    paused = list(_displays)
    for display in paused:
        display.pause()
    try:
        yield
    finally:
        for display in paused:
            display.resume()
