"""Whether a symbolic link leads out of the working tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.git.trees import GitTrees
from tests.support.cases import every
from tests.support.gitrepo import GitSandbox

INSIDE = ["a.txt", "./a.txt", "d/../a.txt", "nowhere", "d/e/../../a.txt", ".", "to-a", "circle", ".gitignore"]
OUTSIDE = ["/etc/passwd", "/", "..", "../a.txt", "d/../../x", "to-out", "d/to-out/x", ".git/config", "d/../.git"]


@pytest.fixture
def repo(sandbox: GitSandbox) -> GitSandbox:
    sandbox.write_all({"a.txt": "a\n", "d/e/b.txt": "b\n"})
    sandbox.link("to-a", "a.txt")
    sandbox.link("circle", "circle")
    sandbox.link("to-out", "/nonexistent")
    sandbox.link("d/to-out", "../..")
    return sandbox


@every("target", [*INSIDE, *OUTSIDE])
def test_a_link_that_leads_out_is_reported_with_its_target(repo: GitSandbox, trees: GitTrees, target: str) -> None:
    (repo.root / "link").unlink(missing_ok=True)
    repo.link("link", target)
    assert trees.outside_target("link") == (target if target in OUTSIDE else None)


def test_the_location_of_the_link_decides(repo: GitSandbox, trees: GitTrees) -> None:
    repo.link("d/e/up", "../../a.txt")
    repo.link("d/e/out", "../../../a.txt")
    assert trees.outside_target("d/e/up") is None
    assert trees.outside_target("d/e/out") == "../../../a.txt"


def test_an_absolute_link_into_the_working_tree_leads_out_of_every_clone(repo: GitSandbox, trees: GitTrees) -> None:
    repo.link("link", str(repo.root / "a.txt"))
    assert trees.outside_target("link") == str(repo.root / "a.txt")


def test_a_file_names_places_that_only_this_machine_has(
    repo: GitSandbox, trees: GitTrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only absolute paths that exist count, and not those of the system."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "data.txt").touch()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("idumb.git.links._TEMPORARY", ())
    monkeypatch.setattr("tempfile.tempdir", str(home))
    inside = f"{repo.root}/a.txt"
    words = f'open("{inside}") {repo.root}. {home}/data.txt {home}/none {home} /usr/bin x{inside} ./{inside} a.txt'
    assert trees.places_of_machine(words.encode()) == {inside, str(repo.root), f"{home}/data.txt"}
