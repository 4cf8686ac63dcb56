"""Did a process end? A killed one takes a moment, more of them on a busy machine."""

from __future__ import annotations

from idumb.system import process_end, process_tree


def has_ended(pid: int, within: float = 30) -> bool:
    """Wait for the end of a process; return False if it is still alive after so many seconds."""
    process_end.wait_gone([pid], within)
    return not process_tree.is_alive(pid)
