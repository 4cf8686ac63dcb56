"""A terminal for commands in this process."""

from __future__ import annotations

import io
import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from idumb.cli import opened_services
from idumb.views.terminal import ask

if TYPE_CHECKING:
    import pytest


def answering(patch: pytest.MonkeyPatch, *answers: str) -> io.StringIO:
    """Let a person type these lines when a command asks; return what the terminal shows of the questions."""
    typed, shown = io.StringIO("".join(f"{answer}\n" for answer in answers)), io.StringIO()
    patch.setattr(opened_services, "_asker", lambda *_, **__: ask.Terminal(typed, shown, "me"))
    return shown


@contextmanager
def unattended(patch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Let commands ask where nobody types; a question waits a hundredth of a second."""
    shown, (master, slave) = io.StringIO(), pty.openpty()
    with os.fdopen(slave, "r", encoding="utf-8") as read:
        patch.setattr(opened_services, "_asker", lambda *_, **__: ask.Terminal(read, shown, "me", timeout=lambda: 0.01))
        yield shown
    os.close(master)
