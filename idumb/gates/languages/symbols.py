"""The texts of what a file defines, by name, in Python. Other languages are not judged."""

from __future__ import annotations

from idumb.domain.proof.symbols import Definitions
from idumb.gates.languages import python_source

_LONGEST = 4 * 1024 * 1024


def definitions(path: str, data: bytes) -> Definitions | None:
    """Return the texts by name; None if the language is unknown or the file cannot be parsed."""
    if not path.endswith((".py", ".pyi")) or len(data) > _LONGEST:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    listed = python_source.places(text)
    if listed is None:
        return None
    lines = text.split("\n")
    texts: dict[str, list[str]] = {}
    for name, first, last in listed:
        texts.setdefault(name, []).append("\n".join(line.rstrip("\r") for line in lines[first:last]))
    return {name: tuple(found) for name, found in texts.items()}
