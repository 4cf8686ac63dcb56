"""Read the frontmatter of reports and research files that idumb wrote, perhaps on another machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LIMIT = 64 * 1024
WORDS = ("SUMMARY", "VERIFICATION")


def metadata(data: bytes, kind: str) -> Mapping[str, Any] | None:
    """Return the frontmatter of a report whose `type` is `kind`; None for anything else."""
    if len(data) > LIMIT and b"\n---" not in data[:LIMIT]:
        return None
    import frontmatter

    try:
        values = frontmatter.loads(data[:LIMIT].decode("utf-8", "replace")).metadata
    # Reports are not trusted, and foreign YAML makes this library raise almost anything.
    except Exception:  # noqa: BLE001
        return None
    return values if values.get("type") == kind.lower() else None


RESEARCH = "RESEARCH"


def research(text: str) -> tuple[str | None, str]:
    """Return the bundle digest of a research file (None if idumb did not write it) and its text without frontmatter."""
    values = metadata(text.encode("utf-8", "surrogateescape"), RESEARCH)
    if values is None or not isinstance(values.get("bundle"), str):
        return None, text
    return values["bundle"], text.partition("\n---\n")[2].lstrip("\n")
