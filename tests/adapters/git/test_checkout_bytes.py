"""Files of the proving tree have the bytes that the user's git checks out; where a clone has others, it is named."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from idumb.git import discover, proving_folders
from idumb.git.proving_tree import ProvingTree
from tests.support.gitrepo import GitSandbox

FILES = {
    "lf.txt": "a\nb\n",
    "crlf.txt": "a\r\nb\r\n",
    "mixed.txt": "a\r\nb\n",
    "nul.txt": "a\0\nb\n",
    "d/run.sh": "#!/bin/sh\n",
    "d/id.c": "$Id$\n",
    "d/wide.w": "wide\n",
    "d/a b.up": "SHOUT\n",
    "empty.txt": "",
}
IN_TREE = "*.sh text eol=lf\n*.bat eol=crlf\n*.c ident\n*.w working-tree-encoding=UTF-16LE\n*.up filter=up\n"
AUTO = "* text=auto\n"


@pytest.fixture
def made(sandbox: GitSandbox) -> Iterator[list[ProvingTree]]:
    trees: list[ProvingTree] = []
    yield trees
    for each in trees:
        each.close()


def proving(sandbox: GitSandbox, made: list[ProvingTree]) -> ProvingTree:
    """Return the working tree that shows HEAD."""
    repository = discover.find(str(sandbox.root))
    tree = ProvingTree(repository, proving_folders.place(repository))
    made.append(tree)
    show(tree, sandbox)
    return tree


def show(tree: ProvingTree, sandbox: GitSandbox) -> None:
    tree.show(sandbox.git("rev-parse", "HEAD^{tree}").strip(), sandbox.git("rev-parse", "HEAD").strip())


def files(folder: str | Path) -> dict[str, bytes]:
    root = Path(folder)
    paths = (path for path in sorted(root.rglob("*")) if ".git" not in path.relative_to(root).parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in paths if path.is_file()}


def committed(sandbox: GitSandbox, attributes: str) -> None:
    """Commit FILES as they are, whatever the attributes say."""
    sandbox.write_all(FILES)
    sandbox.git("-c", "core.autocrlf=false", "add", "-A")
    sandbox.git("commit", "-qm", "files")
    if attributes:
        sandbox.write(".gitattributes", attributes)
        sandbox.git("-c", "core.autocrlf=false", "add", ".gitattributes")
        sandbox.git("commit", "-qm", "attributes")


@pytest.mark.parametrize("in_tree", ["", AUTO, IN_TREE, AUTO + IN_TREE], ids=["none", "auto", "each", "both"])
@pytest.mark.parametrize(
    ("settings", "info", "own", "unlike"),
    [
        ({}, "", "", False),
        ({"core.autocrlf": "true"}, "", "", True),
        ({"core.autocrlf": "input"}, "", "", False),
        ({"core.eol": "crlf"}, "*.txt text\n", "", True),
        ({}, "", "*.txt text eol=crlf\n", True),
        ({"filter.up.smudge": "tr A-Z a-z", "core.autocrlf": "on"}, "*.txt -text\n*.sh -eol", "*.txt eol=crlf\n", True),
    ],
    ids=["plain", "true", "input", "eol", "own", "all"],
)
def test_the_bytes_are_those_of_a_worktree(
    sandbox: GitSandbox,
    made: list[ProvingTree],
    tmp_path: Path,
    in_tree: str,
    settings: dict[str, str],
    info: str,
    own: str,
    unlike: bool,  # noqa: FBT001 - a column
) -> None:
    committed(sandbox, in_tree)
    for name, value in settings.items():
        sandbox.git("config", name, value)
    if info:
        sandbox.write(".git/info/attributes", info)
    if own:
        (tmp_path / "attributes").write_text(own)
        sandbox.git("config", "core.attributesFile", str(tmp_path / "attributes"))
    tree = proving(sandbox, made)
    sandbox.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    assert files(tree.root) == files(tmp_path / "linked")
    assert bool(tree.unlike) == unlike
    assert tree.restore() == ()


def test_what_differs_from_a_clone_is_named_until_it_differs_no_longer(
    sandbox: GitSandbox, made: list[ProvingTree]
) -> None:
    sandbox.git("config", "core.autocrlf", "true")
    sandbox.write_all({"a.txt": "a\n", "b.bin": "b\0\n"})
    sandbox.commit()
    tree = proving(sandbox, made)
    assert tree.unlike == ("your git settings give a.txt other bytes than a clone has (core.autocrlf=true)",)
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=tree.root, capture_output=True, check=True)
    assert changed.stdout == b""
    sandbox.remove("a.txt")
    sandbox.commit()
    show(tree, sandbox)
    assert not tree.unlike


def test_a_filter_that_only_the_user_has_is_named(sandbox: GitSandbox, made: list[ProvingTree]) -> None:
    sandbox.write_all({".gitattributes": "*.up filter=up\n*.same filter=same\n", "a.up": "A\n", "a.same": "a\n"})
    sandbox.commit()
    sandbox.git("config", "filter.up.smudge", "tr A-Z a-z")
    sandbox.git("config", "filter.same.smudge", "cat")
    (sentence,) = proving(sandbox, made).unlike
    assert sentence.startswith("your git settings give a.up other bytes")


def test_a_filter_that_appears_or_changes_during_the_run_is_not_started(
    sandbox: GitSandbox, made: list[ProvingTree]
) -> None:
    sandbox.write_all({".gitattributes": "*.up filter=up\n*.new filter=new\n", "a.up": "A\n", "a.new": "A\n"})
    sandbox.commit()
    sandbox.git("config", "filter.up.smudge", "cat")
    tree = proving(sandbox, made)
    for name in ("up", "new"):
        sandbox.git("config", f"filter.{name}.smudge", f"touch {sandbox.root}/planted; cat")
    for name in ("a.up", "a.new"):
        Path(tree.root, name).unlink()
    assert tree.restore() == ("a.new", "a.up")
    assert files(tree.root)["a.up"] == b"A\n"
    assert not (sandbox.root / "planted").exists()


def test_names_that_a_list_cannot_hold_are_converted_too(sandbox: GitSandbox, made: list[ProvingTree]) -> None:
    names = ("a\nb.bat", "c d.bat", os.fsdecode(b"e\xff.bat"))
    sandbox.write_all({".gitattributes": "*.bat eol=crlf\n", **dict.fromkeys(names, "x\n")})
    sandbox.commit()
    shown = files(proving(sandbox, made).root)
    assert [shown[name] for name in names] == [b"x\r\n"] * 3


def test_spaces_around_a_name_belong_to_it(sandbox: GitSandbox, made: list[ProvingTree]) -> None:
    names = ("c.txt", " c.txt", "\td.txt", "c.txt\r")
    raw = '"/ c.txt" -text\n"/\\td.txt" -text\n"/c.txt\\r" -text\n'
    sandbox.write_all({**dict.fromkeys(names, "x\n"), ".gitattributes": f"* text eol=crlf\n{raw}"})
    sandbox.git("-c", "core.autocrlf=false", "add", "-A")
    sandbox.git("config", "core.eol", "crlf")
    sandbox.git("commit", "-qm", "files")
    shown = files(proving(sandbox, made).root)
    assert {name: shown[name] for name in names} == {**dict.fromkeys(names, b"x\n"), "c.txt": b"x\r\n"}


def test_the_folder_of_the_proving_trees_may_have_any_name(
    sandbox: GitSandbox, made: list[ProvingTree], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its path is in the git configuration, if the user has a file of attributes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(home / 'a "state"\n\\tree'))
    (home / "attributes").write_text("*.txt eol=crlf\n")
    sandbox.git("config", "core.attributesFile", str(home / "attributes"))
    sandbox.write_all({"a.txt": "x\n"})
    sandbox.commit()
    tree = proving(sandbox, made)
    assert files(tree.root) == {"a.txt": b"x\r\n"}
    assert subprocess.run(["git", "status", "--short"], cwd=tree.root, capture_output=True, check=True).stdout == b""


def test_a_submodule_has_its_own_attributes_and_starts_no_program(
    sandbox: GitSandbox, made: list[ProvingTree], tmp_path: Path
) -> None:
    """Nobody guards the configuration of a submodule."""
    inner = GitSandbox.create(tmp_path / "inner")
    inner.write_all({".gitattributes": "*.bat eol=crlf\n*.up filter=up\n", "a.bat": "x\n", "a.up": "A\n"})
    inner.commit()
    sandbox.write_all({".gitattributes": "*.txt eol=crlf\n*.bat -text\n", "a.txt": "x\n"})
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "sub")
    sandbox.commit()
    sandbox.git("-C", "sub", "config", "filter.up.smudge", f"touch {tmp_path}/planted; cat")
    shown = files(proving(sandbox, made).root)
    assert (shown["a.txt"], shown["sub/a.bat"], shown["sub/a.up"]) == (b"x\r\n", b"x\r\n", b"A\n")
    assert not (tmp_path / "planted").exists()
