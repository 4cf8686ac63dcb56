"""A folder for clones is private, outside the repository, and below no manifest that tools would find (R-RUN-3)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from idumb.system import private_folders

NAME = "idumb-test-place"
Place = Callable[[Path], str]


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The preferred folder; the only other one is in the user's home."""
    above = tmp_path / "project" / "tmp"
    above.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(above))
    return Path(private_folders.temporary(NAME)[0])


@pytest.fixture
def place(first: Path, home: Path) -> Place:
    return lambda repository: private_folders.place((str(first), f"{home}/state"), [str(repository)])


def test_the_user_s_temporary_folder_is_preferred_and_private(place: Place, first: Path, tmp_path: Path) -> None:
    assert place(tmp_path / "repo") == str(first)
    assert first.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("manifest", ["package.json", "node_modules", "conftest.py", "go.mod", ".git"])
def test_a_folder_below_a_manifest_is_avoided(place: Place, first: Path, tmp_path: Path, manifest: str) -> None:
    (tmp_path / "project" / manifest).touch()
    assert place(tmp_path / "repo") != str(first)


def test_if_every_folder_is_below_a_manifest_the_first_is_used(
    place: Place, first: Path, tmp_path: Path, home: Path
) -> None:
    (tmp_path / "project" / "package.json").touch()
    (home / "package.json").touch()
    assert place(tmp_path / "repo") == str(first)


def test_a_folder_inside_the_repository_or_open_to_others_is_never_used(
    place: Place, first: Path, tmp_path: Path
) -> None:
    assert place(tmp_path / "project") != str(first)
    first.mkdir(mode=0o700, exist_ok=True)
    first.chmod(0o777)
    assert place(tmp_path / "repo") != str(first)
    first.rmdir()
    first.symlink_to(tmp_path)
    assert place(tmp_path / "repo") != str(first)


DEPTH = 1200
"""Folders in folders: more than functions can call each other, and than a process may have open."""


def deep(folder: Path) -> Path:
    subprocess.run(["mkdir", "-p", "/".join(["d"] * DEPTH)], cwd=folder, check=True)
    subprocess.run(["mkdir", "-m", "000", "-p", "closed/inner"], cwd=folder, check=True)
    (folder / "d" / "file").touch()
    return folder


def test_folders_are_removed_however_deep_and_whatever_their_permissions(tmp_path: Path) -> None:
    folder, user_s = tmp_path / "folder", tmp_path / "mine"
    folder.mkdir()
    user_s.write_text("mine")
    user_s.chmod(0o640)
    deep(folder).joinpath("d", "link").symlink_to(user_s)
    private_folders.remove_tree(str(folder))
    assert not folder.exists()
    assert (user_s.read_text(), user_s.stat().st_mode & 0o777) == ("mine", 0o640)


def test_a_name_whose_folder_cannot_be_removed_is_skipped_and_kept_for_a_later_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check may leave files of another user there, or mount something."""
    top = str(tmp_path / "top")
    folder, descriptor = private_folders.lock_folder(top)
    os.mkdir(folder)
    os.close(descriptor)  # as if the process was killed
    with monkeypatch.context() as patch:
        patch.setattr(private_folders, "remove_tree", lambda _: None)
        assert [private_folders.remove(path) for path in private_folders.abandoned(top)] == [False]
        other, descriptor = private_folders.lock_folder(top)
        assert other != folder
        assert not os.path.lexists(other)
        private_folders.unlock_folder(other, descriptor)
    assert [private_folders.remove(path) for path in private_folders.abandoned(top)] == [True]
    assert os.listdir(top) == []


def test_a_folder_beside_an_avoided_one_whose_name_begins_alike_can_be_used(tmp_path: Path) -> None:
    beside = str(tmp_path / "repo-2")
    assert private_folders.place([str(tmp_path / "repo/own"), beside], [str(tmp_path / "repo")]) == beside
