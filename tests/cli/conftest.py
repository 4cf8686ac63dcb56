"""Fixtures of the tests at the command line."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project
from tests.support.seed import pytest_runtest_makereport
from tests.support.terminal import unattended

__all__ = ["pytest_runtest_makereport"]


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    """A small project with idumb set up in it: `README.md`, `.gitignore` and two commits."""
    return projects.create(sandbox)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """The terminal without a person at which commands of this process ask."""
    with unattended(monkeypatch) as shown:
        yield shown
