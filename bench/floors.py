"""The lower bounds that idumb is compared with.

The least code that does a comparable thing, without checks or proofs.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterable, Mapping

import pygit2

from bench.material import Place

_WHO = ("bench", "bench@localhost", 1_700_000_000, 0)
_HEADING = re.compile(r"#{3,6} (T[0-9.]+-[0-9]{2,}): (.*)")
_FIELD = re.compile(r"- \*\*([A-Za-z ]+):\*\*\s*(.*)")


def scan_lines(text: str) -> dict[str, dict[str, list[str]]]:
    """Return tasks and their fields from a scan of each line; fences are skipped. No nesting, errors or spans."""
    tasks: dict[str, dict[str, list[str]]] = {}
    fields: dict[str, list[str]] = {}
    values: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if fence:
            fence = "" if line.startswith(fence) else fence
        elif line.startswith(("```", "~~~")):
            fence = line[:3]
        elif line.startswith("#") and (heading := _HEADING.match(line)):
            fields = tasks[heading[1]] = {"title": [heading[2]]}
        elif line.startswith("- ") and (field := _FIELD.match(line)):
            values = fields[field[1].lower()] = [field[2]]
        elif line.startswith("  -"):
            values.append(line)
    return tasks


class Database:
    """Raw SQLite: one row a transition and one row of state, in one transaction forced to disk."""

    def __init__(self, path: str, journal: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute(f"PRAGMA journal_mode={journal}")
        self._connection.execute("PRAGMA synchronous=FULL")
        columns = "seq INTEGER PRIMARY KEY, run TEXT, kind TEXT, payload TEXT"
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS e({columns})")
        self._connection.execute("CREATE TABLE IF NOT EXISTS s(task TEXT PRIMARY KEY, status TEXT)")

    def write(self, task: str, payloads: Iterable[str]) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        for payload in payloads:
            execute("INSERT INTO e(run, kind, payload) VALUES('run', 'kind', ?)", (payload,))
        execute("INSERT OR REPLACE INTO s VALUES(?, 'done')", (task,))
        execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


def spawn_twice(place: Place, path: str, number: int) -> None:
    """What a shell loop starts for a task: the builder, which appends a line, and the check."""
    for command in (f"echo '# {number}' >> {path}", "true"):
        subprocess.run(["/bin/sh", "-c", command], cwd=place.root, env=place.env, capture_output=True, check=True)


class Trees:
    """Asks git what changed and writes blobs, the trees above them and a commit with libgit2, forced to disk."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._repository = pygit2.Repository(place.root)
        self._tip = self._repository.head.peel(pygit2.Commit)

    @property
    def tree(self) -> str:
        """Return the tree of the last commit."""
        return str(self._tip.tree_id)

    def changed(self) -> list[str]:
        rows = self._place.git("status", "--porcelain", "-z", "-uall").split(b"\0")
        return [os.fsdecode(row[3:]) for row in rows if row]

    def commit(self, paths: Iterable[str], ref: str) -> None:
        pygit2.option(pygit2.enums.Option.ENABLE_FSYNC_GITDIR, 1)
        blobs = {tuple(p.split("/")): self._repository.create_blob_fromworkdir(p) for p in paths}
        tree = self._tree(self._tip.tree, blobs)
        who = pygit2.Signature(*_WHO)
        commit_id = self._repository.create_commit(None, who, who, "snapshot", tree, [self._tip.id])
        self._repository.references.create(ref, commit_id, force=True)
        self._tip = self._repository[commit_id].peel(pygit2.Commit)
        pygit2.option(pygit2.enums.Option.ENABLE_FSYNC_GITDIR, 0)

    def _tree(self, tree_before: pygit2.Tree | None, blobs: Mapping[tuple[str, ...], pygit2.Oid]) -> pygit2.Oid:
        builder = (
            self._repository.TreeBuilder(tree_before) if tree_before is not None else self._repository.TreeBuilder()
        )
        below: dict[str, dict[tuple[str, ...], pygit2.Oid]] = {}
        for parts, oid in blobs.items():
            if len(parts) == 1:
                builder.insert(parts[0], oid, pygit2.enums.FileMode.BLOB)
            else:
                below.setdefault(parts[0], {})[parts[1:]] = oid
        for name, inner in below.items():
            entry = builder.get(name)
            child = entry if isinstance(entry, pygit2.Tree) else None
            builder.insert(name, self._tree(child, inner), pygit2.enums.FileMode.TREE)
        return builder.write()


Loop = Callable[[int], None]


def all_cli(place: Place, database: Database) -> Loop:
    """ALL-CLI: two processes, `git add -A && git commit` with everything forced, one transaction."""

    def task(number: int) -> None:
        spawn_twice(place, place.files[number * 37 % len(place.files)], number)
        place.git("-c", "core.fsync=all", "add", "-A")
        place.git("-c", "core.fsync=all", "commit", "-qm", f"task {number}")
        database.write(f"T{number}", ["y" * 230])

    return task


def all_status(place: Place, database: Database) -> Loop:
    """ALL-STATUS: two processes, one `git status`, trees and a commit by libgit2, one transaction."""
    trees = Trees(place)

    def task(number: int) -> None:
        spawn_twice(place, place.files[number * 37 % len(place.files)], number)
        trees.commit(trees.changed(), "refs/bench/tip")
        database.write(f"T{number}", ["y" * 230])

    return task


_FORCED = ("-c", "core.fsync=all")


class Branch:
    """Commits a tree on the user's branch with the git program, by the three commands that look at no other file."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._head = place.git("rev-parse", "HEAD").decode().strip()

    def commit(self, tree: str, path: str, number: int) -> None:
        git, head = self._place.git, self._head
        self._head = git(*_FORCED, "commit-tree", tree, "-p", head, "-m", f"task {number}").decode().strip()
        git(*_FORCED, "update-ref", "-m", f"commit: task {number}", "HEAD", self._head, head)
        git(*_FORCED, "update-index", "--add", "--remove", "--", path)


def same_safety(place: Place, database: Database, *, commits: bool) -> Loop:
    """The reads and fsyncs that idumb's promises need, done by the fastest means above and nothing else.

    A durable snapshot before, the candidate's tree after the builder, a third look after the check, a checkpoint
    commit of its own, and a durable transaction before and after. With `commits`, also a commit on the user's branch,
    and one more transaction before it.
    """
    trees, branch = Trees(place), Branch(place) if commits else None

    def task(number: int) -> None:
        path = place.files[number * 37 % len(place.files)]
        trees.commit(trees.changed(), f"refs/bench/{number}/base")
        database.write(f"T{number}", ["y" * 900])
        for command in (f"echo '# {number}' >> {path}", "true"):
            subprocess.run(["/bin/sh", "-c", command], cwd=place.root, env=place.env, capture_output=True, check=True)
            changed = trees.changed()
        trees.commit(changed, f"refs/bench/{number}/checkpoint")
        if branch is not None:
            database.write(f"T{number}", ["y" * 700] * 3)
            branch.commit(trees.tree, path, number)
        database.write(f"T{number}", ["y" * 700] * (2 if commits else 5))

    return task


def same_proof(place: Place, database: Database, *, commits: bool) -> Loop:
    """SAME-SAFETY with the check in a working tree of its own.

    A linked worktree follows the candidate with `git checkout`. The look after the check is at it, because the check
    cannot have changed the user's files.
    """
    trees, branch = Trees(place), Branch(place) if commits else None
    linked = f"{place.root}.proof"
    if not os.path.isdir(linked):
        place.git("worktree", "add", "-q", "--detach", linked, "HEAD")

    def task(number: int) -> None:
        path = place.files[number * 37 % len(place.files)]
        trees.commit(trees.changed(), f"refs/bench/{number}/base")
        database.write(f"T{number}", ["y" * 900])
        _shell(place, place.root, f"echo '# {number}' >> {path}")
        trees.commit(trees.changed(), f"refs/bench/{number}/checkpoint")
        place.git("-C", linked, "checkout", "-q", "--detach", f"refs/bench/{number}/checkpoint")
        _shell(place, linked, "true")
        place.git("-C", linked, "status", "--porcelain")
        if branch is not None:
            database.write(f"T{number}", ["y" * 700] * 3)
            branch.commit(trees.tree, path, number)
        database.write(f"T{number}", ["y" * 700] * (2 if commits else 5))

    return task


def _shell(place: Place, folder: str, command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], cwd=folder, env=place.env, capture_output=True, check=True)
