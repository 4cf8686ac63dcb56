"""One conformance suite for both workspaces. House: the workspace is a port from the first day."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from idumb.app.ports.repository import Conflict
from idumb.app.ports.workspace import Workspace
from idumb.git import discover
from idumb.git.clones.clone import Clone
from idumb.git.trees import GitTrees, Here
from idumb.system import host_identity
from idumb.system.files import private_folders
from tests.support.gitrepo import GitSandbox, work_tree

REF = "refs/idumb/worktrees/main/runs/r1/T1/1/base"
Maker = Callable[[], Workspace]


@pytest.fixture(params=["here", "clone"])
def make(request: pytest.FixtureRequest, sandbox: GitSandbox, trees: GitTrees) -> Maker:
    """Call it once the sandbox is as the test wants it."""

    def create() -> Workspace:
        place = discover.find(str(sandbox.root))
        return Here(trees) if request.param == "here" else Clone(place, trees, "r1", sandbox.head() or None)

    return create


def write(workspace: Workspace, path: str, text: str) -> None:
    place = Path(workspace.trees.root, path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def test_work_is_scanned_and_delivered(sandbox: GitSandbox, make: Maker, trees: GitTrees) -> None:
    sandbox.write_all({"a": "1\r\n", "d/gone": "1", ".gitignore": "*.log\n"})
    sandbox.write("run", "x", mode=0o755)
    sandbox.link("link", "a")
    sandbox.commit()
    workspace = make()
    base = workspace.trees.snapshot(REF, "base").tree
    assert base == sandbox.git("rev-parse", "HEAD^{tree}")
    write(workspace, "a", "2\r\n")
    write(workspace, "new/x", "n")
    write(workspace, "x.log", "ignored")
    Path(workspace.trees.root, "d/gone").unlink()
    candidate = workspace.trees.scan()
    paths = [change.path for change in workspace.trees.changes(base, candidate)]
    assert paths == ["a", "d/gone", "new/x"]
    assert trees.restore(candidate, base, paths) == ()
    assert sorted(sandbox.status()) == [" D d/gone", " M a", "?? new/"] or sorted(sandbox.status()) == [
        " D d/gone",
        " M a",
        "?? new/x",
    ]
    assert (sandbox.root / "a").read_bytes() == b"2\r\n"
    workspace.close()


def test_snapshots_outlive_the_workspace(sandbox: GitSandbox, make: Maker, trees: GitTrees) -> None:
    sandbox.commit()
    workspace = make()
    write(workspace, "a", "only here")
    snapshot = workspace.trees.snapshot(REF, "candidate")
    workspace.close()
    sandbox.git("gc", "--quiet", "--prune=now")
    entry = trees.entry(snapshot.tree, "a")
    assert entry is not None
    assert trees.read(entry.oid) == b"only here"
    assert sandbox.kept("refs/idumb/worktrees/main/runs/") == {REF: snapshot.commit}


def test_a_workspace_works_before_the_first_commit(sandbox: GitSandbox, make: Maker, trees: GitTrees) -> None:
    workspace = make()
    base = workspace.trees.scan()
    write(workspace, "a", "1")
    candidate = workspace.trees.scan()
    assert trees.restore(candidate, base, ["a"]) == ()
    assert sandbox.read("a") == "1"


def test_restore_and_patches_work_in_the_workspace(sandbox: GitSandbox, make: Maker) -> None:
    sandbox.write("a", "1\n")
    sandbox.commit()
    workspace = make()
    base = workspace.trees.scan()
    write(workspace, "a", "2\n")
    after = workspace.trees.scan()
    patch = workspace.trees.diff(base, after)
    assert workspace.trees.restore(base, after, ["a"]) == ()
    assert workspace.trees.apply_patch(patch, lambda _: None) == (True, "")
    assert workspace.trees.scan() == after


def test_a_clone_leaves_the_users_tree_alone_until_it_delivers(
    sandbox: GitSandbox, trees: GitTrees, tmp_path: Path
) -> None:
    sandbox.write_all({"a": "1", "b": "1"})
    sandbox.commit()
    sandbox.write_all({"b": "mine", "mine": "1"})
    before, ledger = work_tree(sandbox.root), sandbox.ledger()
    workspace = Clone(discover.find(str(sandbox.root)), trees, "r1", sandbox.head())
    base = workspace.trees.scan()
    write(workspace, "a", "2")
    write(workspace, "b", "2")
    candidate = workspace.trees.scan()
    inside = GitSandbox(Path(workspace.trees.root))
    inside.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "an agent commits in its copy")
    assert sandbox.ledger() == ledger
    assert trees.restore(candidate, base, ["a", "b"]) == (Conflict("b", "was changed since"),)
    assert work_tree(sandbox.root) == before
    assert trees.restore(candidate, base, ["a"]) == ()
    assert (sandbox.read("a"), sandbox.read("b")) == ("2", "mine")


def test_a_clone_is_a_clean_checkout_to_git(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "1", "d/b": "2"})
    sandbox.write("run", "x", mode=0o755)
    sandbox.commit()
    workspace = Clone(discover.find(str(sandbox.root)), trees, "r1", sandbox.head())
    inside = GitSandbox(Path(workspace.trees.root))
    assert inside.status() == []
    assert inside.head() == sandbox.head()


def test_a_clone_is_reused_and_removed_at_the_end(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.commit()
    place = discover.find(str(sandbox.root))
    first = Clone(place, trees, "r1", sandbox.head())
    write(first, "a", "work of an interrupted run")
    tree = first.trees.scan()
    second = Clone(place, trees, "r1", sandbox.head())
    assert second.trees.scan() == tree
    second.close()
    assert not Path(second.trees.root).exists()
    third = Clone(place, trees, "r1", sandbox.head())
    assert third.trees.scan() == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_a_clone_from_before_the_last_boot_is_rebuilt(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are never forced to disk, so a power cut may have emptied them."""
    sandbox.write("a", "whole")
    sandbox.commit()
    place = discover.find(str(sandbox.root))
    first = Clone(place, trees, "r1", sandbox.head())
    write(first, "a", "")
    monkeypatch.setattr(host_identity, "boot_id", lambda: "the next boot")
    second = Clone(place, trees, "r1", sandbox.head())
    assert Path(second.trees.root, "a").read_text() == "whole"


def test_a_clone_whose_removal_was_interrupted_is_rebuilt(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write("a", "whole")
    sandbox.commit()
    place = discover.find(str(sandbox.root))
    first = Clone(place, trees, "r1", sandbox.head())
    with monkeypatch.context() as cut:
        cut.setattr(private_folders, "remove_tree", lambda _: None)
        first.close()
    Path(first.trees.root, ".git/HEAD").unlink()
    second = Clone(place, trees, "r1", sandbox.head())
    assert Path(second.trees.root, "a").read_text() == "whole"


def test_only_the_repository_s_own_ignore_rules_apply_in_the_workspace(sandbox: GitSandbox, make: Maker) -> None:
    sandbox.write(".git/info/exclude", "*.secret\n")
    workspace = make()
    write(workspace, "x.secret", "s")
    write(workspace, "y", "y")
    assert sorted(sandbox.tree(workspace.trees.scan())) == ["y"]


def test_a_clone_has_filtered_files_in_the_user_s_form_and_delivers_over_them(
    sandbox: GitSandbox, trees: GitTrees
) -> None:
    """F13, F17: with line-ending attributes, committed bytes differ from the bytes in the working tree."""
    sandbox.write_all({".gitattributes": "*.txt text eol=crlf\n", "a.txt": "one\r\n", "edited.txt": "one\r\n"})
    sandbox.commit()
    sandbox.write("edited.txt", "mine\r\n")
    place = discover.find(str(sandbox.root))
    workspace = Clone(place, trees, "r1", sandbox.head())
    base = workspace.trees.scan()
    root = Path(workspace.trees.root)
    assert (root / "a.txt").read_bytes() == b"one\r\n"
    assert (root / "edited.txt").read_bytes() == b"one\n"
    (root / "a.txt").write_bytes(b"two\r\n")
    (root / "edited.txt").write_bytes(b"two\n")
    candidate = workspace.trees.scan()
    assert trees.restore(candidate, base, ["a.txt"]) == ()
    assert (sandbox.root / "a.txt").read_bytes() == b"two\r\n"
    (conflict,) = trees.restore(candidate, base, ["edited.txt"])
    assert conflict.path == "edited.txt"
    assert (sandbox.root / "edited.txt").read_bytes() == b"mine\r\n"
