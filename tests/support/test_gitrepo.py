"""GitSandbox is the measure of other tests, so it is measured itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.gitrepo import Entry, GitSandbox


def test_a_new_sandbox_has_a_branch_and_no_commit(sandbox: GitSandbox) -> None:
    assert sandbox.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert sandbox.head() == ""
    assert sandbox.status() == []


def test_commit_includes_all_files_or_the_named_ones(sandbox: GitSandbox) -> None:
    sandbox.write_all({"a.txt": "a", "deep/b.txt": b"b", "c.txt": "c"})
    first = sandbox.commit("two", "a.txt", "deep")
    assert sorted(sandbox.tree()) == ["a.txt", "deep/b.txt"]
    second = sandbox.commit("rest")
    assert sandbox.head() == second
    assert sandbox.git("rev-parse", "HEAD^") == first
    assert sandbox.tree()["c.txt"][0] == "100644"


def test_a_failing_git_command_is_an_assertion_error_with_its_output(sandbox: GitSandbox) -> None:
    with pytest.raises(AssertionError, match="git rev-parse no-such exits 128"):
        sandbox.git("rev-parse", "no-such")


def test_paths_with_unusual_names_are_listed_unchanged(sandbox: GitSandbox) -> None:
    names = ["-dash", "with space", "tab\there", "new\nline", "ümlaut", '"quoted"']
    for name in names:
        sandbox.write(name)
    sandbox.commit()
    assert sorted(sandbox.tree()) == sorted(names)
    assert sorted(sandbox.ledger().entries) == sorted(names)


def test_ledger_is_equal_while_nothing_changes(sandbox: GitSandbox) -> None:
    sandbox.write("a.txt", "a")
    sandbox.commit()
    before = sandbox.ledger()
    sandbox.git("update-ref", "refs/idumb/snapshots/1", "HEAD")
    assert sandbox.ledger() == before


@pytest.mark.parametrize("name", ["content", "mode", "link", "untracked", "ignored", "gone", "type", "empty folder"])
def test_ledger_sees_a_change_of(sandbox: GitSandbox, name: str) -> None:
    sandbox.write_all({"a.txt": "a", "b.txt": "b", ".gitignore": "*.log\n"})
    sandbox.link("link", "a.txt")
    sandbox.commit()
    before = sandbox.ledger()
    expected = _change(sandbox, name)
    after = sandbox.ledger()
    assert before.changed_paths(after) == [expected]
    assert (after.index, after.refs, after.head) == (before.index, before.refs, before.head)


def _change(sandbox: GitSandbox, name: str) -> str:
    match name:
        case "content":
            sandbox.write("a.txt", "A")
        case "mode":
            (sandbox.root / "a.txt").chmod(0o755)
        case "link":
            sandbox.remove("link")
            sandbox.link("link", "b.txt")
            return "link"
        case "untracked" | "ignored":
            sandbox.write(path := "new.txt" if name == "untracked" else "new.log")
            return path
        case "gone":
            sandbox.remove("a.txt")
        case "type":
            sandbox.remove("a.txt")
            sandbox.link("a.txt", "b.txt")
        case _:
            (sandbox.root / "folder").mkdir()
            return "folder"
    return "a.txt"


def test_ledger_sees_index_refs_head_and_configuration(sandbox: GitSandbox) -> None:
    sandbox.write("a.txt", "a")
    sandbox.commit()
    before = sandbox.ledger()
    sandbox.write("b.txt")
    sandbox.git("add", "b.txt")
    sandbox.git("branch", "other")
    sandbox.git("symbolic-ref", "HEAD", "refs/heads/other")
    sandbox.git("config", "core.hooksPath", "elsewhere")
    after = sandbox.ledger()
    assert after.index != before.index
    assert after.refs.keys() - before.refs.keys() == {"refs/heads/other"}
    assert after.head == "ref: refs/heads/other\n"
    assert "elsewhere" in after.config


def test_ledger_does_not_follow_links_or_open_pipes(sandbox: GitSandbox, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").touch()
    sandbox.link("loop", str(tmp_path / "outside"))
    os.mkfifo(sandbox.root / "pipe")
    entries = sandbox.ledger().entries
    assert entries["loop"] == Entry("link", 0, target=str(tmp_path / "outside"))
    assert entries["pipe"].type == "other"
    assert len(entries) == 2


def test_ledger_works_in_a_linked_worktree(sandbox: GitSandbox, tmp_path: Path) -> None:
    sandbox.write("a.txt", "a")
    sandbox.commit()
    sandbox.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    side = GitSandbox(tmp_path / "side").ledger()
    assert side.head == "ref: refs/heads/side\n"
    assert list(side.entries) == ["a.txt"]
    assert side.index
    assert side.config == sandbox.ledger().config
