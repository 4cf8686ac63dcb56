"""What a proving tree takes from the user's repository: files as a checkout has them, and a git folder (R-RUN-3)."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from idumb.domain.errors import Refusal
from idumb.git.proving_tree import ProvingTree
from tests.support.gitrepo import GitSandbox
from tests.support.proving import create, show, shown, tree


def test_git_works_in_it_without_the_user_s_refs_hooks_and_settings(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    parent = sandbox.commit()
    sandbox.git("tag", "v1")
    sandbox.git("pack-refs", "--all")
    sandbox.git("tag", "-m", "annotated", "team/v0")
    sandbox.git("update-ref", "refs/idumb/x", "HEAD")
    sandbox.git("symbolic-ref", "refs/tags/alias", "refs/tags/v1")
    sandbox.git("config", "user.secret", "mine")
    sandbox.write(".git/hooks/post-checkout", "#!/bin/sh\n", mode=0o755)
    sandbox.write_all({"a.txt": "b\n", "new.txt": "new\n"})
    sandbox.commit()
    refs = sandbox.refs()
    proving.show(tree(sandbox), parent)

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=proving.root, check=True, capture_output=True, text=True).stdout

    assert git("rev-parse", "HEAD").strip() == parent
    assert git("ls-files").split() == ["a.txt", "new.txt"]
    assert git("diff") == ""
    assert git("describe").strip() == "team/v0"
    of_refs = git("for-each-ref", "--format=%(objectname) %(refname)").splitlines()
    assert of_refs == [f"{sandbox.git('rev-parse', name)} refs/tags/{name}" for name in ("team/v0", "v1")]
    assert "secret" not in git("config", "--list", "--local")
    assert not Path(proving.root, ".git/hooks").exists()
    git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "by a check")
    assert sandbox.refs() == refs
    sandbox.write_all({"a.txt": "c\n"})
    show(proving, sandbox) if sandbox.commit() else None
    assert git("log", "--format=%s", "-1").strip() == "work"


def test_line_endings_are_those_of_a_checkout(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({".gitattributes": "*.bat eol=crlf\n*.bin binary\n", "a.bat": "x\ny\n", "a.bin": b"\0\n"})
    sandbox.commit()
    show(proving, sandbox)
    assert shown(proving)["a.bat"] == b"x\r\ny\r\n"
    assert shown(proving)["a.bin"] == b"\0\n"
    sandbox.write_all({".gitattributes": "*.bat -text\n"})
    sandbox.commit()
    show(proving, sandbox)
    assert shown(proving)["a.bat"] == b"x\ny\n"


def test_a_name_that_is_not_utf_8_has_its_line_endings_too(sandbox: GitSandbox, proving: ProvingTree) -> None:
    name = os.fsdecode(b"a\xff.bat")
    sandbox.write_all({".gitattributes": "*.bat eol=crlf\n", name: "x\ny\n"})
    sandbox.commit()
    show(proving, sandbox)
    assert shown(proving)[name] == b"x\r\ny\r\n"


def test_filters_of_the_user_apply_as_in_a_checkout(sandbox: GitSandbox, proving: ProvingTree) -> None:
    """Without the program of a filter, a file has the bytes that the commit holds."""
    sandbox.write_all({".gitattributes": "*.up filter=up\n*.key filter=lock\n", "a.up": "A\n", "a.key": "locked\n"})
    sandbox.commit()
    sandbox.git("config", "filter.up.smudge", "tr A-Z a-z")
    sandbox.git("config", "filter.lock.smudge", "no-such-program")
    sandbox.git("config", "filter.lock.required", "true")
    show(proving, sandbox)
    assert (shown(proving)["a.up"], shown(proving)["a.key"]) == (b"a\n", b"locked\n")


def test_a_large_file_comes_from_the_local_store(sandbox: GitSandbox, proving: ProvingTree) -> None:
    name = "d35c416a85b807e9b5384915d6ebb4a9f7352713efd89857b45a242f473728a9"
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{name}\nsize 5\n"
    attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
    sandbox.write_all({"big.bin": pointer, "other.bin": pointer.replace(name, "0" * 64), ".gitattributes": attributes})
    sandbox.commit()
    sandbox.write(f".git/lfs/objects/d3/5c/{name}", "large")
    show(proving, sandbox)
    assert shown(proving)["big.bin"] == b"large"
    assert shown(proving)["other.bin"].startswith(b"version https://git-lfs")
    assert proving.restore() == ()


def test_a_large_file_is_not_in_memory(sandbox: GitSandbox, proving: ProvingTree) -> None:
    size = 24 << 20
    oid = hashlib.sha256(bytes(size)).hexdigest()
    place = sandbox.root / ".git" / "lfs" / "objects" / oid[:2] / oid[2:4]
    place.mkdir(parents=True)
    (place / oid).touch()
    os.truncate(place / oid, size)
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n"
    sandbox.write_all({".gitattributes": "*.bin filter=lfs\n", **{f"{n}.bin": pointer for n in "abc"}})
    sandbox.commit()
    tracemalloc.start()
    try:
        root = show(proving, sandbox)
        os.utime(root / "a.bin")
        assert proving.restore() == ()
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()
    assert [(root / f"{n}.bin").stat().st_size for n in "abc"] == [size] * 3


def test_before_the_first_commit_it_has_no_head(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.git("add", "-A")
    proving.show(sandbox.git("write-tree").strip(), None)
    assert shown(proving) == {"a.txt": b"a\n"}
    assert subprocess.run(["git", "rev-parse", "-q", "--verify", "HEAD"], cwd=proving.root, check=False).returncode


def test_a_missing_object_is_refused_by_name(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "only here\n"})
    sandbox.commit()
    blob = sandbox.git("rev-parse", "HEAD:a.txt").strip()
    (sandbox.git_dir / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(Refusal, match=r"a\.txt"):
        show(proving, sandbox)


def test_submodules_are_checked_out_at_their_recorded_commits(
    sandbox: GitSandbox, proving: ProvingTree, tmp_path: Path
) -> None:
    inner = GitSandbox.create(tmp_path / "inner")
    inner.write_all({"lib.txt": "one\n", "deep/x": "x\n"})
    inner.commit()
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "sub")
    sandbox.commit()
    sandbox.write_all({"sub/lib.txt": "not committed\n", "sub/new.txt": "untracked\n"})
    root = show(proving, sandbox)
    assert {"sub/lib.txt": b"one\n", "sub/deep/x": b"x\n"}.items() <= shown(proving).items()
    assert "sub/new.txt" not in shown(proving)
    (root / "sub/lib.txt").write_text("by a check\n")
    assert proving.restore() == ("sub/lib.txt",)
    git = ["git", "-C", str(sandbox.root / "sub"), "-c", "user.name=x", "-c", "user.email=x@y"]
    subprocess.run([*git, "rm", "-qr", "deep"], check=True)
    subprocess.run([*git, "commit", "-qam", "two"], check=True)
    sandbox.git("add", "sub")
    sandbox.git("commit", "-qm", "next")
    show(proving, sandbox)
    assert shown(proving)["sub/lib.txt"] == b"not committed\n"
    assert "sub/deep/x" not in shown(proving)
    sandbox.git("rm", "-qf", "sub")
    sandbox.git("commit", "-qm", "gone")
    show(proving, sandbox)
    assert not (root / "sub").exists()


def test_a_submodule_that_is_not_checked_out_is_an_empty_folder(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.git("add", "a.txt")
    sandbox.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    sandbox.git("commit", "-qm", "with a submodule")
    root = show(proving, sandbox)
    assert list((root / "sub").iterdir()) == []
    assert proving.restore() == ()


def test_the_user_s_sparse_checkout_applies(sandbox: GitSandbox) -> None:
    """What a builder hides in the same way, with a bit of the index and a deletion, is in the tree."""
    sandbox.write_all({"in/a.txt": "a\n", "out/b.txt": "b\n", "top.txt": "t\n"})
    sandbox.commit()
    sandbox.git("sparse-checkout", "set", "in")
    proving = create(sandbox)
    sandbox.git("update-index", "--skip-worktree", "in/a.txt")
    sandbox.remove("in/a.txt")
    show(proving, sandbox)
    assert set(shown(proving)) == {"in/a.txt", "top.txt"}
    assert proving.restore() == ()
    proving.close()


def test_a_file_that_the_user_s_folder_has_is_not_left_out(sandbox: GitSandbox, proving: ProvingTree) -> None:
    """A builder could hide a failing test from checks with one bit of the index."""
    sandbox.write_all({"a.txt": "a\n", "test_a.py": "assert False\n"})
    sandbox.commit()
    sandbox.write(".git/info/sparse-checkout", "/*\n")
    sandbox.git("update-index", "--skip-worktree", "test_a.py")
    show(proving, sandbox)
    assert set(shown(proving)) == {"a.txt", "test_a.py"}


def test_a_pointer_stands_for_a_large_file_only_where_a_clone_fetches_it(
    sandbox: GitSandbox, proving: ProvingTree
) -> None:
    """A builder can write a pointer and a stored file; without the attribute, a clone has the pointer."""
    name = "d35c416a85b807e9b5384915d6ebb4a9f7352713efd89857b45a242f473728a9"
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{name}\nsize 5\n"
    sandbox.write_all(
        {"app.py": pointer, "big.bin": pointer.replace("d35c", "5d5c"), ".gitattributes": "*.bin filter=lfs"}
    )
    sandbox.commit()
    sandbox.write(f".git/lfs/objects/d3/5c/{name}", "large")
    sandbox.write(f".git/lfs/objects/5d/5c/5d{name[2:]}", "other bytes than the name says")
    show(proving, sandbox)
    assert shown(proving)["app.py"] == pointer.encode()
    assert shown(proving)["big.bin"].startswith(b"version https://git-lfs")


def test_files_may_replace_a_submodule(sandbox: GitSandbox, proving: ProvingTree, tmp_path: Path) -> None:
    inner = GitSandbox.create(tmp_path / "inner")
    inner.write_all({"lib.txt": "one\n"})
    inner.commit()
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "sub")
    sandbox.commit()
    show(proving, sandbox)
    sandbox.git("rm", "-qf", "sub")
    sandbox.write_all({"sub/lib.txt": "vendored\n"})
    sandbox.commit()
    show(proving, sandbox)
    assert shown(proving)["sub/lib.txt"] == b"vendored\n"


def test_attributes_that_a_check_writes_decide_nothing(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"d/a.txt": "a\nb\n", "d/b.txt": "a\n", ".gitattributes": "*.md text\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    (root / "d/.gitattributes").write_text("*.txt text eol=crlf\n")
    (root / "d/a.txt").write_bytes(b"a\r\nb\r\n")
    assert proving.restore() == ("d/a.txt",)
    show(proving, sandbox)
    assert shown(proving)["d/a.txt"] == b"a\nb\n"


def test_what_a_check_leaves_in_a_submodule_s_empty_folder_is_removed(
    sandbox: GitSandbox, proving: ProvingTree
) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.git("add", "a.txt")
    sandbox.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    sandbox.git("commit", "-qm", "with a submodule")
    root = show(proving, sandbox)
    (root / "sub/left").write_text("by a check\n")
    assert proving.restore() == ()
    sandbox.git("commit", "-qm", "next", "--allow-empty")
    show(proving, sandbox)
    assert list((root / "sub").iterdir()) == []


def test_submodules_in_submodules_are_checked_out_too(
    sandbox: GitSandbox, proving: ProvingTree, tmp_path: Path
) -> None:
    innermost = GitSandbox.create(tmp_path / "innermost")
    innermost.write_all({"deep.txt": "one\n"})
    innermost.commit()
    inner = GitSandbox.create(tmp_path / "inner")
    inner.write_all({"lib.txt": "lib\n"})
    allowed = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    inner.git(*allowed, "add", "../innermost", "deep")  # relative to a repository that has no origin
    inner.commit()
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.git(*allowed, "add", str(inner.root), "sub")
    sandbox.commit()
    show(proving, sandbox)
    commit = innermost.head()[:10]
    line = "git submodule update --init --recursive sub"
    (sentence,) = proving.missing
    assert sentence == f"submodule sub/deep: this machine does not have its commit {commit}; {line}"
    sandbox.git(*allowed, "update", "--init", "--recursive")
    sandbox.git("commit", "-qm", "next", "--allow-empty")
    proving.close()
    show(proving, sandbox)
    assert shown(proving)["sub/deep/deep.txt"] == b"one\n"
    assert not proving.missing
    Path(proving.root, "sub/deep/deep.txt").write_text("by a check\n")
    assert proving.restore() == ("sub/deep/deep.txt",)
    sandbox.git("rm", "-qf", "sub")
    sandbox.commit()
    show(proving, sandbox)
    assert not Path(proving.root, "sub").exists()


@pytest.mark.parametrize(
    "command",
    [
        "git -c user.name=x -c user.email=x@y commit -q --allow-empty -m forged",
        "git config core.hooksPath planted",
        "mkdir -p .git/hooks && echo exit 1 > .git/hooks/pre-commit",
        "git update-index --assume-unchanged a.txt",
        "echo '*.txt -text' > .git/info/attributes",
        "echo /nowhere > .git/objects/info/alternates",
        "git tag forged",
        "rm -r .git",
        "rm -r .git && ln -s /nowhere .git",
        "chmod 0 .git/refs/heads",
    ],
)
def test_git_s_folder_is_as_new_for_the_next_check(sandbox: GitSandbox, proving: ProvingTree, command: str) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    before = {path: path.read_bytes() for path in sorted((root / ".git").rglob("*")) if path.is_file()}
    subprocess.run(command, cwd=root, shell=True, check=True, capture_output=True)
    assert proving.restore() == ()
    assert {path: path.read_bytes() for path in sorted((root / ".git").rglob("*")) if path.is_file()} == before
    assert proving.restore() == ()
