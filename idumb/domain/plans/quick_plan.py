"""Quick plans: one task that a person names on the command line. Their names, and what a wish becomes.

The phase of the third quick plan is `Q3`, its task `TQ3-01`, its folder `.planning/quick/003-fix-the-typo`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from idumb.domain import paths

FOLDER = ".planning/quick"
PLAN = "01-PLAN.md"
LONGEST_TITLE = 100
_LONGEST_SLUG = 40
_PHASE = re.compile(r"[Qq]0*([1-9][0-9]{0,5})")
_NUMBERED = re.compile(r"0*([1-9][0-9]{0,5})(?:-|$)")
_EVERYTHING = ("create", "modify", "delete")
ANYWHERE = tuple((verb, "**") for verb in _EVERYTHING)
"""Where nobody said which files change. A person looks at them then."""


@dataclass(frozen=True, slots=True)
class QuickRequest:
    """One task in a person's words.

    `files` are (verb, path) pairs, None where nobody said which files change. `check` is the command that proves it,
    `builder` the name of a binding; None where the configuration's builder is meant.
    """

    words: str
    files: tuple[tuple[str, str], ...] | None = None
    check: str | None = None
    builder: str | None = None

    @property
    def title(self) -> str:
        """The words on one line, cut to a length that fits a heading."""
        line = " ".join(self.words.split())
        return line if len(line) <= LONGEST_TITLE else line[: LONGEST_TITLE - 1].rstrip() + "…"


def phase(number: int) -> str:
    return f"Q{number}"


def number_of(phase: str) -> int | None:
    """3 of `Q3`, `q3` and `Q003`; None for every other phase."""
    match = _PHASE.fullmatch(phase)
    return int(match[1]) if match else None


def number_in(folder: str) -> int | None:
    """The number of a folder's name, `003-fix-the-typo`; None where it has none."""
    match = _NUMBERED.match(folder)
    return int(match[1]) if match else None


def folder(number: int, words: str) -> str:
    """Where the plan lies, from the repository's root."""
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode().lower()
    slug = "-".join(re.findall("[a-z0-9]+", plain))[:_LONGEST_SLUG].strip("-")
    return f"{FOLDER}/{number:03d}{'-' if slug else ''}{slug}"


def claims(named: Iterable[str], exists: Callable[[str], bool]) -> tuple[tuple[str, str], ...]:
    """What the task may do to the files that were named, as (verb, path).

    A file that is there is to be modified, one that is not is to be created, and either must happen. Below a folder and
    behind a wildcard anything may happen, and nothing must.
    """
    found = []
    for path in dict.fromkeys(named):
        if paths.has_wildcard(path):
            found += [(verb, path) for verb in _EVERYTHING]
        else:
            found.append(("modify" if exists(path) else "create", path))
    return tuple(found)
