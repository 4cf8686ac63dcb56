"""Trees are read from git's objects; what is no tree is an error, never part of one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pygit2
import pytest
from pygit2.enums import ObjectType

from idumb.domain.proof.ledger import Entry
from idumb.git import tree_objects
from idumb.git.tree_objects import EMPTY_TREE, FILE
from tests.support.gitrepo import GitSandbox

_ROW = b"100644 a.txt\0" + bytes(range(20))


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (ObjectType.BLOB, _ROW),
        (ObjectType.TREE, _ROW[:-1]),
        (ObjectType.TREE, _ROW + b"100644 b.txt"),
        (ObjectType.TREE, b"10x644 a.txt\0" + bytes(20)),
    ],
    ids=["a blob", "an id cut off", "no id", "no mode"],
)
def test_an_object_that_is_no_whole_tree_is_damaged(sandbox: GitSandbox, kind: ObjectType, data: bytes) -> None:
    opened = pygit2.Repository(sandbox.root)
    oid = opened.odb.write(kind, data)
    with pytest.raises(pygit2.GitError, match=str(oid)):
        tree_objects.rows(opened, str(oid))


def test_a_tree_that_is_missing_is_not_damaged(sandbox: GitSandbox) -> None:
    opened = pygit2.Repository(sandbox.root)
    with pytest.raises(KeyError):
        tree_objects.rows(opened, "01" * 20)


class Trees:
    """Writes trees straight into git's objects. The content of a file is its number."""

    def __init__(self, sandbox: GitSandbox) -> None:
        self.repository = pygit2.Repository(sandbox.root)

    def of(self, files: Mapping[str, int]) -> str:
        tree = EMPTY_TREE
        for path, number in files.items():
            tree = tree_objects.put(self.repository, tree, {path: Entry(FILE, self.blob(number))})
        return tree

    def blob(self, number: int) -> str:
        return str(self.repository.odb.write(ObjectType.BLOB, b"%d" % number))

    def overlay(self, tree: str, *sources: tuple[str, tuple[str, ...]]) -> str:
        return tree_objects.overlay(self.repository, tree, sources)


def test_overlays_written_together_are_those_written_one_after_the_other(sandbox: GitSandbox) -> None:
    """Files take the place of folders, and the reverse."""
    trees = Trees(sandbox)
    names = ("a", "a/b", "a/b/c", "d")
    each = [trees.of(files) for files in ({}, {"a": 1}, {"a/b": 2, "d": 2}, {"a/b/c": 3, "a/e": 3}, {"d/f": 4})]
    different = 0
    for start, *sources in itertools.product(each, repeat=4):
        for chosen in (
            (("a",), ("a/b",), names),
            (("a/b/c", "d"), ("a/b",), ("a",)),
            (names, ("a",), ("a/b/c", "a/e")),
        ):
            steps = [*zip(sources, chosen, strict=True)]
            expected = start
            for step in steps:
                expected = trees.overlay(expected, step)
            assert trees.overlay(start, *steps) == expected, (start, steps)
            different += expected != start
    assert different > 1000
