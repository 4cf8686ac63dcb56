"""Paths in the words of a task, and names made of words."""

from __future__ import annotations

import hashlib
import re

_WORDS = re.compile(r"\w+")
_LONGEST_NAME = 48
_PATH = re.compile(r"`([^`\s]+[./][^`\s]*)`|(?<![\w/@:.~-])((?:[\w.@-]+/)+[\w.@-]+\.\w+)(?![\w/])")
# Endings of files; without one of them, a name without a folder may be a method such as `console.log`.
_USUAL = re.compile(
    r"\w\.(?:c|cc|cfg|[cm]?[jt]sx?|conf|cpp|cs|css|csv|dart|env|exs?|go|gradle|graphql|h|hpp|html|ini|ipynb|java|jpg|json[c5]?"
    r"|kts?|less|lock|lua|m|mdc?|mdx|php|pl|png|prisma|properties|proto|ps1|pyi?|r|rb|rs|rst|s[ac]ss|scala|sh|sol|sql"
    r"|sum|svelte|svg|swift|tf|toml|txt|vue|wasm|xml|ya?ml|zig)\Z"
)
FILES = "Files: paths in the text"


def paths_in(text: str) -> tuple[str, ...]:
    """Return what looks like paths of files in a text, in order."""
    if "`" not in text and "/" not in text:
        return ()
    words = (word for word in text.split() if "/" in word or "`" in word)
    found = ((match[1] or match[2]).rstrip(".,;:)") for word in words for match in _PATH.finditer(word))
    return tuple(dict.fromkeys(path.removeprefix("./") for path in found if _is_file(path)))


def _is_file(path: str) -> bool:
    if path.startswith(("http", "/", "-", "@", "~")) or "://" in path or re.search(r"[(){}<>$=*|\\,]", path):
        return False
    return "/" in path.strip("/") or _USUAL.search(path[-12:]) is not None


def guessed(files: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is inferred if files were found in a text."""
    return (FILES,) if files else ()


def name(text: str) -> str:
    """Return the words of a text, joined by `-`; a long text is cut and gets a digest."""
    whole = "-".join(_WORDS.findall(text.casefold()))
    if whole and len(whole) <= _LONGEST_NAME:
        return whole
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{whole[: _LONGEST_NAME - 9].rstrip('-')}-{digest}".lstrip("-")
