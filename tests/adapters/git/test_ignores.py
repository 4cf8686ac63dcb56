"""Which ignore rules apply, and that rules cannot hide themselves or their author. R-GIT-1, R-GIT-5."""

from __future__ import annotations

import subprocess
from pathlib import Path

from idumb.git import discover, guarded_files
from idumb.git.trees import GitTrees
from tests.support import checkouts
from tests.support.gitrepo import GitSandbox


def names(sandbox: GitSandbox, tree: str) -> list[str]:
    return sorted(sandbox.tree(tree))


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
    subprocess.run(["git", "config", "core.excludesFile", str(root / "rules")], cwd=root, check=True)
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
