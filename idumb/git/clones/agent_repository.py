"""Read the git folder that an agent worked in as untrusted data: bounded, and without starting git there.

Its configuration, hooks, attributes and refs are not used. Its branch is read as text, and its objects through libgit2,
which checks each against its id.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import field

import pygit2
from pygit2.enums import ObjectType

from idumb import lazy_pattern
from idumb.domain.proof import builder_commits
from idumb.domain.proof.builder_commits import Commit
from idumb.git import head_file
from idumb.git.objects import object_writer, tree_objects
from idumb.git.objects.tree_objects import SUBMODULE, Item
from idumb.lazy_dataclass import dataclass

MOST_FILES = 200_000
MOST_STEPS = 5_000_000
"""The most tree rows to read for all commits together: small trees can refer to each other exponentially."""
MOST_BYTES = 512 << 20
_OID = lazy_pattern.compile(r"[0-9a-f]{40}")


class Unusable(Exception):
    """Why nothing can be taken from the clone, in words that follow the task's id."""


@dataclass(slots=True)
class Objects:
    """The objects of a folder and of the user's repository behind it, with the remaining reading budget."""

    odb: pygit2.Odb
    steps: int = MOST_STEPS
    room: int = MOST_BYTES
    rows: dict[bytes, dict[str, Item]] = field(default_factory=dict)

    def read(self, oid: bytes, kind: ObjectType, most: int | None = None) -> bytes:
        """Return an object of this kind; Unusable if it is missing, damaged, of another kind, or too large."""
        name = pygit2.Oid(oid)
        try:
            actual, size = self.odb.read_header(name)
            if actual != kind:
                raise Unusable(f"object {oid.hex()[:12]} is no {kind.name.lower()}")
            if size > (most if most is not None else self.room):
                raise Unusable(f"object {oid.hex()[:12]} has {size} bytes, more than idumb takes")
            data: bytes = self.odb.read(name)[1]
        except (KeyError, ValueError, pygit2.GitError, MemoryError) as problem:
            raise Unusable(f"object {oid.hex()[:12]} is missing or damaged") from problem
        self.room -= len(data)
        if self.room < 0:
            raise Unusable(f"its commits hold more than {MOST_BYTES >> 20} MiB")
        return data

    def tree(self, oid: bytes) -> dict[str, Item]:
        """Return the rows of a tree that git itself would write; Unusable for any other."""
        if oid.hex() == tree_objects.EMPTY_TREE:
            return {}
        if oid not in self.rows:
            self.rows[oid] = _parsed(oid, self.read(oid, ObjectType.TREE))
        self.steps -= len(self.rows[oid])
        if self.steps < 0:
            raise Unusable("its commits change more files than idumb can inspect")
        return self.rows[oid]


def _parsed(oid: bytes, data: bytes) -> dict[str, Item]:
    try:
        rows = tree_objects.parse(data)
        same = object_writer.encoded_tree(rows) == data
    except ValueError:
        same = False
    if not same or any(_unsafe(name) for name in rows):
        raise Unusable(f"tree {oid.hex()[:12]} is not as git writes it, or holds an unsafe name")
    return rows


def _unsafe(name: str) -> bool:
    return name in {"", ".", ".."} or "/" in name or name.lower() in {".git", "git~1"}


def require_plain(folder: str, alternates: bytes) -> None:
    """Require that its objects are plain files and folders, and that it borrows from the user's repository alone."""
    for number, (path, status) in enumerate(_below(os.path.join(folder, "objects"))):
        if number > MOST_FILES:
            raise Unusable(f"its git folder has more than {MOST_FILES} files")
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise Unusable(f"{os.path.relpath(path, folder)} in its git folder is not a regular file")
    if head_file.text(os.path.join(folder, "objects", "info", "alternates")) != alternates:
        raise Unusable("it made its clone borrow objects from elsewhere")


def _below(top: str) -> Iterator[tuple[str, os.stat_result]]:
    """List everything, without following links; Unusable if that fails."""
    stack = [top]
    try:
        yield top, os.lstat(top)
        while stack:
            with os.scandir(stack.pop()) as entries:
                for entry in entries:
                    yield entry.path, entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
    except OSError as problem:
        raise Unusable(f"the objects of its clone cannot be read: {problem.strerror}") from problem


def tip(folder: str, branch: str) -> str | None:
    """Return the commit of the branch that idumb created, None before the first; Unusable if HEAD is elsewhere."""
    head = (head_file.text(os.path.join(folder, "HEAD")) or b"").decode("utf-8", "replace").strip()
    ref = f"refs/heads/{branch}"
    if _OID.fullmatch(head):
        raise Unusable(f"it left HEAD detached at {head[:12]}, not on the branch {branch} that it was given")
    if head != f"ref: {ref}":
        raise Unusable(f"it left HEAD on another branch than {branch}, which it was given")
    loose = head_file.text(os.path.join(folder, ref))
    if loose is not None:
        commit = loose.decode("ascii", "replace").strip()
        if not _OID.fullmatch(commit):
            raise Unusable(f"its branch {branch} names no commit")
        return commit
    if os.path.lexists(os.path.join(folder, ref)):
        raise Unusable(f"its branch {branch} is not a regular file")
    return head_file.packed(folder, os.fsencode(ref))


def chain(
    objects: Objects, last: str, base: str | None, is_known: Callable[[str], bool] = lambda _: False
) -> tuple[Commit, ...]:
    """Return the commits after `base`, or after one that `is_known`, up to `last`.

    Stops early at the first that `commits.problem` rejects.
    """
    commits: list[Commit] = []
    at: str | None = last
    while at is not None and at != base and not is_known(at) and len(commits) <= builder_commits.MOST:
        commit = builder_commits.parse(
            at, objects.read(bytes.fromhex(at), ObjectType.COMMIT, builder_commits.MOST_BYTES)
        )
        commits.append(commit)
        at = commit.parents[0] if len(commit.parents) == 1 and _OID.fullmatch(commit.parents[0]) else None
    return tuple(reversed(commits))


def new_objects(objects: Objects, old: str, new: str) -> Iterator[tuple[ObjectType, bytes]]:
    """Return kind and id of the objects that `new` refers to and `old` does not; trees after their content."""
    trees = [bytes.fromhex(new)]
    for path, _, now in tree_objects.differences(objects.tree, bytes.fromhex(old), bytes.fromhex(new)):
        if now is not None and path.endswith("/"):
            trees.append(now.oid)
        elif now is not None and now.mode != SUBMODULE:
            yield ObjectType.BLOB, now.oid
    for oid in reversed(trees):
        yield ObjectType.TREE, oid
