"""Uncommitted work in nested repositories: detected without git, kept with the snapshot and compared later."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.app.ports.repository import NestedChange, Snapshot
from idumb.domain import paths
from idumb.git import nested_repositories
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from tests.adapters.git.conftest import REF
from tests.support.gitrepo import GitSandbox


@pytest.fixture
def inside(sandbox: GitSandbox, tmp_path: Path) -> GitSandbox:
    """A submodule `lib` of the sandbox, with a committed file `f`."""
    library = GitSandbox.create(tmp_path / "library")
    library.write_all({"f": "1", ".gitignore": "made/\n"})
    library.commit()
    sandbox.write("a", "a")
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "lib")
    sandbox.commit()
    return GitSandbox(sandbox.root / "lib", library.environment)


def snapshot(trees: GitTrees) -> Snapshot:
    return trees.snapshot(REF, "test")


def test_uncommitted_files_of_a_submodule_are_kept_byte_for_byte(
    sandbox: GitSandbox, trees: GitTrees, inside: GitSandbox
) -> None:
    """R-GIT-7."""
    inside.write_all({"f": b"\xff\0mine\r\n", "new": "new", "made/x": "built"})
    index = sandbox.git_dir / "modules/lib/index"
    before = (inside.ledger(), index.read_bytes())
    taken = snapshot(trees)
    kept = sandbox.git("ls-tree", "-r", "--name-only", f"{taken.commit}:{nested_repositories.KEPT}").split()
    assert kept == ["lib/f", "lib/new"]
    assert trees.read(sandbox.git("rev-parse", f"{taken.commit}:{nested_repositories.KEPT}/lib/f")) == b"\xff\0mine\r\n"
    assert trees.nested_changes(taken) == ()
    assert (inside.ledger(), index.read_bytes()) == before


def test_a_repository_without_nested_ones_keeps_nothing_more(sandbox: GitSandbox, trees: GitTrees) -> None:
    """R-GIT-7."""
    sandbox.write("a", "a")
    assert sandbox.git("ls-tree", "--name-only", snapshot(trees).commit).split() == ["meta.json", "worktree"]


def test_every_kind_of_change_in_a_submodule_is_detected(trees: GitTrees, inside: GitSandbox) -> None:
    """R-GIT-7."""
    inside.write_all({"f": "mine", "new": "new"})
    taken = snapshot(trees)
    inside.write("made/x", "what it ignores does not count")
    assert trees.nested_changes(taken) == ()
    inside.git("add", "f")
    assert trees.nested_changes(taken) == (NestedChange("lib", "lib/f", kept=True),)
    inside.git("reset", "--quiet", "--hard")
    inside.remove("new")
    inside.write("other", "other")
    assert trees.nested_changes(taken) == (
        NestedChange("lib", "lib/f", kept=True),
        NestedChange("lib", "lib/new", kept=True),
        NestedChange("lib", "lib/other", kept=False),
    )
    inside.remove("other")
    inside.write_all({"f": "mine", "new": "new"})
    assert trees.nested_changes(taken) == ()
    inside.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "moved")
    assert trees.nested_changes(taken) == (NestedChange("lib", "lib", kept=False),)


def test_repositories_nested_in_nested_ones_count(sandbox: GitSandbox, trees: GitTrees) -> None:
    """R-GIT-7."""
    outer = GitSandbox.create(sandbox.root / "outer")
    deep = GitSandbox.create(outer.root / "x/deep")
    deep.write("f", "1")
    taken = snapshot(trees)
    deep.write("f", "2")
    assert trees.nested_changes(taken) == (NestedChange("outer/x/deep", "outer/x/deep/f", kept=True),)


def test_changes_too_large_to_keep_are_still_detected(
    trees: GitTrees, inside: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-GIT-7."""
    monkeypatch.setattr(nested_repositories, "MOST_FILES", 0)
    inside.write("f", "mine")
    taken = snapshot(trees)
    inside.write("f", "gone")
    assert trees.nested_changes(taken) == (NestedChange("lib", "lib/f", kept=False),)


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
