"""Commits on the user's branch: exactly the given paths, by git itself, all else as it was. F1, F5, F13, F16, F22."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from idumb.app.ports.repository import CommitAttempt
from idumb.git import discover, index_file
from idumb.git.history import GitHistory
from tests.adapters.git.test_disk_space import leave
from tests.support.gitrepo import GitSandbox


def commit(
    history: GitHistory, paths: Sequence[str], *, hooks: bool = True, allow_empty: bool = False, message: str = "T1"
) -> CommitAttempt:
    head = history.head().commit
    return history.commit(paths, message, expected_head=head, hooks=hooks, allow_empty=allow_empty)


def changed(sandbox: GitSandbox, revision: str = "HEAD") -> list[str]:
    rows = sandbox.git("show", "--format=", "--name-status", "--no-renames", "-z", revision).split("\0")
    return sorted(f"{kind} {path}" for kind, path in zip(rows[::2], rows[1::2], strict=False))


def entries(sandbox: GitSandbox) -> list[str]:
    return [row for row in sandbox.git("ls-files", "--stage", "-z").split("\0") if row]


def test_a_commit_holds_exactly_the_given_paths(sandbox: GitSandbox, history: GitHistory) -> None:
    """F1, F5: a partly staged file and a staged new file elsewhere stay as they are."""
    sandbox.write_all(dict.fromkeys(("mod", "gone", "other", "staged", "d/x"), "1\n"))
    sandbox.commit()
    sandbox.write("staged", "2\n")
    sandbox.git("add", "staged")
    sandbox.write_all({"staged": "3\n", "other": "2\n", "mine": "1\n"})
    sandbox.git("add", "mine")
    sandbox.write_all({"mod": "2\n", "new/file": "1\n"})
    sandbox.remove("gone")
    result = commit(history, ["mod", "gone", "new/file"])
    assert result.commit == sandbox.head()
    assert changed(sandbox) == ["A new/file", "D gone", "M mod"]
    assert sandbox.status() == ["A  mine", " M other", "MM staged"]


@pytest.mark.parametrize("kind", ["plain", "split", "sparse"])
def test_an_index_that_git_could_not_write_follows_its_commit(
    sandbox: GitSandbox, history: GitHistory, kind: str
) -> None:
    """F14: also with an index format that libgit2 cannot read; the user's staged changes stay staged."""
    sandbox.write_all({"a": "1\n", "gone": "1\n", "mine": "1\n", "far/away/x": "1\n"})
    sandbox.commit()
    if kind == "split":
        sandbox.git("update-index", "--split-index")
    if kind == "sparse":
        sandbox.git("sparse-checkout", "set", "--cone", "--sparse-index", "near")
    stale = (sandbox.git_dir / "index").read_bytes()
    sandbox.write_all({"a": "2\n", "new": "1\n"})
    sandbox.remove("gone")
    result = commit(history, ["a", "new", "gone"])
    (sandbox.git_dir / "index").write_bytes(stale)
    sandbox.write("mine", "2\n")
    sandbox.git("add", "mine")
    assert result.commit is not None
    history.settle_index(result.commit, ("a", "new", "gone"))
    assert sandbox.status() == ["M  mine"]


def test_unusual_names_are_literal(sandbox: GitSandbox, history: GitHistory) -> None:
    """F16."""
    odd = ["-rf", ":(top)x", "new\nline", "na\udcff", "*", "sp ace", "links/link"]
    sandbox.write_all(dict.fromkeys([*odd, "bystander", "-rf2"], "1"))
    assert commit(history, odd).commit
    assert sorted(sandbox.tree()) == sorted(odd)


def test_the_first_commit_of_a_repository(sandbox: GitSandbox, history: GitHistory) -> None:
    """F8."""
    sandbox.write_all({"a": "1", "staged": "1"})
    sandbox.git("add", "staged")
    assert commit(history, ["a"]).commit == sandbox.head()
    assert list(sandbox.tree()) == ["a"]
    assert sandbox.status() == ["A  staged"]


def test_a_commit_on_a_detached_head_moves_no_branch(sandbox: GitSandbox, history: GitHistory) -> None:
    """F7."""
    first = sandbox.commit()
    sandbox.git("checkout", "-q", "--detach")
    sandbox.write("a", "1")
    assert commit(history, ["a"]).commit == sandbox.head()
    assert sandbox.refs("refs/heads/") == {"refs/heads/main": first}


def test_ignored_paths_are_committed_if_they_are_given(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.write_all({".gitignore": "build/\n", "build/out": "1", "build/other": "1"})
    assert commit(history, ["build/out"]).commit
    assert list(sandbox.tree()) == ["build/out"]


def test_a_file_can_become_a_folder_and_a_folder_a_file(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.write_all({"a": "1", "b/x": "1", "b/y": "1"})
    sandbox.commit()
    sandbox.remove("a")
    sandbox.remove("b")
    sandbox.write_all({"a/x": "1", "b": "1"})
    result = commit(history, ["a", "a/x", "b", "b/x", "b/y"])
    assert result.commit, result.words
    assert sorted(sandbox.tree()) == ["a/x", "b"]
    assert sandbox.status() == []


def test_a_path_that_became_a_folder_does_not_commit_its_other_files(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.write("a", "1")
    sandbox.commit()
    sandbox.remove("a")
    sandbox.write_all({"a/x": "1", "a/mine": "1"})
    assert commit(history, ["a", "a/x"]).commit
    assert list(sandbox.tree()) == ["a/x"]
    assert sandbox.status() == ["?? a/mine"]


def test_modes_and_links_are_committed(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.write("run", "1", mode=0o644)
    sandbox.commit()
    (sandbox.root / "run").chmod(0o755)
    sandbox.link("link", "run")
    assert commit(history, ["run", "link"]).commit
    assert {path: mode for path, (mode, _) in sandbox.tree().items()} == {"run": "100755", "link": "120000"}


def test_filters_apply_as_in_the_user_s_own_commits(sandbox: GitSandbox, history: GitHistory) -> None:
    """F13, F17."""
    sandbox.git("config", "filter.up.clean", "tr a-z A-Z")
    sandbox.write_all({".gitattributes": "*.f filter=up\n*.t text eol=crlf\n", "a.f": "abc\n", "b.t": "1\r\n"})
    assert commit(history, [".gitattributes", "a.f", "b.t"]).commit
    assert sandbox.git("show", "HEAD:a.f") == "ABC"
    assert sandbox.git("cat-file", "-s", "HEAD:b.t") == "2"
    assert sandbox.status() == []


@pytest.mark.parametrize("refuser", ["pre-commit", "commit-msg", "identity", "signing"])
def test_if_git_refuses_the_index_is_unchanged(sandbox: GitSandbox, history: GitHistory, refuser: str) -> None:
    """F22, F23."""
    sandbox.write_all({"a": "1", "d/x": "1", "staged": "1"})
    head = sandbox.commit()
    sandbox.write_all({"staged": "2"})
    sandbox.git("add", "staged")
    sandbox.remove("d")
    sandbox.write_all({"a": "2", "new": "1", "d": "1"})
    _refuse(sandbox, refuser)
    before = (sandbox.git_dir / "index").read_bytes()
    result = commit(history, ["a", "new", "d", "d/x"])
    assert result.commit is None
    assert result.words
    assert sandbox.head() == head
    assert (sandbox.git_dir / "index").read_bytes() == before
    assert not (sandbox.git_dir / "index.lock").exists()
    assert sandbox.read("new") == "1"


def _refuse(sandbox: GitSandbox, refuser: str) -> None:
    if refuser == "identity":
        sandbox.git("config", "--unset", "user.name")
        sandbox.git("config", "--unset", "user.email")
        sandbox.git("config", "user.useConfigOnly", "true")
    elif refuser == "signing":
        sandbox.git("config", "commit.gpgsign", "true")
        sandbox.git("config", "gpg.program", "false")
    else:
        sandbox.write(f".git/hooks/{refuser}", "#!/bin/sh\necho 'the linter says no' >&2\nexit 1\n", mode=0o755)


def test_a_refusal_on_a_full_disk_reports_the_free_space(
    sandbox: GitSandbox, history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F34: git itself may only say that it could not write."""
    sandbox.write("a", "1\n")
    sandbox.commit()
    sandbox.write("a", "2\n")
    (sandbox.git_dir / "index.lock").touch()
    leave(monkeypatch, pages=5)
    assert commit(history, ["a"]).words.endswith(" has 20480 bytes and 1000 files free)")
    leave(monkeypatch, pages=100_000)
    assert " files free)" not in commit(history, ["a"]).words


def test_a_refusal_in_a_repository_without_index_creates_none(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.write("a", "1")
    _refuse(sandbox, "pre-commit")
    assert commit(history, ["a"]).words == "the linter says no"
    assert not (sandbox.git_dir / "index").exists()
    assert not (sandbox.git_dir / "index.lock").exists()


def test_a_refused_commit_is_not_confused_with_an_earlier_one_of_the_same_message(
    sandbox: GitSandbox, history: GitHistory
) -> None:
    """The reports of a run are committed with the same message each time."""
    sandbox.write("a", "1")
    assert commit(history, ["a"], message="reports").commit == sandbox.head()
    sandbox.write(".git/hooks/pre-commit", "#!/bin/sh\necho no >&2\nexit 1\n", mode=0o755)
    sandbox.write_all({"a": "2", "b": "1"})
    before = entries(sandbox)
    assert commit(history, ["a", "b"], message="reports") == CommitAttempt(None, "no")
    assert entries(sandbox) == before


def test_hooks_run_unless_they_are_disabled(sandbox: GitSandbox, history: GitHistory) -> None:
    _refuse(sandbox, "pre-commit")
    sandbox.write("a", "1")
    assert commit(history, ["a"], hooks=True).commit is None
    assert commit(history, ["a"], hooks=False).commit is not None


def test_hooks_see_no_variable_of_idumb_that_changes_their_git(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.write("a.py", "1")
    sandbox.commit()
    sandbox.write("a.py", "2")
    hook = "#!/bin/sh\ntest \"$(git diff --cached --name-only -- '*.py')\" = a.py\n"
    sandbox.write(".git/hooks/pre-commit", hook, mode=0o755)
    result = commit(history, ["a.py"])
    assert result.commit, result.words


def test_an_empty_commit_includes_nothing_staged(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.commit()
    sandbox.write("staged", "1")
    sandbox.git("add", "staged")
    before = entries(sandbox)
    assert commit(history, []).commit is None
    assert commit(history, [], allow_empty=True).commit == sandbox.head()
    assert changed(sandbox) == []
    assert entries(sandbox) == before


def test_the_message_is_kept_unchanged(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.write("a", "1")
    message = "T1-01: do it\n\n# not a comment\n\nIdumb-Task: T1-01\nIdumb-Run: r1\n"
    result = commit(history, ["a"], message=message)
    assert sandbox.git("log", "-1", "--format=%B") == message
    assert history.trailers_since(None) == ((result.commit, {"Idumb-Task": "T1-01", "Idumb-Run": "r1"}),)


def test_a_link_in_the_place_of_a_folder_is_committed_although_it_leads_to_the_same_names(
    sandbox: GitSandbox, history: GitHistory
) -> None:
    sandbox.write_all({"a/b": "1", "b/c": "2"})
    sandbox.commit()
    (sandbox.root / "a/b").unlink()
    (sandbox.root / "a").rmdir()
    sandbox.link("a", ".")
    assert commit(history, ["a", "a/b"]).commit is not None
    assert sandbox.git("ls-tree", "-r", "--name-only", "HEAD").split() == ["a", "b/c"]
    assert sandbox.git("status", "--porcelain") == ""


def test_a_commit_on_an_unexpected_head_is_refused(sandbox: GitSandbox, history: GitHistory) -> None:
    """F24."""
    first = sandbox.commit()
    sandbox.commit("the user's")
    sandbox.write("a", "1")
    result = history.commit(["a"], "T1", expected_head=first, hooks=True, allow_empty=False)
    assert result.commit is None
    assert "another commit was made" in result.words


def test_a_locked_index_is_refused_with_git_s_message(sandbox: GitSandbox, history: GitHistory) -> None:
    """M10."""
    sandbox.write("a", "1")
    lock = sandbox.write(".git/index.lock")
    result = commit(history, ["a"])
    assert result.commit is None
    assert "index.lock" in result.words
    assert lock.exists()


def test_many_paths_can_be_committed(sandbox: GitSandbox, history: GitHistory) -> None:
    paths = [f"a-folder-with-a-long-name/{n // 100}/and-a-file-with-a-long-name-{n}" for n in range(3000)]
    sandbox.write_all(dict.fromkeys(paths, ""))
    sandbox.write("bystander", "1")
    assert commit(history, paths).commit
    assert len(sandbox.tree()) == len(paths)
    assert sandbox.status() == ["?? bystander"]


def test_nothing_to_commit_is_reported(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.write("a", "1")
    sandbox.commit()
    result = commit(history, ["a"])
    assert result.commit is None
    assert result.words


def test_a_commit_in_a_linked_worktree_moves_its_own_branch(sandbox: GitSandbox, tmp_path: Path) -> None:
    """F10."""
    first = sandbox.commit()
    sandbox.git("worktree", "add", "-q", str(tmp_path / "side"))
    (tmp_path / "side/a").write_text("1")
    result = commit(GitHistory(discover.find(str(tmp_path / "side"))), ["a"])
    assert sandbox.refs("refs/heads/") == {"refs/heads/main": first, "refs/heads/side": result.commit}


@pytest.mark.parametrize("options", [("--split-index",), ("--index-version", "4")])
def test_other_index_formats_work(sandbox: GitSandbox, history: GitHistory, options: tuple[str, ...]) -> None:
    sandbox.write_all({"a": "1", "b": "1"})
    sandbox.commit()
    sandbox.git("update-index", *options)
    sandbox.write_all({"a": "2", "b": "2", "na\udcff": "1"})
    assert commit(history, ["a", "na\udcff"]).commit
    assert sandbox.status() == [" M b"]


def test_a_missing_untracked_file_is_nothing_to_commit(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.write("a", "1")
    assert commit(history, ["a", "was/untracked"]).commit
    assert list(sandbox.tree()) == ["a"]
    assert commit(history, ["was/untracked"]).commit is None
    assert commit(history, ["was/untracked"], allow_empty=True).commit


def test_a_staged_deletion_is_committed(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.write_all({"a": "1", "b": "1"})
    sandbox.commit()
    sandbox.git("rm", "-q", "a", "b")
    assert commit(history, ["a"]).commit
    assert changed(sandbox) == ["D a"]
    assert sandbox.status() == ["D  b"]


def test_a_head_that_moves_during_a_commit_is_reported(
    sandbox: GitSandbox, history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F24: nothing is lost, and the run learns of the concurrent change."""
    sandbox.commit()
    sandbox.write("a", "1")
    add = index_file.announce

    def late(*arguments: Any) -> Any:
        sandbox.git("commit", "-q", "--allow-empty", "-m", "the user's")
        return add(*arguments)

    monkeypatch.setattr(index_file, "announce", late)
    result = commit(history, ["a"])
    assert result.commit == sandbox.head()
    assert "HEAD moved" in result.words


def test_an_interrupted_commit_leaves_neither_lock_nor_index_entry(
    sandbox: GitSandbox, history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M10: git is asked to end, so that it removes its own lock."""
    head = sandbox.commit()
    sandbox.write("a", "1")
    started = sandbox.root / "started"
    os.mkfifo(started)
    sandbox.write(".git/hooks/pre-commit", f"#!/bin/sh\necho > {started}\nexec sleep 30\n", mode=0o755)
    communicate = subprocess.Popen.communicate

    def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> Any:
        if "commit" not in str(process.args):
            return communicate(process, timeout=timeout)
        started.read_bytes()
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        commit(history, ["a"])
    monkeypatch.undo()
    assert sandbox.head() == head
    assert sandbox.status() == ["?? a", "?? started"] or sandbox.status() == ["?? a"]
    assert not (sandbox.git_dir / "index.lock").exists()
