"""Trees are read from git's objects; what is no tree is an error, never part of one."""

from __future__ import annotations

import pygit2
import pytest
from pygit2.enums import ObjectType

from idumb.git.objects import tree_objects
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
        tree_objects.rows(opened, oid.raw)


def test_a_tree_that_is_missing_is_not_damaged(sandbox: GitSandbox) -> None:
    opened = pygit2.Repository(sandbox.root)
    with pytest.raises(KeyError):
        tree_objects.rows(opened, bytes(range(20)))
