"""Objects that a crash or a disk cut off are damaged, for idumb as for git; libgit2 alone would read them for ever."""

from __future__ import annotations

import faulthandler
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import ObjectType

from idumb.git import discover, open_repository
from tests.support.gitrepo import GitSandbox

KINDS = {"HEAD": ObjectType.COMMIT, "HEAD^{tree}": ObjectType.TREE, "HEAD:a.txt": ObjectType.BLOB}
_LONGEST = 20


@pytest.fixture
def repository(sandbox: GitSandbox) -> pygit2.Repository:
    sandbox.write("a.txt", "some words\n" * 20)
    sandbox.commit("first")
    return open_repository.repository(discover.at(str(sandbox.root)))


def _loose(sandbox: GitSandbox, oid: str) -> Path:
    path = sandbox.common_dir / "objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    return path


@pytest.mark.parametrize("name", KINDS)
def test_a_loose_object_that_is_cut_off_is_damaged(
    sandbox: GitSandbox, repository: pygit2.Repository, name: str
) -> None:
    oid = sandbox.git("rev-parse", name)
    path = _loose(sandbox, oid)
    whole = path.read_bytes()
    kind, data = repository.read(oid)
    assert kind == KINDS[name]
    assert (kind, data) == pygit2.Repository(sandbox.root).read(oid)
    faulthandler.dump_traceback_later(_LONGEST, exit=True)  # no signal reaches libgit2
    try:
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            for read in (repository.read, repository.__getitem__):
                with pytest.raises(pygit2.GitError):
                    read(oid)
    finally:
        faulthandler.cancel_dump_traceback_later()


def test_an_object_with_other_bytes_is_damaged(sandbox: GitSandbox, repository: pygit2.Repository) -> None:
    first, second = sandbox.git("rev-parse", "HEAD:a.txt"), sandbox.git("rev-parse", "HEAD^{tree}")
    _loose(sandbox, first).write_bytes(_loose(sandbox, second).read_bytes())
    with pytest.raises(pygit2.GitError, match=first):
        repository.read(first)


def test_packed_and_borrowed_objects_are_read_and_missing_ones_are_not(
    sandbox: GitSandbox, repository: pygit2.Repository, tmp_path: Path
) -> None:
    oid = sandbox.git("rev-parse", "HEAD:a.txt")
    borrower = GitSandbox.create(tmp_path / "borrower")
    alternates = borrower.common_dir / "objects/info/alternates"
    alternates.write_text(f"{sandbox.common_dir / 'objects'}\n", encoding="utf-8")
    borrowing = open_repository.repository(discover.at(str(borrower.root)))
    assert borrowing.read(oid) == repository.read(oid)
    sandbox.git("gc", "-q")
    assert not (sandbox.common_dir / "objects" / oid[:2] / oid[2:]).exists()
    assert borrowing.read(oid) == repository.read(oid)
    assert str(repository[oid[:12]].id) == oid
    with pytest.raises(KeyError):
        repository.read("1" * 40)
    with pytest.raises(KeyError):
        repository["1" * 40]


def test_a_working_tree_configured_as_bare_is_an_obstacle(sandbox: GitSandbox) -> None:
    sandbox.git("config", "core.bare", "true")
    assert "git.bare" in (open_repository.obstacle(discover.find(str(sandbox.root))) or ())
