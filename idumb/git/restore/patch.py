"""Differences as text, and patches: applied to a tree first, then restored into the working tree path by path."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from idumb.app.ports.repository import Conflict
from idumb.domain.proof.ledger import Change
from idumb.git import git_program
from idumb.git.discover import Repository
from idumb.system.files import user_folders

_PLAIN = ("-r", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--full-index")

Counts = Mapping[str, tuple[int | None, int | None]]
"""Return path to lines added and removed; None for binary files."""


class Target(Protocol):
    """The part of `GitTrees` that applying a patch needs."""

    def scan(self, also: Iterable[str] = ()) -> str: ...
    def changes(self, old: str, new: str) -> tuple[Change, ...]: ...
    def restore(self, target: str, expected: str, paths: Iterable[str]) -> tuple[Conflict, ...]: ...


def diff(place: Repository, old: str, new: str, paths: Sequence[str] = ()) -> str:
    """Return a unified diff with `a/` and `b/`; bytes that are not UTF-8 are surrogate escapes."""
    options = [*_PLAIN, "-p", "--binary", "--src-prefix=a/", "--dst-prefix=b/"]
    return _between(place, [*options, old, new, "--", *paths]).decode("utf-8", "surrogateescape")


def line_counts(place: Repository, old: str, new: str) -> Counts:
    out = _between(place, [*_PLAIN, "--numstat", "-z", old, new])
    counts: dict[str, tuple[int | None, int | None]] = {}
    for row in out.split(b"\0"):
        added, _, rest = row.partition(b"\t")
        removed, _, path = rest.partition(b"\t")
        if path:
            counts[os.fsdecode(path)] = (_number(added), _number(removed))
    return counts


def _between(place: Repository, arguments: Sequence[str]) -> bytes:
    return git_program.between_trees(place.root, place.git_dir, ["diff-tree", *arguments])


def _number(text: bytes) -> int | None:
    return None if text == b"-" else int(text)


def apply(trees: Target, place: Repository, text: str, allowed: Callable[[str], str | None]) -> tuple[bool, str]:
    """Return (applied, reason). The patch is applied to a private index of the present bytes.

    So every path is judged before anything is written.
    """
    present = trees.scan()
    with tempfile.TemporaryDirectory(prefix="patch-", dir=_folder(place)) as folder:
        patched = _patched(place.root, os.path.join(folder, "index"), present, text)
    if isinstance(patched, git_program.Result):
        return False, patched.words
    paths = [change.path for change in trees.changes(present, patched)]
    for path in paths:
        why = allowed(path)
        if why is not None:
            return False, f"{path}: {why}"
    conflicts = trees.restore(patched, present, paths)
    if conflicts:
        return False, "; ".join(f"{conflict.path} {conflict.why}" for conflict in conflicts)
    return True, ""


def _folder(place: Repository) -> str:
    user_folders.make_below(place.common_dir, place.state_dir)
    return place.state_dir


def _patched(root: str, index: str, present: str, text: str) -> str | git_program.Result:
    extra = {"GIT_INDEX_FILE": index}
    given = text.encode("utf-8", "surrogateescape")
    for arguments, data in (
        (["read-tree", present], b""),
        (["apply", "--cached", "--whitespace=nowarn", "-"], given),
    ):
        result = git_program.write(root, arguments, data, extra=extra)
        if result.status != 0:
            return result
    return git_program.write(root, ["write-tree"], extra=extra).out.decode("ascii").strip()
