"""Checks of the commits that a builder made itself: pure functions over their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from idumb import lazy_pattern
from idumb.domain import wording
from idumb.domain.plans.plan import FileClaim
from idumb.domain.proof import ledger
from idumb.domain.proof.ledger import Change
from idumb.lazy_dataclass import dataclass

MOST = 100
"""The most commits of one task."""
MOST_BYTES = 64 * 1024
"""The most bytes of message, names and signature of one commit."""
MOST_NAME = 200
"""The most characters of a name and an address."""
_SHOWN = 200
_KNOWN = frozenset({b"tree", b"parent", b"author", b"committer", b"gpgsig", b"gpgsig-sha256"})
_PERSON = lazy_pattern.compile(r"([^<>]*) <([^<>]*)> ([0-9]{1,12}) [+-][0-9]{4}")
_OWN_TRAILER = lazy_pattern.compile(r"^Idumb-", re.MULTILINE | re.IGNORECASE)
_CONTROL = lazy_pattern.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_OBJECT = lazy_pattern.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Commit:
    """`author` and `committer` are `Name <address>`; `wrong` says why the bytes are not acceptable, or is empty.

    `changes` are relative to its first parent.
    """

    id: str
    tree: str
    parents: tuple[str, ...]
    author: str
    committer: str
    message: str
    wrong: str = ""
    changes: tuple[Change, ...] = ()

    def with_changes(self, changes: tuple[Change, ...]) -> Commit:
        return replace(self, changes=changes)

    @property
    def subject(self) -> str:
        """The first line, without control characters."""
        first = self.message.lstrip().partition("\n")[0]
        return "".join(c if c.isprintable() else " " for c in first)[:_SHOWN]

    def as_dict(self) -> dict[str, Any]:
        """Return what is recorded and shown of the commit."""
        return {
            "commit": self.id,
            "subject": self.subject,
            "author": self.author,
            "committer": self.committer,
            "files": [change.path for change in self.changes],
        }


def parse(oid: str, raw: bytes) -> Commit:
    """Parse the bytes of a commit object, valid or not; `wrong` says what is wrong with them."""
    headers, _, body = raw.partition(b"\n\n")
    rows = _rows(headers)
    fields = dict(reversed(rows))
    author, committer, message = (_text(v) for v in (fields.get(b"author", b""), fields.get(b"committer", b""), body))
    return Commit(
        oid,
        _text(fields.get(b"tree", b"")),
        tuple(_text(value) for name, value in rows if name == b"parent"),
        _shown(author),
        _shown(committer),
        message,
        _wrong(raw, rows, author, committer, message),
    )


def _rows(headers: bytes) -> list[tuple[bytes, bytes]]:
    """Return name and value of each header; a line that starts with a space continues the one before."""
    rows: list[tuple[bytes, bytes]] = []
    for line in headers.split(b"\n"):
        if line.startswith(b" ") and rows:
            rows[-1] = (rows[-1][0], rows[-1][1] + b"\n" + line[1:])
        else:
            name, _, value = line.partition(b" ")
            rows.append((name, value))
    return rows


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _shown(person: str) -> str:
    match = _PERSON.fullmatch(person)
    text = f"{match[1]} <{match[2]}>" if match else person
    return "".join(c if c.isprintable() else " " for c in text)[: 2 * MOST_NAME]


def _wrong(raw: bytes, rows: Sequence[tuple[bytes, bytes]], author: str, committer: str, message: str) -> str:
    if len(raw) > MOST_BYTES:
        return f"it has {len(raw)} bytes of message and names; {MOST_BYTES} are allowed"
    if b"\0" in raw:
        return "it holds a NUL byte"
    strange = next((name for name, _ in rows if name not in _KNOWN), None)
    if strange is not None:
        return f"it has the header {_text(strange)[:40]!r}, which idumb does not accept"
    once = [name for name, _ in rows]
    if any(once.count(name) != 1 for name in (b"tree", b"author", b"committer")):
        return "it does not have exactly one tree, author and committer"
    if not all(_OBJECT.fullmatch(_text(value)) for name, value in rows if name in (b"tree", b"parent")):
        return "its tree or parent is not an object id"
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return "its names or its message are not UTF-8"
    return _wrong_words("author", author) or _wrong_words("committer", committer) or _wrong_message(message)


def _wrong_words(who: str, person: str) -> str:
    match = _PERSON.fullmatch(person)
    if match is None or not match[1].strip() or not match[2].strip():
        return f"its {who} has no name or no address"
    if max(len(match[1]), len(match[2])) > MOST_NAME:
        return f"the name or the address of its {who} is longer than {MOST_NAME} characters"
    return f"its {who} holds control characters" if _CONTROL.search(person) else ""


def _wrong_message(message: str) -> str:
    if not message.strip():
        return "it has no message"
    if _CONTROL.search(message):
        return "its message holds control characters"
    if _OWN_TRAILER.search(message):
        return "its message has trailers that begin with Idumb-, which are idumb's own"
    return ""


def problem(chain: Sequence[Commit], base: str | None) -> str:
    """Return why a chain, oldest commit first, cannot be accepted on top of `base`, or "".

    The chain ends at the first commit that does not have exactly one parent, or one commit after the limit.
    """
    for commit in chain:
        if len(commit.parents) > 1:
            return f"{commit.id[:12]} merges {len(commit.parents)} commits; only a linear history is accepted"
    if len(chain) > MOST:
        return f"it made more than {MOST} commits, or they are not based on the task's base {_name(base)}"
    before = () if base is None else (base,)
    for commit in chain:
        if commit.parents != before:
            return f"{commit.id[:12]} is not based on {_name(base)}, where the task began: the history was rewritten"
        before = (commit.id,)
    bad = next((commit for commit in chain if commit.wrong), None)
    if bad is not None:
        return f"commit {bad.id[:12]} cannot be taken: {bad.wrong}"
    return _strange_entries(chain)


def _name(base: str | None) -> str:
    return "the empty history" if base is None else base[:12]


_MODES = frozenset({0o100644, 0o100755, 0o120000})


def _strange_entries(chain: Iterable[Commit]) -> str:
    for commit in chain:
        for change in commit.changes:
            modes = {entry.mode for entry in (change.old, change.new) if entry is not None}
            if 0o160000 in modes:
                return f"commit {commit.id[:12]} changes the submodule {change.path!r}; submodules are left alone"
            if change.new is not None and change.new.mode not in _MODES:
                return f"commit {commit.id[:12]} gives {change.path!r} the mode {change.new.mode:o}"
    return ""


def undeclared(
    chain: Iterable[Commit], files: Iterable[FileClaim] | None, protected: Sequence[str], accepted: Iterable[str]
) -> str:
    """Return, in words, the first undeclared path that a commit changes, even if a later commit reverts it."""
    claims, allowed = tuple(files or ()), tuple(accepted)
    for commit in chain:
        comparison = ledger.compare(claims, commit.changes, protected, allowed)
        strays = comparison.strays
        if strays:
            listed_paths = wording.listed(strays)
            return (
                f"commit {commit.id[:12]} changes what the task does not declare: {listed_paths};"
                " a later commit does not remove it from the history"
            )
    return ""
