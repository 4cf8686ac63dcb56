"""The files that a check reads, for checks whose text shows all of them. Pure; nothing is expanded or run."""

from __future__ import annotations

from collections.abc import Iterable

from idumb.domain.plans import shell
from idumb.domain.plans.plan import Condition

_PROGRAMS = frozenset({":", "[", "cat", "cmp", "diff", "egrep", "false", "fgrep", "grep", "head", "ls", "tail", "test",
                       "true", "wc"})  # fmt: skip
"""Programs that read only the files that they name."""

_JOINING = frozenset({"&&", "||", ";", "|", "\n"})
_GREP = frozenset({"egrep", "fgrep", "grep"})
_BY_TIME = frozenset({"-ef", "-nt", "-ot"})


def of_command(command: str) -> frozenset[str] | None:
    """Return paths that include every file and folder that the command reads; None if its text does not show them."""
    inputs: set[str] = set()
    words: list[str] = []
    for token in (*shell.tokens(command), ";"):
        if isinstance(token, shell.Word):
            if not token.literal and token.text != "[":
                return None
            if token.text.startswith("~") and not token.quoted:
                return None
            words.append(token.text)
        elif token not in _JOINING:
            return None
        else:
            found = _of_words(words)
            if found is None:
                return None
            inputs |= found
            words = []
    return frozenset(inputs)


def of_condition(condition: Condition) -> frozenset[str] | None:
    """Return the same for a condition."""
    if condition.kind == "command":
        return of_command(condition.subject)
    if condition.kind == "env":
        return frozenset()
    return _paths([condition.path or ""] if condition.kind == "symbol" else [condition.subject])


def _of_words(words: list[str]) -> frozenset[str] | None:
    while words and words[0] == "!":
        words = words[1:]
    if not words:
        return frozenset()
    program, *rest = words
    if program not in _PROGRAMS or not _BY_TIME.isdisjoint(rest):
        return None
    options = [word for word in rest if word.startswith("-")]
    if any("=" in option for option in options):
        return None  # such as --file=patterns.txt
    if program in _GREP:
        short = "".join(option for option in options if not option.startswith("--"))
        searches = not {"r", "R"}.isdisjoint(short) or any("recursive" in option for option in options)
        if "f" in short or (searches and len(rest) - len(options) < 2):
            return None  # patterns from a file, or a search of the whole tree
    if program in {"ls", "diff"} and len(rest) == len(options):
        return None
    return _paths(word for word in rest if not word.startswith("-") and word != "]")


def _paths(words: Iterable[str]) -> frozenset[str] | None:
    """Return the words as paths of the tree; a word that is no path does no harm. None if one may lead elsewhere."""
    paths = set()
    for word in words:
        parts = [part for part in word.split("/") if part not in {"", "."}]
        if word.startswith("/") or ".." in parts or (word and not parts):
            return None
        paths.add("/".join(parts))
    return frozenset(paths - {""})
