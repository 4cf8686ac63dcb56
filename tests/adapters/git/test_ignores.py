"""Which ignore rules apply, and that rules cannot hide themselves or their author. R-GIT-1, R-GIT-5."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from idumb.git import discover, guarded_files
from idumb.git.clones import clone
from idumb.git.trees import GitTrees
from tests.support.gitrepo import GitSandbox

TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# made by a tool\n"


def names(sandbox: GitSandbox, tree: str) -> list[str]:
    return sorted(sandbox.tree(tree))


@pytest.mark.parametrize(
    ("rules", "text"), [("d/.gitignore", "*\n"), (".gitignore", "*\n"), ("d/.gitignore", "x\n.*\n")]
)
def test_an_ignore_file_that_ignores_itself_is_scanned(
    sandbox: GitSandbox, trees: GitTrees, rules: str, text: str
) -> None:
    sandbox.write_all({rules: text, "d/x": "x"})
    assert names(sandbox, trees.scan()) == [rules]
    sandbox.write(rules, f"{text}# more\n")
    again = trees.scan()
    assert names(sandbox, again) == [rules]
    entry = trees.entry(again, rules)
    assert entry is not None
    assert trees.read(entry.oid) == f"{text}# more\n".encode()


def test_an_ignore_file_in_an_ignored_folder_is_skipped(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({".gitignore": "/node_modules/\n", "node_modules/a/.gitignore": "*\n"})
    assert names(sandbox, trees.scan()) == [".gitignore"]
    assert trees.caches() == ()


@pytest.mark.parametrize("mark", [{"CACHEDIR.TAG": TAG}, {"pyvenv.cfg": "home = /usr/bin\n"}])
def test_a_cache_may_ignore_itself_and_is_named(sandbox: GitSandbox, trees: GitTrees, mark: dict[str, str]) -> None:
    contents = {".gitignore": "*\n", "lib/x": "x", **mark}
    sandbox.write_all({"a": "a", **{f"made/{name}": text for name, text in contents.items()}})
    assert names(sandbox, trees.scan()) == ["a"]
    assert trees.caches() == ("made/",)
    trees.close()
    again = GitTrees(discover.find(str(sandbox.root)))
    assert names(sandbox, again.scan()) == ["a"]
    assert again.caches() == ("made/",)


HYPOTHESIS = "# This .gitignore file was automatically created by Hypothesis. Hypothesis gitignores\n# it.\n#\n\n*\n"


@pytest.mark.parametrize(
    "rules",
    ["# Created by coverage.py\n*\n", "# Automatically created by Grimp.\n*", "# created by x\r\n*", HYPOTHESIS],
)
def test_a_folder_with_rules_of_a_tool_is_named_like_a_cache(sandbox: GitSandbox, trees: GitTrees, rules: str) -> None:
    sandbox.write_all({"a": "a", "made/.gitignore": rules, "made/x": "x"})
    assert names(sandbox, trees.scan()) == ["a"]
    assert trees.caches() == ("made/",)
    sandbox.write("made/.gitignore", "*\n")
    assert names(sandbox, trees.scan()) == ["a", "made/.gitignore"]
    assert trees.caches() == ()


@pytest.mark.parametrize("same", [True, False])
def test_a_clone_recognizes_a_folder_that_the_user_s_working_tree_ignores_too(
    sandbox: GitSandbox, trees: GitTrees, *, same: bool
) -> None:
    sandbox.write_all({"a": "a", "dist/.gitignore": "*\n"})
    builder_clone = clone.Clone(discover.find(str(sandbox.root)), trees, "r1", sandbox.commit())
    root = Path(builder_clone.trees.root)
    (root / "dist").mkdir()
    (root / "dist/.gitignore").write_text("*\n" if same else "*\n#\n")
    assert names(sandbox, builder_clone.trees.scan()) == (["a"] if same else ["a", "dist/.gitignore"])
    assert builder_clone.trees.caches() == (("dist/",) if same else ())


def test_a_clone_does_not_accept_rules_that_the_user_s_working_tree_shows(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write("a", "a")
    commit = sandbox.commit()
    sandbox.write("d/.gitignore", "x\n")
    builder_clone = clone.Clone(discover.find(str(sandbox.root)), trees, "r1", commit)
    root = Path(builder_clone.trees.root)
    (root / "d").mkdir()
    for path, text in {".gitignore": "d/*\n", "d/.gitignore": "x\n", "d/x": "x"}.items():
        (root / path).write_text(text)
    assert names(sandbox, builder_clone.trees.scan()) == [".gitignore", "a", "d/.gitignore"]


@pytest.mark.parametrize(
    "more",
    [
        {"made/.gitignore": "# Mine\n*\n"},
        {"made/.gitignore": "*\n# Created by coverage.py\n"},
        {"made/.gitignore": "# Created by coverage.py\n*\n!kept\n"},
        {"made/.gitignore": f"# Created by coverage.py\n*\n{'#' * 5000}\n"},
        {"made/CACHEDIR.TAG": "Signature: another\n"},
        {"made/CACHEDIR.TAG/x": "x"},
        {"made/CACHEDIR.TAG": TAG, "made/.gitignore": "*\n!kept\n", "made/kept": "k"},
        {"CACHEDIR.TAG": TAG, ".gitignore": "*\n!a\n"},
    ],
)
def test_a_folder_that_only_looks_like_a_cache_hides_no_rules(
    sandbox: GitSandbox, trees: GitTrees, more: dict[str, str]
) -> None:
    sandbox.write_all({"a": "a", "made/.gitignore": "*\n", "made/x": "x", **more})
    scanned = names(sandbox, trees.scan())
    assert ".gitignore" in scanned or "made/.gitignore" in scanned
    assert trees.caches() == ()


def test_files_hidden_by_new_or_changed_rules_are_reported(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "a", ".gitignore": "*.log\n", "x.log": "x"})
    trees.snapshot("refs/idumb/worktrees/main/runs/r/t/1/base", "before")
    sandbox.write_all(
        {".gitignore": "#\n*.log\nbuild\n", "build/b": "b", "y.log": "y", "d/.gitignore": "*\n", "d/x": ""}
    )
    trees.scan()
    assert trees.hidden_by(["d/.gitignore"]) == {"d/x": "d/.gitignore"}
    assert trees.hidden_by([], [".gitignore"]) == {"build/": ".gitignore", "y.log": ".gitignore"}
    assert trees.hidden_by([]) == {}


def test_rules_written_into_the_git_folder_of_a_clone_do_not_apply(
    sandbox: GitSandbox, trees: GitTrees, home: Path
) -> None:
    (home / "mine").write_text("*.swp\n")
    (home / "gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n")
    sandbox.write_all({"a": "a"})
    sandbox.write(".git/info/exclude", "*.log\n")
    commit = sandbox.commit()
    builder_clone = clone.Clone(discover.find(str(sandbox.root)), trees, "r1", commit)
    root = Path(builder_clone.trees.root)
    (root / ".git/info/exclude").write_text("hidden\n")
    subprocess.run(["git", "config", "core.excludesFile", str(root / "rules")], cwd=root, check=True)
    for name in ("rules", "hidden", "x.swp", "x.log"):
        (root / name).write_text("hidden-too\n")
    assert names(sandbox, builder_clone.trees.scan()) == ["a", "hidden", "rules"]


def test_the_user_s_rules_are_read_wherever_configuration_names_them(sandbox: GitSandbox, home: Path) -> None:
    outside = guarded_files.GuardedFiles(discover.find(str(sandbox.root)))
    outside.rules()
    assert outside.excludes == str(home / "config/git/ignore")
    (home / "more").write_text("")
    (home / "gitconfig").write_text("[include]\n\tpath = more\n\tpath = ~/later\n")
    outside.rules()
    assert outside.excludes == str(home / "config/git/ignore")
    (home / "more").write_text("[core]\n\texcludesFile = ~/rules\n")
    outside.rules()
    assert outside.excludes == str(home / "rules")
    (home / "later").write_text("[core]\n\texcludesFile = /elsewhere\n")
    outside.rules()
    assert outside.excludes == "/elsewhere"
    sandbox.git("config", "core.excludesFile", "in/tree")
    outside.rules()
    assert outside.excludes == str(sandbox.root / "in/tree")


def test_git_is_asked_for_its_configuration_once(
    sandbox: GitSandbox, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "gitconfig").write_text("[include]\n\tpath = ~/missing\n[core]\n\texcludesFile = ~/rules\n")
    outside = guarded_files.GuardedFiles(discover.find(str(sandbox.root)))
    before = outside.rules()
    monkeypatch.setattr(subprocess, "Popen", None)
    assert outside.rules() == before
