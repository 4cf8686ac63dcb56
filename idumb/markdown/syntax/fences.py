"""Where a fence at the margin closes, without looking at the lines between."""

from __future__ import annotations


def closing(text: str, position: int, mark: str) -> int | None:
    """The offset of the line that closes a fence opened with `mark`, from the line at `position` on, or None."""
    at = text.find(mark, position)
    while at != -1:
        begin = text.rfind("\n", position, at) + 1 or position
        end = text.find("\n", at)
        line = text[at:end] if end != -1 else text[at:]
        if at - begin <= 3 and not text[begin:at].strip(" ") and not line.rstrip(" \t\r").strip(mark[0]):
            return begin
        at = text.find(mark, end) if end != -1 else -1
    return None
