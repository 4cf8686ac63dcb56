"""The frontmatter of reports that idumb wrote, perhaps on another machine: history that was not witnessed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LIMIT = 64 * 1024
WORDS = ("SUMMARY", "VERIFICATION")


def metadata(data: bytes, kind: str) -> Mapping[str, Any] | None:
    """The frontmatter of a report whose `type` is `kind`; None for anything else, however broken."""
    if len(data) > LIMIT and b"\n---" not in data[:LIMIT]:
        return None
    import frontmatter

    try:
        found = frontmatter.loads(data[:LIMIT].decode("utf-8", "replace")).metadata
    except (
        Exception
    ):  # YAML from elsewhere makes this library raise almost anything; a report is only told, not trusted
        return None
    return found if isinstance(found, dict) and found.get("type") == kind.lower() else None
