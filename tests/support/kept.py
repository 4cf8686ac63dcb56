"""A run of tasks that keeps snapshots without an engine, and what git has of them: packs and loose objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from idumb.git import discover
from idumb.git.kept import kept_names
from idumb.git.objects import object_writer
from idumb.git.trees import GitTrees
from tests.support.gitrepo import GitSandbox

if TYPE_CHECKING:
    import pytest

ROOT = "refs/idumb/kept/main"
RUN = "refs/idumb/worktrees/main/runs/r"
MANY = 24
"""So many objects are packed after `pack_early`."""


def pack_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small runs leave packs, and start without what this process knows of other repositories."""
    monkeypatch.setattr(object_writer, "MANY", MANY)
    monkeypatch.setattr(kept_names, "_tables", {})


class Run:
    """A run of tasks in a sandbox, each of which adds a file."""

    def __init__(self, sandbox: GitSandbox) -> None:
        self.sandbox = sandbox
        place = discover.find(str(sandbox.root))
        self.trees = GitTrees(place)
        self.kept: dict[str, str] = {}
        self._name = RUN.replace("main", place.worktree_id)

    def begin(self, name: str) -> None:
        """Begin another run."""
        self._name = f"{self._name.rpartition('/')[0]}/{name}"

    def tasks(self, *numbers: int) -> None:
        for number in numbers:
            base = self.trees.snapshot(f"{self._name}/T{number}/1/base", "before")
            self.sandbox.write(f"made/{number}.txt", f"made by {number}\n")
            done = self.trees.keep(f"{self._name}/T{number}/1/checkpoint", self.trees.scan(), "after")
            self.kept |= {base.ref: base.commit, done.ref: done.commit}

    def verify(self) -> None:
        """Assert that git and idumb find every snapshot whole, and nothing else lies in the folder of packs."""
        sandbox = self.sandbox
        sandbox.git("fsck", "--full", "--strict")
        assert sandbox.kept().items() >= self.kept.items()
        trees = GitTrees(discover.find(str(sandbox.root)))
        for oid in self.kept.values():
            tree = trees.tree_at(oid)
            entries = trees.changes(sandbox.git("mktree", given=b""), tree)
            assert all(trees.read(change.new.oid) is not None for change in entries if change.new)


def packs(sandbox: GitSandbox) -> set[str]:
    return {path.stem for path in (sandbox.common_dir / "objects/pack").glob("*.idx")}


def packed(sandbox: GitSandbox, pack: str) -> set[str]:
    index = (sandbox.common_dir / f"objects/pack/{pack}.idx").read_bytes()
    return {row.split()[1] for row in sandbox.git("show-index", given=index).splitlines()}


def all_packed(sandbox: GitSandbox) -> set[str]:
    return set().union(*(packed(sandbox, name) for name in packs(sandbox)))


def loose(sandbox: GitSandbox) -> set[str]:
    return {path.parent.name + path.name for path in sandbox.common_dir.glob("objects/??/*")}


def strays(sandbox: GitSandbox) -> list[str]:
    """Files in the folder of packs that git does not know."""
    folder = sandbox.common_dir / "objects/pack"
    return [path.name for path in folder.iterdir() if path.suffix != ".idx" and not path.with_suffix(".idx").exists()]
