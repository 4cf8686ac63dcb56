"""Fixtures of the git room: the port's implementations on the sandbox of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from idumb.git import discover
from idumb.git.checkouts.checkout import Checkout
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from tests.support import checkouts
from tests.support.gitrepo import GitSandbox

Take = Callable[..., Checkout]
REF = "refs/idumb/worktrees/main/runs/r1/T1/1/base"


def trees_of(sandbox: GitSandbox) -> GitTrees:
    """Return the trees of the sandbox as a new process has them."""
    return GitTrees(discover.find(str(sandbox.root)))


def names(sandbox: GitSandbox, tree: str) -> list[str]:
    return sorted(sandbox.tree(tree))


def content(trees: GitTrees, tree: str, path: str) -> bytes:
    entry = trees.entry(tree, path)
    assert entry is not None
    return trees.read(entry.oid)


def edited(
    sandbox: GitSandbox, trees: GitTrees, before: Mapping[str, str | bytes], after: Mapping[str, str | bytes | None]
) -> tuple[str, str]:
    """Return the tree with the files `before`, and that after the change to `after`."""
    sandbox.write_all(before)
    base = trees.scan()
    sandbox.change(after)
    return base, trees.scan()


@pytest.fixture
def trees(sandbox: GitSandbox) -> GitTrees:
    return trees_of(sandbox)


@pytest.fixture
def history(sandbox: GitSandbox) -> Iterator[GitHistory]:
    with checkouts.committing(sandbox) as history:
        yield history


@pytest.fixture
def repo(sandbox: GitSandbox) -> GitSandbox:
    """The sandbox with a commit of the file `a`."""
    sandbox.commit_with({"a": "1\n"})
    return sandbox


@pytest.fixture
def proof(sandbox: GitSandbox) -> Iterator[Take]:
    """Yield what takes a checkout, once the sandbox is as the test wants it."""
    taken = list[Checkout]()

    def take(*arguments: str, **options: Any) -> Checkout:
        taken.append(checkouts.create(sandbox, *arguments, **options))
        return taken[-1]

    yield take
    for checkout in taken:
        checkouts.close(checkout)
