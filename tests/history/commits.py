"""The changes of a range of first-parent history: every path as text, every blob as bytes."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ABSENT = "000000"
LINK = "120000"
SUBMODULE = "160000"
OWN = (".planning", ".idumb")


@dataclass(frozen=True, slots=True)
class Change:
    """One path of one commit; modes are git's six digits, `ABSENT` if the path is absent. `oid` is the new blob."""

    path: str
    before: str
    after: str
    oid: str

    @property
    def deleted(self) -> bool:
        return self.after == ABSENT

    @property
    def verb(self) -> str:
        if self.before == ABSENT:
            return "create"
        return "delete" if self.deleted else "modify"


@dataclass(frozen=True, slots=True)
class Commit:
    oid: str
    parent: str
    subject: str
    changes: tuple[Change, ...]


def git(root: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Return the standard output of git; a failure is an error with git's message."""
    done = subprocess.run(["git", *arguments], cwd=root, input=given, capture_output=True, check=False)
    if done.returncode:
        message = f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}"
        raise RuntimeError(message)
    return done.stdout


def first_parents(root: Path, tip: str) -> list[str]:
    """The commits that lead to `tip`, the oldest first."""
    return git(root, "rev-list", "--first-parent", "--reverse", tip).decode().split()


def between(root: Path, base: str, tip: str) -> list[Commit]:
    """The first-parent commits after `base` up to `tip`, the oldest first."""
    base = git(root, "rev-parse", "--verify", f"{base}^{{commit}}").decode().strip()
    line = first_parents(root, tip)
    if base not in line:
        message = f"{base} is not on the first-parent line of {tip}"
        raise ValueError(message)
    chosen = line[line.index(base) :]
    return [_commit(root, parent, oid) for parent, oid in itertools.pairwise(chosen)]


def _commit(root: Path, parent: str, oid: str) -> Commit:
    subject = (
        git(root, "log", "-1", "--format=%s", "--encoding=UTF-8", oid).decode("utf-8", "replace").removesuffix("\n")
    )
    return Commit(oid, parent, subject, tuple(_changes(root, parent, oid)))


def _changes(root: Path, parent: str, oid: str) -> Iterator[Change]:
    raw = git(root, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", parent, oid).split(b"\0")
    for meta, name in zip(raw[::2], raw[1::2], strict=False):
        before, after, _, new, _ = meta.decode().lstrip(":").split(" ")
        path = os.fsdecode(name)
        if path.partition("/")[0] not in OWN:
            yield Change(path, before, after, new)


def blobs(root: Path, oids: Sequence[str]) -> dict[str, bytes]:
    """Bytes by id, in one process."""
    unique = list(dict.fromkeys(oids))
    out = git(root, "cat-file", "--batch", given="".join(f"{oid}\n" for oid in unique).encode()) if unique else b""
    contents: dict[str, bytes] = {}
    at = 0
    for oid in unique:
        end = out.index(b"\n", at)
        size = int(out[at:end].split(b" ")[2])
        contents[oid] = out[end + 1 : end + 1 + size]
        at = end + size + 2
    return contents


def tree_aside_own(root: Path, revision: str) -> str:
    """The id of a commit's tree without idumb's own folders, so that histories are compared as git compares them."""
    rows = git(root, "ls-tree", "-z", revision).split(b"\0")
    kept = [row for row in rows if row and os.fsdecode(row.partition(b"\t")[2]) not in OWN]
    return git(root, "mktree", "-z", given=b"".join(row + b"\0" for row in kept)).decode().strip()
