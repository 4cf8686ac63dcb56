"""A rename that fails while git commits."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from idumb.git import discover
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from tests.crash import shim
from tests.crash.programme import CannotRun
from tests.crash.shim import Shim
from tests.support import checkouts, seed
from tests.support.gitrepo import GitSandbox


@pytest.mark.parametrize("nth", seed.one_on_a_push(range(1, 9), "rename"))
def test_a_commit_is_complete_or_absent_if_a_rename_fails(
    sandbox: GitSandbox, tmp_path: Path, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-GIT-2, F32: a second try moves index and branch."""
    sandbox.write_all({"a.txt": "one\n", "old.txt": "old\n"})
    first = sandbox.commit()
    sandbox.write_all({"a.txt": "two\n", "new.txt": "new\n"})
    sandbox.remove("old.txt")
    try:
        faults = Shim(tmp_path / "shim")
    except CannotRun as reason:
        pytest.skip(str(reason))
    faults.order.spared = 1  # this process is not preloaded, so git is the first to come
    for name, value in faults.environment.items():
        monkeypatch.setenv(name, value)
    place = discover.find(str(sandbox.root))
    history, trees = GitHistory(place, proof=lambda: checkouts.create(sandbox)), GitTrees(place)
    tree = trees.committed(first, trees.scan(), ("a.txt", "new.txt", "old.txt"))

    def commit() -> str | None:
        made = history.make(tree, first, "both\n\nIdumb-Task: T1-01\n", hooks=False).commit
        return made if made is not None and history.advance(history.head().branch, made, first, "T1-01") == "" else None

    with faults.armed(sandbox.root, kind=shim.RENAME, error=errno.ENOSPC, nth=nth):
        made = commit()
    for name in faults.environment:
        monkeypatch.delenv(name)
    if made is None:
        assert sandbox.head() == first
        made = commit()
    assert made == sandbox.head() != first
    assert sandbox.status() == []
