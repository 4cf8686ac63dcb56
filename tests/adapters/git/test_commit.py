"""Commits that are made beside the branch, and the branch that follows. F1, F5, F7, F8, F10, F13, F16, F22-F24."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from idumb.app.ports import CommitAttempt
from idumb.git import refs, status
from idumb.git.history import GitHistory
from idumb.system import clock
from tests.adapters.git.commits import MESSAGE, advance, commit, committed, hook, make, work
from tests.adapters.git.test_disk import leave
from tests.support import checkouts
from tests.support.gitrepo import GitSandbox

HOOKS = pytest.mark.parametrize("hooks", [False, True], ids=["plain", "hooks"])
"""With hooks, `git commit` makes the commit in a checkout."""


@HOOKS
def test_a_commit_has_the_user_s_identity_and_the_message_and_moves_nothing(
    repo: GitSandbox, history: GitHistory, *, hooks: bool
) -> None:
    base = repo.head()
    repo.git("config", "i18n.commitEncoding", "latin1")
    repo.git("config", "commit.cleanup", "strip")
    hook(repo, "true")
    tree = work(repo, {"a": "2\n"})
    before = repo.ledger()
    made = make(history, tree, hooks=hooks)
    assert made == CommitAttempt(made.commit, tree=tree)
    assert "encoding" not in repo.git("cat-file", "commit", str(made.commit))
    repo.git("config", "--unset", "i18n.commitEncoding")
    about = repo.git("log", "-1", "--format=%an <%ae>%n%cn%n%P%n%T%n%B", str(made.commit))
    assert about == f"Pat Tester <pat@example.invalid>\nPat Tester\n{base}\n{tree}\n{MESSAGE}"
    assert repo.ledger() == replace(before, config=repo.ledger().config)
    assert advance(history, made) == ""
    assert history.trailers_since(None) == ((made.commit, {"Idumb-Task": "T1-01", "Idumb-Run": "r1"}),)
    assert repo.status() == []


def test_a_long_message_is_kept(repo: GitSandbox, history: GitHistory) -> None:
    """An argument of a program may not be as long."""
    hook(repo, "true")
    made = make(history, checkouts.tree(repo), message="x" * 200_000 + "\n")
    assert len(repo.git("log", "-1", "--format=%B", str(made.commit))) == 200_001


SIGN = """#!/bin/sh
cat > /dev/null
echo '[GNUPG:] SIG_CREATED ' >&2
echo '-----BEGIN PGP SIGNATURE-----'
"""


@HOOKS
def test_a_commit_is_signed_as_the_user_configured(repo: GitSandbox, history: GitHistory, *, hooks: bool) -> None:
    hook(repo, "true")
    repo.git("config", "commit.gpgSign", "true")
    repo.git("config", "gpg.program", str(repo.write(".git/signer", SIGN, mode=0o755)))
    made = make(history, checkouts.tree(repo), hooks=hooks)
    assert "BEGIN PGP SIGNATURE" in repo.git("cat-file", "commit", str(made.commit))


@HOOKS
@pytest.mark.parametrize("refuser", ["identity", "signing"])
def test_if_git_refuses_its_words_are_returned(
    repo: GitSandbox, history: GitHistory, *, hooks: bool, refuser: str
) -> None:
    """F22, F23."""
    hook(repo, "true")
    if refuser == "identity":
        for name in ("name", "email"):
            repo.git("config", "--unset", f"user.{name}")
        repo.git("config", "user.useConfigOnly", "true")
    else:
        signer = repo.write(".git/signer", "#!/bin/sh\nexit 1\n", mode=0o755)
        repo.git("config", "commit.gpgSign", "true")
        repo.git("config", "gpg.program", str(signer))
    tree = work(repo, {"a": "2\n"})
    before = repo.ledger()
    made = make(history, tree, hooks=hooks)
    assert (made.commit, made.tree, made.by_hook) == (None, tree, False)
    assert {"identity": "auto-detection is disabled", "signing": "gpg failed to sign the data"}[refuser] in made.words
    assert repo.ledger() == before


def test_a_refusal_on_a_full_disk_reports_the_free_space(
    repo: GitSandbox, history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F34: git itself may only say that it could not write."""
    hook(repo, "true")
    repo.git("config", "user.useConfigOnly", "true")
    repo.git("config", "--unset", "user.email")
    tree = checkouts.tree(repo)
    assert " files free)" not in make(history, tree).words
    leave(monkeypatch, pages=5)
    assert make(history, tree).words.endswith(" has 20480 bytes and 1000 files free)")


@HOOKS
def test_the_first_commit_of_a_repository(sandbox: GitSandbox, history: GitHistory, *, hooks: bool) -> None:
    """F8."""
    hook(sandbox, "test \"$(git status --porcelain)\" = 'A  a'")
    tree = work(sandbox, {"a": "1"})
    sandbox.write("staged", "1")
    sandbox.git("add", "staged")
    made = make(history, tree, hooks=hooks)
    assert advance(history, made) == ""
    assert sandbox.head() == made.commit
    assert list(sandbox.tree()) == ["a"]
    assert sandbox.status() == ["A  staged"]


@HOOKS
def test_a_commit_on_a_detached_head_moves_no_branch(repo: GitSandbox, history: GitHistory, *, hooks: bool) -> None:
    """F7."""
    base = repo.head()
    repo.git("checkout", "-q", "--detach")
    hook(repo, 'test "$(git rev-parse --abbrev-ref HEAD)" = HEAD')
    made = commit(history, work(repo, {"a": "2\n"}), hooks=hooks)
    assert made == repo.head()
    assert repo.refs("refs/heads/") == {"refs/heads/main": base}
    assert repo.status() == []


def test_a_commit_in_a_linked_worktree_moves_its_own_branch(repo: GitSandbox, tmp_path: Path) -> None:
    """F10."""
    base = repo.head()
    repo.git("worktree", "add", "-q", str(tmp_path / "side"))
    hook(repo, 'test "$(git rev-parse --abbrev-ref HEAD)" = side && echo 3 > a && git add a')
    side = GitSandbox(tmp_path / "side")
    with checkouts.committing(side) as history:
        made = commit(history, work(side, {"a": "2\n"}))
    assert repo.git("show", f"{made}:a") == "3"
    assert repo.refs("refs/heads/") == {"refs/heads/main": base, "refs/heads/side": made}


def test_a_commit_of_a_project_in_a_subfolder_has_its_trailer_and_hooks_run_at_the_top(repo: GitSandbox) -> None:
    """R-GIT-8."""
    hook(repo, "test \"$(git status --porcelain)\" = 'A  apps/api/b'")
    tree = work(repo, {"apps/api/b": "1"})
    with checkouts.committing(repo, "apps/api") as history:
        made = make(history, tree)
    assert repo.git("log", "-1", "--format=%B", str(made.commit)) == f"{MESSAGE}Idumb-Project: apps/api\n"


def test_submodules_stay_as_they_are(repo: GitSandbox, history: GitHistory) -> None:
    at = repo.add_submodule("lib").head()
    repo.commit()
    hook(repo, "test \"$(git status --porcelain -uno)\" = 'M  a' && cat lib/f")
    tree = work(repo, {"a": "2\n"})
    made = make(history, tree)
    assert made.tree == tree, made.words
    assert repo.tree(str(made.commit))["lib"] == ("160000", at)


@pytest.mark.parametrize("options", [("--cone", "--sparse-index"), ("--no-cone",)])
def test_files_outside_a_sparse_checkout_stay_in_the_commit(
    repo: GitSandbox, history: GitHistory, options: tuple[str, ...]
) -> None:
    repo.commit_with({"near/x": "1\n", "far/away/x": "1\n"})
    repo.git("sparse-checkout", "set", *options, "near")
    hook(repo, "test \"$(git status --porcelain)\" = 'M  near/x' && ! test -e far && git add --all && git add near/x")
    tree = work(repo, {"near/x": "2\n"})
    made = make(history, tree)
    assert made.tree == tree, made.words
    assert advance(history, made) == ""
    assert repo.status() == []
    assert not (repo.root / "far").exists()


@HOOKS
def test_names_modes_links_and_changed_kinds_are_committed_and_staged(
    sandbox: GitSandbox, history: GitHistory, *, hooks: bool
) -> None:
    """F16: also a file that becomes a folder, a folder that becomes a file or a link."""
    odd = ["-rf", ":(top)x", "new\nline", "na\udcff", "*", "sp ace", "links/link"]
    sandbox.commit_with({"file": "1", "folder/x": "1", "folder/y": "1", "linked/b": "1", "run": "1", "-rf2": "1"})
    hook(sandbox, "true")
    for path in ("file", "folder", "linked"):
        sandbox.remove(path)
    sandbox.write_all({**dict.fromkeys(odd, "1"), "file/x": "1", "folder": "1", "bystander": "1"})
    sandbox.link("linked", ".")
    (sandbox.root / "run").chmod(0o755)
    changed = [*odd, "file", "file/x", "folder", "folder/x", "folder/y", "linked", "linked/b", "run"]
    commit(history, committed(sandbox, changed), hooks=hooks)
    modes = {path: mode for path, (mode, _) in sandbox.tree().items()}
    assert modes.keys() == {*odd, "file/x", "folder", "linked", "run", "-rf2"}
    assert (modes["run"], modes["linked"]) == ("100755", "120000")
    assert sandbox.status() == ["?? bystander"]


@HOOKS
def test_filters_apply_as_in_the_user_s_own_commits(sandbox: GitSandbox, history: GitHistory, *, hooks: bool) -> None:
    """F13, F17."""
    sandbox.git("config", "filter.up.clean", "tr a-z A-Z")
    sandbox.git("config", "filter.up.smudge", "tr A-Z a-z")
    hook(sandbox, "git add --update")
    files = {".gitattributes": "*.f filter=up\n*.t text eol=crlf\n", "a.f": "abc\n", "b.t": "1\r\n"}
    commit(history, work(sandbox, files), hooks=hooks)
    assert sandbox.git("show", "HEAD:a.f") == "ABC"
    assert sandbox.git("cat-file", "-s", "HEAD:b.t") == "2"
    assert sandbox.status() == []


def test_the_branch_moves_only_from_the_expected_commit(repo: GitSandbox, history: GitHistory) -> None:
    """F24."""
    base = repo.head()
    made = make(history, work(repo, {"a": "2\n"}))
    other = repo.git("commit-tree", "-p", base, "-m", "the user's", checkouts.tree(repo))
    repo.git("update-ref", "refs/heads/main", other)
    before = repo.ledger()
    words = history.advance(history.head().branch, str(made.commit), base, "T1-01")
    assert f"is at {other} but expected {base}" in words
    assert repo.head() == other
    assert repo.status() == [" M a"]
    assert repo.ledger().changed_paths(before) == []
    repo.git("branch", "other", base)
    repo.git("symbolic-ref", "HEAD", "refs/heads/other")
    assert "HEAD is on other" in history.advance("main", str(made.commit), base, "T1-01")
    assert repo.head() == base


def test_what_the_user_staged_stays_staged(sandbox: GitSandbox, history: GitHistory) -> None:
    """F1, F5: for the commit's own paths, for others, and for a file in the place of a folder, and the reverse."""
    sandbox.commit_with(dict.fromkeys(("both", "gone", "mod", "other", "partly"), "1\n"))
    sandbox.write_all({"both": "mine\n", "partly": "2\n", "new": "mine\n", "mine": "my own\n"})
    sandbox.git("add", "both", "partly", "new", "mine")
    sandbox.git("rm", "-q", "--cached", "other")
    sandbox.write("partly", "3\n")
    commit(history, work(sandbox, {"both": "2\n", "new": "1\n", "mod": "2\n", "gone": None, "created": "1\n"}))
    assert sandbox.status() == ["MM both", "A  mine", "MM new", "D  other", "MM partly", "?? other"]
    assert sandbox.git("show", ":both", ":new", ":partly") == "mine\nmine\n2"
    for path in ("up", "down/a"):
        sandbox.git("update-index", "--add", "--cacheinfo", f"100644,{sandbox.git('rev-parse', ':mine')},{path}")
    commit(history, work(sandbox, {"up/b": "1\n", "down": "1\n"}))
    assert sandbox.git("ls-files", "up", "down") == "down/a\nup"


def test_an_announced_file_is_staged_with_its_commit(repo: GitSandbox, history: GitHistory) -> None:
    repo.write_all({"new": "1\n", "later": "1\n"})
    repo.git("add", "--intent-to-add", "new", "later")
    commit(history, committed(repo, ["new"]))
    assert repo.status() == [" A later"]


def test_while_the_index_is_locked_the_branch_does_not_move_and_a_lock_that_goes_is_waited_for(
    repo: GitSandbox, history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M10."""
    base = repo.head()
    made = make(history, work(repo, {"a": "2\n"}))
    lock = repo.write(".git/index.lock")
    with monkeypatch.context() as impatient:
        impatient.setattr(status, "_PATIENCE", 0.0)
        assert "index.lock" in advance(history, made)
    assert (repo.head(), lock.exists()) == (base, True)
    monkeypatch.setattr(clock.SystemClock, "pause", lambda *_: lock.unlink())
    assert advance(history, made) == ""
    assert (repo.head(), repo.status()) == (made.commit, [])


def before_the_branch(monkeypatch: pytest.MonkeyPatch, call: Any) -> None:
    """Call this once, after the index was written and before the branch moves."""
    swap = refs.swap

    def late(*arguments: Any) -> None:
        monkeypatch.undo()
        call()
        swap(*arguments)

    monkeypatch.setattr(refs, "swap", late)


def killed_before_the_branch(sandbox: GitSandbox, history: GitHistory, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the commit that the branch was to have."""
    made = make(history, work(sandbox, {"a": "2\n"}))
    before_the_branch(monkeypatch, Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        advance(history, made)
    return str(made.commit)


def test_after_a_kill_between_index_and_branch_the_next_commit_of_the_user_keeps_the_work(
    repo: GitSandbox, history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-GIT-2: the other way round, it would silently undo the work."""
    killed_before_the_branch(repo, history, monkeypatch)
    repo.write("mine", "1\n")
    repo.git("add", "mine")
    repo.git("commit", "--quiet", "-m", "the user's")
    assert repo.git("show", "HEAD:a", "HEAD:mine") == "2\n1"


def test_moving_the_branch_can_be_repeated_after_a_kill(
    repo: GitSandbox, history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = repo.head()
    made = killed_before_the_branch(repo, history, monkeypatch)
    assert repo.head() == base
    for _ in range(2):
        assert history.advance(history.head().branch, made, base, "T1-01") == ""
        assert (repo.head(), repo.status()) == (made, [])


@pytest.mark.parametrize("theirs", ["all", "another file"])
def test_if_the_user_commits_before_the_branch_moves_the_index_matches_the_user_s_commit(
    repo: GitSandbox, history: GitHistory, theirs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F24."""
    made = make(history, work(repo, {"a": "2\n"}))
    repo.write("mine", "1\n")
    repo.git("add", "mine")
    arguments = {"all": (), "another file": ("mine",)}[theirs]
    before_the_branch(monkeypatch, lambda: repo.git("commit", "--quiet", "-m", "the user's", *arguments))
    assert "but expected" in advance(history, made)
    assert repo.status() == ([] if theirs == "all" else [" M a"])


def test_the_reflog_says_who_moved_the_branch(repo: GitSandbox, history: GitHistory) -> None:
    made = commit(history, work(repo, {"a": "2\n"}))
    for name in ("HEAD", "main"):
        assert repo.git("log", "-1", "--walk-reflogs", "--format=%H %gs", name) == f"{made} idumb: T1-01"


@pytest.mark.nightly
def test_many_paths_can_be_committed(sandbox: GitSandbox, history: GitHistory) -> None:
    paths = [f"a-folder-with-a-long-name/{n // 100}/and-a-file-with-a-long-name-{n}" for n in range(3000)]
    commit(history, work(sandbox, dict.fromkeys(paths, "")))
    assert len(sandbox.tree()) == len(paths)
    assert sandbox.status() == []
