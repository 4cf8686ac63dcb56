"""Hooks of the user see a commit in a checkout; what they change, refuse or leave running. R-GIT-1, F22."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from idumb.app.ports import CommitAttempt
from idumb.git import disk
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from tests.adapters.git.commits import MESSAGE, commit, hook, make, work
from tests.adapters.git.conftest import REF
from tests.support import checkouts
from tests.support.ended import has_ended
from tests.support.gitrepo import GitSandbox


def test_a_hook_that_reformats_changes_the_commit_and_no_file_of_the_user(
    repo: GitSandbox, history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it made is on disk before the branch moves."""
    forced = list[str]()
    monkeypatch.setattr(disk, "force_objects", lambda _, oids: forced.extend(oids))
    repo.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")  # as in every clone
    hook(repo, "git for-each-ref && tr a-z A-Z < b > c; mv c b; echo more > d; git add b d")
    tree = work(repo, {"b": "abc\n"})
    before = repo.ledger()
    made = make(history, tree)
    names = (f"{made.commit}", f"{made.tree}", f"{made.tree}:b", f"{made.tree}:d")
    assert {*repo.git("rev-parse", *names).split()} <= {*forced}
    assert repo.git("show", f"{made.commit}:b", f"{made.tree}:b", f"{made.tree}:d") == "ABC\nABC\nmore"
    assert repo.git("rev-parse", f"{made.commit}^{{tree}}") == made.tree
    assert repo.ledger() == before


def test_what_programs_left_in_the_checkout_is_in_no_commit(repo: GitSandbox, history: GitHistory) -> None:
    tree = checkouts.tree(repo)
    repo.write(".git/info/exclude", "*.log\n")
    hook(repo, "echo left > coverage.xml")
    assert make(history, tree).commit
    hook(repo, "echo ignored > a.log; git add --all")
    assert make(history, tree).tree == tree


@pytest.mark.parametrize("script", ["sed -i /^Idumb-/d $1", "printf '\\nRefs #1\\n' >> $1", "echo short > $1"])
def test_a_commit_has_its_trailers_also_if_a_hook_removes_or_hides_them(
    repo: GitSandbox, history: GitHistory, script: str
) -> None:
    """Otherwise nobody finds the commit of a task after a kill. What else the hook says stays."""
    hook(repo, script, "commit-msg")
    base, made = history.head().commit, commit(history, work(repo, {"a": "2\n"}))
    assert history.trailers_since(base) == ((made, {"Idumb-Task": "T1-01", "Idumb-Run": "r1"}),)
    assert ("Refs #1" in repo.git("show", "-s", "--format=%B")) == ("Refs" in script)


def test_why_the_trailers_cannot_be_put_back_is_told(repo: GitSandbox, history: GitHistory) -> None:
    """The second commit is signed, too, and its signature may be refused."""
    signer = repo.write(".git/signer", "#!/bin/sh\necho no key >&2\nexit 1\n", mode=0o755)
    repo.git("config", "gpg.program", str(signer))
    hook(repo, f"sed -i /^Idumb-/d $1; git --git-dir={repo.git_dir} config commit.gpgSign true", "commit-msg")
    made = make(history, work(repo, {"a": "2\n"}))
    assert made.commit is None
    assert "gpg failed to sign the data" in made.words


@pytest.mark.parametrize("name", ["pre-commit", "prepare-commit-msg", "commit-msg"])
def test_a_hook_that_refuses_is_told_with_its_words_and_what_it_left(
    repo: GitSandbox, history: GitHistory, name: str
) -> None:
    hook(repo, "echo 2 > b; rm a; echo new > untracked; echo 'the linter says no' >&2; exit 1", name)
    tree = work(repo, {"b": "1\n"})
    before = repo.ledger()
    made = make(history, tree)
    assert (made.commit, made.words, made.by_hook) == (None, "the linter says no", True)
    assert repo.git("ls-tree", "--name-only", made.tree) == "b"
    assert repo.git("show", f"{made.tree}:b") == "2"
    assert repo.ledger() == before
    assert make(history, tree, hooks=False).commit


def test_a_refusal_of_the_message_is_no_fault_of_the_work(repo: GitSandbox, history: GitHistory) -> None:
    """As by commitlint: a builder would correct the work in vain."""
    hook(repo, "exit 0")
    hook(repo, 'grep -q "^feat: " "$1" || { echo "subject-empty"; exit 1; }', "commit-msg")
    tree = work(repo, {"b": "1\n"})
    made = make(history, tree)
    assert (made.commit, made.by_hook, made.tree) == (None, False, tree)
    assert made.words.startswith("subject-empty\n[a hook refused the message, which git.message ")


def test_a_hook_that_refuses_silently_is_said_to_be_one(repo: GitSandbox, history: GitHistory) -> None:
    hook(repo, "exit 3")
    tree = work(repo, {"a": "2\n"})
    words = "git commit ended with status 1; perhaps a hook such as pre-commit refused it silently"
    assert make(history, tree) == CommitAttempt(None, words, tree, by_hook=True)


def test_a_hook_that_refuses_refs_refuses_the_commit(repo: GitSandbox, history: GitHistory) -> None:
    """F22: also if it is the only hook."""
    tree = work(repo, {"a": "2\n"})
    hook(repo, 'test "$1" != prepared || { echo no >&2; exit 1; }', "reference-transaction")
    made = make(history, tree)
    assert (made.commit, made.by_hook, made.words.splitlines()[0]) == (None, False, "no")


def test_a_hook_that_leaves_a_conflict_in_its_index_changes_nothing(repo: GitSandbox, history: GitHistory) -> None:
    hook(repo, "printf '100644 %s 1\\ta\\n' $(git rev-parse :a) | git update-index --index-info; exit 1")
    tree = checkouts.tree(repo)
    assert make(history, tree).tree == tree


def test_hooks_change_the_message(repo: GitSandbox, history: GitHistory) -> None:
    hook(repo, 'echo "$2 $(git symbolic-ref --short HEAD): $(cat "$1")" > "$1"', "prepare-commit-msg")
    hook(repo, 'echo "Reviewed: yes" >> "$1"', "commit-msg")
    made = make(history, checkouts.tree(repo))
    assert repo.git("log", "-1", "--format=%B", str(made.commit)) == f"message main: {MESSAGE}Reviewed: yes\n"


def test_a_process_that_a_hook_leaves_running_does_not_hold_the_commit_up(
    repo: GitSandbox, history: GitHistory, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    hook(repo, f"cat {pipe} &", "post-commit")
    assert make(history, checkouts.tree(repo)).commit
    pipe.write_bytes(b"it runs until now")


@pytest.mark.parametrize("place", ["relative", "absolute", "home"])
def test_hooks_in_the_tree_run(repo: GitSandbox, history: GitHistory, home: Path, place: str) -> None:
    """As husky has them: the hook reads a script beside it."""
    folder = {"relative": ".husky/_", "absolute": str(repo.root / ".husky/_"), "home": "~/.husky/_"}[place]
    repo.git("config", "core.hooksPath", folder)
    files = repo if place != "home" else GitSandbox(home)
    hook(files, '. "$(dirname -- "$0")/h"', folder=".husky/_")
    files.write(".husky/_/h", 'sh "$(dirname "$(dirname "$0")")/$(basename "$0")"\n')
    hook(files, "echo 2 > a; git add a", folder=".husky")
    made = make(history, checkouts.tree(repo))
    assert repo.git("show", f"{made.commit}:a") == "2", made.words


def test_hooks_do_not_run_if_this_run_wrote_one_of_them(repo: GitSandbox, history: GitHistory) -> None:
    base = repo.head()
    repo.git("config", "core.hooksPath", "hooks")
    hook(repo, "exit 1", folder="hooks")
    history.state()
    made = history.make(checkouts.tree(repo), base, MESSAGE, hooks=True, wrote={"hooks/pre-commit"}.__contains__)
    assert made.commit
    assert made.unrun == ("hooks/pre-commit",)


def test_a_hook_sees_exactly_the_change_and_not_the_user_s_git_folder(repo: GitSandbox, history: GitHistory) -> None:
    """The user's own staged and untracked files are not there."""
    base = repo.head()
    seen = repo.git_dir / "seen"
    hook(
        repo,
        f"exec > {seen}; git status --porcelain; git diff --cached --name-only -- '*.py'; git rev-parse HEAD;"
        " git log -1 --format=%s; git rev-parse --abbrev-ref HEAD; git tag; git config core.quotepath;"
        " git rev-parse --absolute-git-dir --show-toplevel; pwd; git config user.name; ls",
    )
    repo.git("tag", "v1")
    repo.write_all({"mine": "1\n", "staged": "1\n"})
    repo.git("add", "staged")
    made = make(history, work(repo, {"b.py": "1\n"}))
    assert made.commit, made.words
    rows = seen.read_text().splitlines()
    assert rows[:7] == ["A  b.py", "b.py", base, "work", "main", "v1", "false"]
    assert rows[7] != str(repo.git_dir)
    assert rows[8] == rows[9] != str(repo.root)
    assert rows[10:] == ["Pat Tester", "a", "b.py"]


def test_a_hook_that_moves_the_head_makes_no_commit_of_ours(repo: GitSandbox, history: GitHistory) -> None:
    hook(repo, "git -c core.hooksPath= commit -q --allow-empty -m version", "post-commit")
    tree = work(repo, {"a": "2\n"})
    made = make(history, tree)
    assert (made.commit, made.tree) == (None, tree)
    assert made.words.startswith("a hook made other commits")


def test_a_hook_that_packs_the_repository_removes_nothing_that_idumb_keeps(
    repo: GitSandbox, history: GitHistory, trees: GitTrees
) -> None:
    repo.write("a", "only in a snapshot\n")
    kept = trees.snapshot(REF, "test").tree
    for place in (repo.common_dir / "objects").glob("??/*"):
        os.utime(place, (1e9, 1e9))  # git removes what is older than two weeks
    hook(repo, "git gc --quiet")
    made = make(history, checkouts.tree(repo))
    assert made.commit, made.words
    assert repo.git("show", f"{kept}:a") == "only in a snapshot"


def test_an_interrupted_commit_ends_git_and_its_hooks(
    repo: GitSandbox, history: GitHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M10."""
    started, pipe = tmp_path / "started", tmp_path / "pipe"
    os.mkfifo(started)
    os.mkfifo(pipe)
    hook(repo, f"exec 9<> {pipe}; echo $$ > {started}; read x <&9")
    hooks = list[int]()
    tree = work(repo, {"a": "2\n"})
    before = repo.ledger()
    wait = subprocess.Popen.wait

    def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> Any:
        if timeout is not None or "commit" not in process.args:  # type: ignore[operator]
            return wait(process, timeout)
        monkeypatch.undo()
        hooks.append(int(started.read_text()))
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(history, tree)
    assert has_ended(hooks[0])
    assert repo.ledger() == before
