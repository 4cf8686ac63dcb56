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
    # A report is only told, never trusted, and YAML from elsewhere makes this library raise almost anything.
    except Exception:  # noqa: BLE001
        return None
    return found if found.get("type") == kind.lower() else None


RESEARCH = "RESEARCH"


def research(text: str) -> tuple[str | None, str]:
    """The digest in the frontmatter, None for a file that idumb did not make; the text behind the frontmatter."""
    found = metadata(text.encode("utf-8", "surrogateescape"), RESEARCH)
    if found is None or not isinstance(found.get("bundle"), str):
        return None, text
    return found["bundle"], text.partition("\n---\n")[2].lstrip("\n")
