"""The front matter of other tools' Markdown as plain values; these tools do not write YAML strictly."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from idumb import lazy_pattern

_HEAD = lazy_pattern.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_AT = lazy_pattern.compile(r"^(\s*(?:-\s+|[\w-]+:\s+))(@\S.*)$", re.MULTILINE)
# Values that YAML does not take without quotes, and that people and models write so.
_UNQUOTED = lazy_pattern.compile(
    r"^([ \t]*(?:-[ \t]+)?[\w-]+:[ \t]+)((?:[`%&*!]|[^\s'\"\[{|>#][^\r\n]*?:[ \t])[^\r\n]*?)(?=[ \t]*\r?$)",
    re.MULTILINE,
)


# Several formats look at the front matter before one of them reads the file.
@functools.lru_cache(maxsize=1)
def read(text: str) -> tuple[Mapping[str, Any], str]:
    """Return the front matter, {} if it is absent or unreadable, and the text after it."""
    match = _HEAD.match(text)
    if match is None:
        return {}, text
    import frontmatter

    quoted = _AT.sub(lambda line: f"{line[1]}{line[2]!r}", match[1])  # Backlog.md writes `- @name`
    for yaml in (quoted, _UNQUOTED.sub(_with_quotes, quoted)):
        try:
            return frontmatter.loads(f"---\n{yaml}---\n").metadata, text[match.end() :]
        except Exception:  # noqa: BLE001, S112 - foreign YAML makes this library raise almost anything
            continue
    return {}, text[match.end() :]


def _with_quotes(line: re.Match[str]) -> str:
    value = line[2].replace("'", "''")
    return f"{line[1]}'{value}'"


def texts(values: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a value as texts: a list, or one text."""
    value = values.get(name)
    rows = value if isinstance(value, list) else [value] if value else []
    return tuple(str(row).strip() for row in rows if not isinstance(row, dict | list) and str(row).strip())
