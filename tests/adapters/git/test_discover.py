"""Finding and opening the repository; locks of another container; objects that are cut off. R-GIT-7, F9, F10."""

from __future__ import annotations

import faulthandler
import json
import os
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import ObjectType

from idumb.git import discover, open_repository, stale_locks
from idumb.system import machine, process_tree
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox


def test_find_walks_up_to_the_real_working_tree(sandbox: GitSandbox, tmp_path: Path) -> None:
    folder = sandbox.root / "a/b"
    folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(folder)
    place = discover.find(str(tmp_path / "link"))
    assert (place.root, place.name) == (str(sandbox.root), "main")
    assert place.git_dir == place.common_dir == str(sandbox.git_dir)


def test_find_names_a_linked_worktree_and_shares_the_common_folder(sandbox: GitSandbox, tmp_path: Path) -> None:
    """One that is called `main` is not the main one."""
    sandbox.commit()
    for name, worktree in (("side", "side"), ("main", "main-linked")):
        sandbox.git("worktree", "add", "-q", "-b", f"branch-{name}", str(tmp_path / name))
        place = discover.find(str(tmp_path / name))
        assert (place.name, place.common_dir) == (worktree, str(sandbox.git_dir))
        assert place.git_dir == str(sandbox.git_dir / "worktrees" / name)


def test_a_folder_in_which_nothing_can_run_is_refused_in_one_line(sandbox: GitSandbox, tmp_path: Path) -> None:
    GitSandbox.create(tmp_path / "bare.git", options=("--bare",))
    rows = {
        tmp_path: "git.not-a-repository",
        tmp_path / "bare.git": "git.bare",
        tmp_path / "bare.git/refs": "git.bare",
        sandbox.git_dir / "refs": "git.inside-git-folder",
    }
    for number, link in enumerate((b"", b"nonsense", b"gitdir: /nowhere/at/all\n")):
        (tmp_path / f"link{number}").mkdir()
        (tmp_path / f"link{number}/.git").write_bytes(link)
        rows[tmp_path / f"link{number}"] = "git.broken-link"
    for start, code in rows.items():
        with refusing(code) as caught:
            discover.find(str(start))
        assert "\n" not in caught.value.message
        assert caught.value.hint


SINCE = "2020-01-01T00:00:00+00:00"
OURS, OTHERS = "pid:[1]", "pid:[2]"


@pytest.fixture
def lock(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of git, seen from inside a container in which no git runs."""
    monkeypatch.setattr(machine, "process_namespace", lambda: OURS)
    monkeypatch.setattr(process_tree, "may_be_at_work", lambda *_: False)
    sandbox.commit()
    lock_file = sandbox.git_dir / "index.lock"
    lock_file.touch()
    return lock_file


def cleared(sandbox: GitSandbox, before: str | None) -> tuple[str, ...]:
    """`before`: the place where the killed operation ran, as recorded in its owner file."""
    place = discover.find(str(sandbox.root))
    os.makedirs(place.state_dir, exist_ok=True)
    Path(place.state_dir, "owner.json").write_text(json.dumps({"namespace_before": before}))
    return stale_locks.clear(place, "main", SINCE)


@pytest.mark.parametrize("before", [OURS, OTHERS, None])
def test_a_lock_stays_if_a_process_of_another_container_may_hold_it(
    sandbox: GitSandbox, lock: Path, before: str | None
) -> None:
    assert cleared(sandbox, before) == ((str(lock),) if before == OURS else ())
    assert lock.exists() == (before != OURS)


def test_what_a_program_of_another_working_tree_writes_stays(sandbox: GitSandbox) -> None:
    """An idumb there moves refs itself: no process called git shows that it is at work."""
    place, own = discover.find(str(sandbox.root)), []
    for key in ("main", "main%2Fapps", "side", "main-linked"):
        written = (f"refs/idumb/worktrees/{key}/runs/1/base.lock", f"idumb/worktrees/{key}/.idumb.999999-01234567.tmp")
        for name in written:
            path = Path(place.common_dir, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
        own += [os.path.join(place.common_dir, name) for name in written if key.partition("%")[0] == "main"]
    assert sorted(stale_locks.clear(place, "main", SINCE)) == sorted(own)


KINDS = {"HEAD": ObjectType.COMMIT, "HEAD^{tree}": ObjectType.TREE, "HEAD:a.txt": ObjectType.BLOB}
_LONGEST = 20


@pytest.fixture
def repository(sandbox: GitSandbox) -> pygit2.Repository:
    sandbox.write("a.txt", "some words\n" * 20)
    sandbox.commit("first")
    return open_repository.repository(discover.at(str(sandbox.root)))


@pytest.mark.parametrize("name", KINDS)
def test_a_loose_object_that_is_cut_off_is_damaged(
    sandbox: GitSandbox, repository: pygit2.Repository, name: str
) -> None:
    oid = sandbox.git("rev-parse", name)
    path = sandbox.object_file(oid)
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
    sandbox.object_file(first).write_bytes(sandbox.object_file(second).read_bytes())
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
    assert not sandbox.object_file(oid).exists()
    assert borrowing.read(oid) == repository.read(oid)
    assert str(repository[oid[:12]].id) == oid
    with pytest.raises(KeyError):
        repository.read("1" * 40)
    with pytest.raises(KeyError):
        repository["1" * 40]


def test_a_working_tree_configured_as_bare_is_an_obstacle(sandbox: GitSandbox) -> None:
    sandbox.git("config", "core.bare", "true")
    with refusing("git.bare"):
        open_repository.require_usable(discover.find(str(sandbox.root)))
