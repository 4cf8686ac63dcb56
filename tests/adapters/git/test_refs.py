"""Refs below refs/idumb/ are moved from the value that was seen, never from another one (R-LOG-5, F38)."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

from idumb.domain.errors import Refusal
from idumb.git import discover, disk, open_repository, refs
from idumb.git.discover import Repository
from tests.support.gitrepo import GitSandbox

REF = "refs/idumb/worktrees/main/runs/r/base"


@pytest.fixture
def place(sandbox: GitSandbox) -> Repository:
    for name in ("one", "two", "three"):
        sandbox.write("a.txt", name)
        sandbox.commit(name)
        sandbox.git("tag", name)
    return discover.at(str(sandbox.root))


def commit(sandbox: GitSandbox, name: str) -> str:
    return sandbox.git("rev-parse", name)


@pytest.mark.parametrize("before", ["one", ""])
def test_a_ref_that_another_process_moved_or_created_keeps_its_value(
    sandbox: GitSandbox, place: Repository, before: str
) -> None:
    if before:
        sandbox.git("update-ref", REF, before)
    place.guard = lambda: (sandbox.git("update-ref", REF, "two"), None)[1]  # between the check and the write
    with pytest.raises(Refusal) as caught:
        refs.move(open_repository.repository(place), place, REF, commit(sandbox, "three"))
    assert caught.value.code == "git.ref-moved"
    assert sandbox.kept("refs/idumb/") == {REF: commit(sandbox, "two")}


def test_a_process_that_lost_ownership_moves_no_ref(sandbox: GitSandbox, place: Repository) -> None:
    def lost() -> None:
        raise Refusal("lock.lost", "taken over")

    place.guard = lost
    with pytest.raises(Refusal) as caught:
        refs.move(open_repository.repository(place), place, REF, commit(sandbox, "three"))
    assert caught.value.code == "lock.lost"
    assert sandbox.kept("refs/idumb/") == {}


def test_a_new_ref_syncs_itself_and_only_the_folders_that_changed(
    sandbox: GitSandbox, place: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders above the repository are not opened: an unlistable one would stop every task."""
    forced: list[str] = []
    force = disk.force

    def noted(paths: Iterable[str]) -> None:
        synced = list(paths)
        forced.extend(os.path.relpath(path, place.common_dir) for path in synced)
        force(synced)

    monkeypatch.setattr(disk, "force", noted)
    refs.move(open_repository.repository(place), place, REF, commit(sandbox, "one"))
    folders = ["refs", *(f"refs/idumb{rest}" for rest in ("", "/worktrees", "/worktrees/main", "/worktrees/main/runs"))]
    assert sorted(set(forced)) == sorted([*folders, "refs/idumb/worktrees/main/runs/r", REF])
    forced.clear()
    refs.move(open_repository.repository(place), place, f"{REF}2", commit(sandbox, "one"))
    assert sorted(set(forced)) == ["refs/idumb/worktrees/main/runs/r", f"{REF}2"]


def test_refs_are_listed_whether_loose_or_packed(sandbox: GitSandbox, place: Repository) -> None:
    names = [f"refs/idumb/worktrees/main/runs/{run}/base" for run in ("packed", "moved", "loose")]
    for name in names[:2]:
        sandbox.git("update-ref", name, "one")
    sandbox.git("pack-refs", "--all", "--prune")
    for name in names[1:]:
        sandbox.git("update-ref", name, "two")
    one, two = commit(sandbox, "one"), commit(sandbox, "two")
    assert discover.listed(place.common_dir, "refs/idumb/") == dict(zip(names, (one, two, two), strict=True))
    (sandbox.common_dir / f"{names[2]}.lock").touch()
    sandbox.git("tag", "four", "one")
    assert discover.listed(place.common_dir, "refs/tags/").keys() == {
        f"refs/tags/{n}" for n in ("one", "two", "three", "four")
    }
    assert refs.of_user(place.common_dir) == sandbox.refs("refs/heads/") | sandbox.refs("refs/tags/")


def test_a_folder_that_libgit2_could_not_force_to_disk_takes_no_ref_from_this_process(
    sandbox: GitSandbox, place: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-LOG-5: the system drops what it could not write, so a second fsync would falsely succeed."""
    monkeypatch.setattr(disk, "failed", set())
    repository = open_repository.repository(place)
    folder = os.path.join(place.common_dir, os.path.dirname(REF))

    def fail(*_: object, **__: object) -> None:
        raise OSError(f"failed to fsync directory '{folder}': Disk quota exceeded")

    with monkeypatch.context() as broken:
        broken.setattr(type(repository), "create_reference_direct", fail)
        with pytest.raises(OSError, match="Disk quota exceeded"):
            refs.move(repository, place, REF, commit(sandbox, "one"))
    with pytest.raises(OSError, match="could not be forced to disk before"):
        refs.move(repository, place, REF, commit(sandbox, "one"))
