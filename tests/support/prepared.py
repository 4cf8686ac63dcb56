"""Prepared projects: built once in each test process, then given to every test that asks, with the same bytes.

A repository's identity is its path and the inode of `.git`. So all prepared projects of a process live at one place,
one after the other, and the folder `.git` stays while its content is replaced. What idumb keeps for the user (consent,
keys) is copied into the home of the test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

Build = Callable[[GitSandbox], Project]


class Prepared:
    """`folder` is empty and belongs to this process of the tests."""

    def __init__(self, folder: Path) -> None:
        self._place = folder / "repo"
        self._kept = folder / "kept"
        self._made: dict[Build, tuple[Path, Project]] = {}
        (self._place / ".git").mkdir(parents=True)

    def get(self, build: Build) -> Project:
        """Return the project that `build` makes in an empty repository; a function is called once.

        The project is the test's own until the next call. The state folder of the test's home is replaced.
        """
        self._clear()
        shutil.rmtree(_state(), ignore_errors=True)
        if build not in self._made:
            self._made[build] = self._build(build)
            return self._made[build][1]
        kept, project = self._made[build]
        _copy(kept / "repo", self._place)
        if (kept / "state").is_dir():
            _copy(kept / "state", _state())
        return project

    def _build(self, build: Build) -> tuple[Path, Project]:
        _fill_with_new_repository(self._place)
        project = build(GitSandbox(self._place))
        kept = self._kept / str(len(self._made))
        _copy(self._place, kept / "repo")
        if _state().is_dir():
            _copy(_state(), kept / "state")
        return kept, project

    def _clear(self) -> None:
        for folder in (self._place / ".git", self._place):
            for entry in os.scandir(folder):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != ".git":
                        shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)


def _fill_with_new_repository(place: Path) -> None:
    aside = place.parent / "new"
    GitSandbox.create(aside)
    _copy(aside, place)
    shutil.rmtree(aside)


def _copy(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", f"{source}/.", target], check=True)  # a third of the time of shutil.copytree


def _state() -> Path:
    return Path(os.environ["XDG_STATE_HOME"])


def prepared_project(build: Build) -> Any:
    """A fixture: the project that `build` makes. Its name is that of the variable of the test module."""

    @pytest.fixture
    def given(prepared: Prepared) -> Project:
        return prepared.get(build)

    return given
