"""A phase's research file: whether idumb made it, of which bundle, and what it says."""

from __future__ import annotations

from idumb.markdown.documents import report_frontmatter

WORD = "RESEARCH"


def read(text: str) -> tuple[str | None, str]:
    """The digest in the frontmatter, None for a file that idumb did not make; the text behind the frontmatter."""
    found = report_frontmatter.metadata(text.encode("utf-8", "surrogateescape"), WORD)
    if found is None or not isinstance(found.get("bundle"), str):
        return None, text
    return found["bundle"], text.partition("\n---\n")[2].lstrip("\n")
