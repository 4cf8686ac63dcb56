"""A run on a terminal: progress, event lines, questions."""

from __future__ import annotations

import os
from typing import TextIO


def columns(stream: TextIO | None) -> int | None:
    """Return the columns of the terminal that the stream is; None if it is none."""
    try:
        if stream is None or not stream.isatty():
            return None
        wide = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return None
    return wide if wide >= 20 else 80  # some terminals say 0
