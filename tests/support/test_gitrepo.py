"""GitSandbox is the measure of other tests, so it is measured itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.gitrepo import Entry, GitSandbox


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
