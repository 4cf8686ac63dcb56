"""Nested repositories: found without git, and what of them is not saved."""

from __future__ import annotations

import pytest

from idumb.domain import paths
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from tests.support.gitrepo import GitSandbox


@pytest.fixture
def inside(sandbox: GitSandbox) -> GitSandbox:
    """A submodule `lib` of the sandbox, with a committed file `f`."""
    sandbox.write("a", "a")
    library = sandbox.add_submodule("lib", {"f": "1", ".gitignore": "made/\n"})
    sandbox.commit()
    return GitSandbox(sandbox.root / "lib", library.environment)


def test_ignored_files_are_distinguished_from_other_unsaved_files(
    sandbox: GitSandbox, trees: GitTrees, inside: GitSandbox
) -> None:
    """R-GIT-1."""
    sandbox.write_all({".gitignore": "*.log\nbuild/\n", "x.log": "l", "build/out": "o", "d/y.log": "l", "d/x": ""})
    inside.write_all({"f": "mine", "made/x": "built"})
    GitSandbox.create(sandbox.root / "nested")
    trees.scan()
    assert trees.ignored() == ("build/", "d/y.log", "x.log")
    omitted = trees.omitted()
    assert sorted(omitted) == ["build/", "d/y.log", "lib", "nested", "x.log"]
    assert trees.ignored() == tuple(path for path, why in omitted.items() if why == paths.IGNORED_BY_GIT)
    sandbox.remove("x.log")
    assert trees.ignored() == ("build/", "d/y.log")


def test_submodules_and_nested_repositories_are_listed_without_a_scan(
    sandbox: GitSandbox, history: GitHistory, inside: GitSandbox
) -> None:
    """R-GIT-7: a folder with tracked files is not a nested repository, whatever it contains."""
    sandbox.write("kept/a", "a")
    sandbox.commit()
    GitSandbox.create(sandbox.root / "kept")
    GitSandbox.create(sandbox.root / "x/nested")
    assert history.repositories(()) == (inside.root.name,)
    assert history.repositories(["x/nested/a/b", "kept/a", "none/a"]) == ("lib", "x/nested")
