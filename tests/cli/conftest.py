"""Fixtures of the tests at the command line."""

from __future__ import annotations

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    """A small project with idumb set up in it: `README.md`, `.gitignore` and two commits."""
    return projects.create(sandbox)
