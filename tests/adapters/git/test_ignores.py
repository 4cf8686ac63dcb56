"""Which ignore rules apply, and that rules cannot hide themselves or their author. R-GIT-1, R-GIT-5."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from idumb.domain.errors import Refusal
from idumb.git import discover, git_program, guarded_files
from idumb.git.trees import GitTrees
from tests.adapters.git.conftest import names, trees_of
from tests.support import checkouts
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox


def test_an_ignore_file_that_ignores_itself_hides_its_folder_and_one_in_an_ignored_folder_counts_for_nothing(
    sandbox: GitSandbox, trees: GitTrees
) -> None:
    """As for git, and as tools do it for their caches."""
    sandbox.write_all({"made/.gitignore": "*\n", "made/x": "x", "a": "a"})
    sandbox.write_all({".gitignore": "/node_modules/\n", "node_modules/a/.gitignore": "!*\n", "node_modules/a/x": "x"})
    assert names(sandbox, trees.scan()) == [".gitignore", "a"]


def test_files_hidden_by_rules_are_listed_with_the_rule(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "a", ".gitignore": "*.log\nbuild\n", "x.log": "x", "build/b": "", "d/.gitignore": "x\n"})
    sandbox.write("d/x", "")
    trees.scan()
    assert trees.hidden_by(["d/.gitignore"]) == {"d/x": ("d/.gitignore", "x")}
    assert trees.hidden_by([".gitignore"]) == {"build/": (".gitignore", "build"), "x.log": (".gitignore", "*.log")}
    assert trees.hidden_by([]) == {}


def test_rules_written_into_the_git_folder_of_a_checkout_do_not_apply(sandbox: GitSandbox, home: Path) -> None:
    (home / "mine").write_text("*.swp\n")
    (home / "gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n")
    sandbox.write(".git/info/exclude", "*.log\n")
    sandbox.commit_with({"a": "a"})
    checkout = checkouts.create(sandbox)
    root = checkouts.show(checkout, sandbox)
    (root / ".git/info/exclude").write_text("hidden\n")
    checkouts.run(f"git config core.excludesFile {root}/rules", checkout)
    for name in ("rules", "hidden", "x.swp", "x.log"):
        (root / name).write_text("hidden-too\n")
    assert names(sandbox, checkout.trees.scan()) == ["a", "hidden", "rules"]
    checkouts.close(checkout)


def test_the_user_s_rules_are_read_wherever_configuration_names_them(sandbox: GitSandbox, home: Path) -> None:
    outside = guarded_files.GuardedFiles(discover.find(str(sandbox.root)))
    assert outside.configuration.ignores[-1] == str(home / "config/git/ignore")
    (home / "more").write_text("")
    (home / "gitconfig").write_text("[include]\n\tpath = more\n\tpath = ~/later\n")
    assert outside.configuration.ignores[-1] == str(home / "config/git/ignore")
    (home / "more").write_text("[core]\n\texcludesFile = ~/rules\n")
    assert outside.configuration.ignores[-1] == str(home / "rules")
    (home / "later").write_text("[core]\n\texcludesFile = /elsewhere\n")
    assert outside.configuration.ignores[-1] == "/elsewhere"
    sandbox.git("config", "core.excludesFile", "in/tree")
    assert outside.configuration.ignores[-1] == str(sandbox.root / "in/tree")


def test_a_tracked_file_that_git_ignores_is_included_again_after_it_was_away(
    sandbox: GitSandbox, trees: GitTrees
) -> None:
    """F4: git does not list it as new, and the user's index did not change."""
    sandbox.write_all({"build/kept": "k", ".gitignore": "build/\n"})
    sandbox.git("add", "-f", "build/kept")
    trees.scan()
    sandbox.remove("build/kept")
    assert names(sandbox, trees.scan()) == [".gitignore"]
    for text in ("new", "dated back"):
        sandbox.write("build/kept", text)
        os.utime(sandbox.root / "build/kept", (1, 1))
        trees.scan()
        assert names(sandbox, trees.scan()) == [".gitignore", "build/kept"]


def test_an_ignored_file_is_included_if_declared(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"build/out": "o", "build/other": "o", ".gitignore": "build/\n"})
    assert names(sandbox, trees.scan()) == [".gitignore"]
    assert names(sandbox, trees.scan(["build/out", "build/absent"])) == [".gitignore", "build/out"]


def test_rules_that_are_removed_or_added_bring_files_back(sandbox: GitSandbox, trees: GitTrees) -> None:
    rows = [
        (".gitignore", ".gitignore"),
        ("d/.gitignore",) * 2,
        (".git/info/exclude",) * 2,
        (".gitignore", "d/.gitignore"),
    ]
    for number, (rules, later) in enumerate(rows):
        sandbox.write_all({f"d/{number}.log": "l", rules: f"{number}.*\n"})
        assert f"d/{number}.log" not in names(sandbox, trees.scan())
        sandbox.write(later, f"!{number}.log\n")
        assert f"d/{number}.log" in names(sandbox, trees.scan())


def test_ignored_files_of_a_declared_folder_are_included_if_it_took_the_place_of_a_file(
    sandbox: GitSandbox, trees: GitTrees
) -> None:
    sandbox.write_all({".gitignore": "*.log\n", "out": "a file\n"})
    sandbox.commit("first")
    trees.scan(["out"])
    (sandbox.root / "out").unlink()
    sandbox.write("out/a.log", "ignored\n")
    assert trees.entry(trees.scan(["out"]), "out/a.log") is not None


@pytest.mark.parametrize("options", [(), ("--split-index",), ("--index-version", "4")])
def test_ignored_files_are_included_from_when_they_are_tracked(
    sandbox: GitSandbox, trees: GitTrees, options: tuple[str, ...]
) -> None:
    """In each format of the user's index."""
    sandbox.write_all({"build/kept": "k", "build/out": "o", "build/later": "k", ".gitignore": "build/\n"})
    assert names(sandbox, trees.scan()) == [".gitignore"]
    sandbox.git("add", "-f", "build/kept")
    sandbox.git("update-index", *options)
    assert names(sandbox, trees.scan()) == [".gitignore", "build/kept"]
    sandbox.git("add", "-f", "build/later")
    assert names(sandbox, trees.scan()) == [".gitignore", "build/kept", "build/later"]


def test_the_next_process_evaluates_rules_again(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"x.log": "l", "y.log": "y", "kept.log": "k", "d.log": "d"})
    sandbox.git("add", "kept.log")
    trees.scan()
    sandbox.write(".gitignore", "*.log\n")
    assert "x.log" in names(sandbox, trees.scan()), "within a process no file may look deleted"
    again = trees_of(sandbox)
    assert names(sandbox, again.scan(["d.log"])) == [".gitignore", "d.log", "kept.log"]
    sandbox.write(".git/info/exclude", "new*\n")
    sandbox.write("newest", "n")
    assert names(sandbox, again.scan()) == [".gitignore", "d.log", "kept.log"]


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("name", [".gitignore", "d/.gitattributes", ".git/info/exclude", ".git/info/attributes"])
def test_a_pipe_in_the_place_of_rules_is_refused_by_name_instead_of_waiting_for_it(
    sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, linked: bool
) -> None:
    """F19. Also in the folder that linked worktrees share, and for a command that saves nothing."""
    monkeypatch.setattr(git_program, "_PATIENCE", 0.2)
    sandbox.commit_with({"a": "1", "d/b": "1"})
    if linked:
        sandbox.git("worktree", "add", "-q", str(tmp_path / "linked"))
    root = tmp_path / "linked" if linked else sandbox.root
    pipe = (sandbox.root if name.startswith(".git/") else root) / name
    pipe.parent.mkdir(exist_ok=True)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    (root / "a").write_text("2", encoding="ascii")
    trees = GitTrees(discover.find(str(root)))
    with refusing("git.waits-for-pipe", f"{name} is a pipe"):
        git_program.output(str(root), ["status", "--porcelain"]) if "info/a" in name else trees.scan()
    pipe.unlink()
    assert names(sandbox, trees.scan()) == ["a", "d/b"]


@pytest.mark.parametrize("name", [".git/info/exclude", "ignore"])
def test_rules_that_cannot_be_read_are_a_refusal_and_save_no_ignored_file(
    sandbox: GitSandbox, trees: GitTrees, home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """R-GIT-1: git itself warns, and goes on without the rules."""
    rules, read = (sandbox.root if "/" in name else home / "config/git") / name, guarded_files._read
    rules.parent.mkdir(parents=True, exist_ok=True)
    sandbox.write_all({"a": "1", "secret.env": "s", str(rules): "*.env\n"})
    assert names(sandbox, trees.scan()) == ["a"]

    def refused(path: str) -> bytes:
        if path == str(rules):
            raise PermissionError(13, "Permission denied", path)
        return read(path)

    with monkeypatch.context() as patching:
        patching.setattr(guarded_files, "_read", refused)
        with refusing("git.rules-unreadable", f"{rules} says what git ignores"):
            trees.scan()
    rules.unlink()
    rules.mkdir()
    with pytest.raises(Refusal, match="Is a directory"):
        trees.scan()
    rules.rmdir()
    rules.symlink_to("/dev/null")
    assert names(sandbox, trees.scan()) == ["a", "secret.env"]


def test_without_a_file_of_rules_by_an_empty_setting_nothing_of_the_user_is_ignored(
    sandbox: GitSandbox, trees: GitTrees, home: Path
) -> None:
    """R-GIT-1: git does not read the usual file then."""
    sandbox.write_all({"a": "1", "b.env": "1", "config": "1", str(home / "config/git/ignore"): "*.env\n"})
    assert names(sandbox, trees.scan()) == ["a", "config"]
    sandbox.git("config", "core.excludesFile", "")
    assert names(sandbox, trees.scan()) == ["a", "b.env", "config"]
