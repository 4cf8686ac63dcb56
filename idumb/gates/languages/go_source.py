"""The declarations of a Go file as gofmt writes them: each begins in the first column, or one tab deep in a group."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

_KINDS = ("func", "type", "var", "const")
_ENDS = {"//": "\n", "/*": "*/", '"': '"', "`": "`", "'": "'"}
"""Of comments and literals, by their beginnings."""


class Declaration(NamedTuple):
    """`name` has its receiver, as in `Store.Save`. `first` is its line, from 0, `last` the line after its end.

    `head` is its text up to the body, `body` the rest, both without comments and strings.
    """

    kind: str
    name: str
    first: int
    last: int
    head: str
    body: str

    @property
    def is_exported(self) -> bool:
        return all(part[:1].isupper() for part in self.name.split("."))

    @property
    def contract(self) -> str:
        """What callers rely on: a signature, a type with its exported and embedded fields, the type of a value."""
        relied = [self.head]
        if self.kind == "type":
            is_open = "interface" in self.head
            lines = self.body.split("\n")
            relied += [line for line in lines if is_open or len(line.split()) == 1 or line.strip()[:1].isupper()]
        elif self.kind != "func":
            relied = self.head.removeprefix(self.kind).partition("=")[0].rpartition(",")[2].split()[1:]
        return " ".join("\n".join(relied).replace("interface{}", "any").split())


def declarations(text: str) -> Iterator[Declaration]:
    """Yield the declarations of the file; those of its functions are not among them."""
    lines, group = _blanked(text).split("\n"), ""
    for number, line in enumerate(lines):
        kind, _, rest = line.partition(" ")
        if line[:1] not in {"", "\t", " "}:
            group = kind if rest.rstrip() == "(" and kind in _KINDS else ""
        if group and line[:1] == "\t" and _word(line[1:]):
            kind, rest, depth = group, line[1:], "\t"
        elif kind in _KINDS and not group:
            depth = ""
        else:
            continue
        last = _end(lines, number, depth)
        head, _, body = "\n".join(lines[number:last]).partition(" {")
        for name in _names(kind, rest):
            yield Declaration(kind, name, number, last, head, body)


def _end(lines: list[str], first: int, depth: str) -> int:
    last = first + 1
    for number in range(last, len(lines)):
        line = lines[number]
        if line.strip():
            is_label = line.rstrip().endswith(":")
            if not is_label and not line.startswith(tuple(depth + each for each in "\t })")):
                break
            last = number + 1
    return last


def _names(kind: str, rest: str) -> Iterator[str]:
    owner = ""
    if kind == "func" and rest.startswith("("):
        receiver, _, rest = rest[1:].partition(")")
        owner = f"{_word((receiver.partition('[')[0].split() or [''])[-1].lstrip('*'))}."
    while name := _word(rest.lstrip()):
        yield owner + name
        rest = rest.lstrip()[len(name) :]
        if kind in {"func", "type"} or not rest.startswith(","):
            break
        rest = rest[1:]


def _word(text: str) -> str:
    return "".join(takewhile(lambda c: c.isalnum() or c == "_", text))


def has_no_callers(text: str, path: str) -> bool:
    """Return whether other packages cannot import the file: it is of a program, or of an internal package."""
    return "\npackage main\n" in f"\n{text}" or "internal" in path.split("/")


def branches(text: str) -> int:
    """Return how many branches the file has."""
    bare = _blanked(text)
    return sum(word in {"if", "for", "case"} for word in words(bare)) + bare.count("&&") + bare.count("||")


def imported(text: str) -> set[str]:
    """Return what the file imports, in quotes as it is written."""
    names, inside = set[str](), False
    for line in text.split("\n"):
        inside = line.startswith("import (") or (inside and not line.startswith(")"))
        if inside or line.startswith("import "):
            names |= {word for word in line.split() if word.startswith('"')}
    return names


def words(text: str) -> list[str]:
    """Return the names in a text, with those that a dot joins to them: `t.Error`."""
    return "".join(c if c.isalnum() or c in "_." else " " for c in text).split()


def _blanked(text: str) -> str:
    """Return a text of the same length and lines, with blanks instead of comments and of what is in quotes."""
    kept, place = list[str](), 0
    while place < len(text):
        start, two = place, text[place : place + 2]
        opening = two if two in _ENDS else two[0]
        if opening not in _ENDS:
            kept.append(opening)
            place += 1
            continue
        place = _closed(text, place + len(opening), opening)
        kept.append("".join("\n" if c == "\n" else " " for c in text[start:place]))
    return "".join(kept)


def _closed(text: str, place: int, opening: str) -> int:
    """Return where a comment or literal ends."""
    end = _ENDS[opening]
    if opening in "\"'":
        while place < len(text) and text[place] not in (end, "\n"):
            place += 2 if text[place] == "\\" else 1
        return place + 1
    found = text.find(end, place)
    return len(text) if found < 0 else found + len(end) - (opening == "//")
