"""Find the end of a top-level fence by a text search."""

from __future__ import annotations


def closing(text: str, position: int, mark: str) -> int | None:
    """Return the offset of the line that closes a fence opened with `mark`, searching from `position`, or None."""
    at = text.find(mark, position)
    while at != -1:
        begin = text.rfind("\n", position, at) + 1 or position
        end = text.find("\n", at)
        line = text[at:end] if end != -1 else text[at:]
        if at - begin <= 3 and not text[begin:at].strip(" ") and not line.rstrip(" \t\r").strip(mark[0]):
            return begin
        at = text.find(mark, end) if end != -1 else -1
    return None
