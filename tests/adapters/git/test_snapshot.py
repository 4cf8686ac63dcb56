"""Snapshots: complete, durable, kept by a ref, and invisible to the user. R-GIT-1, M1, M9, M11, F5, F22-F24."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from idumb.domain import errors
from idumb.git import discover, refs
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from tests.adapters.git.conftest import REF, trees_of
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox

HEAD = "refs/idumb/worktrees/main/head"
_HOOKS = (
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-checkout", "post-index-change",
    "reference-transaction", "pre-auto-gc", "fsmonitor-watchman",
)  # fmt: skip


def canaries(sandbox: GitSandbox, place: Path) -> Path:
    """Hooks and configured programs that leave a trace when they run."""
    trace = place / "trace"
    for name in _HOOKS:
        sandbox.write(f".git/hooks/{name}", f"#!/bin/sh\necho {name} >> {trace}\n", mode=0o755)
    for key in ("core.fsmonitor", "diff.external", "core.pager", "gpg.program"):
        sandbox.git("config", key, str(sandbox.git_dir / "hooks/pre-commit"))
    sandbox.git("config", "commit.gpgsign", "true")
    return trace


def test_a_snapshot_has_the_working_tree_and_that_of_head(sandbox: GitSandbox, trees: GitTrees) -> None:
    head = sandbox.commit_with({"a": "1"})
    sandbox.write("a", "2")
    snapshot = trees.snapshot(REF, "before T1")
    assert sandbox.git("rev-parse", f"{snapshot.commit}:worktree") == snapshot.tree == trees.scan()
    assert sandbox.kept() == {REF: snapshot.commit, HEAD: head}
    assert sandbox.git("rev-parse", f"{snapshot.commit}:head") == sandbox.git("rev-parse", "HEAD^{tree}")


def test_a_snapshot_keeps_what_is_staged_as_a_commit_of_it_would(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.commit_with({"a": "1", "b": "1", "d/c": "1"})
    assert "staged" not in sandbox.git("ls-tree", "--name-only", trees.snapshot(REF, "r").commit).split()
    sandbox.write_all({"a": "staged", "announced": "no bytes of it are in the index"})
    sandbox.git("add", "a")
    sandbox.git("add", "--intent-to-add", "announced")
    sandbox.git("rm", "-q", "--cached", "d/c")
    sandbox.write("a", "3")
    snapshot = trees.snapshot(f"{REF}2", "r")
    sandbox.git("rm", "-q", "--cached", "announced")
    assert sandbox.git("rev-parse", f"{snapshot.commit}:staged") == sandbox.git("write-tree")
    sandbox.git("reset", "-q")
    sandbox.git("gc", "--quiet", "--prune=now")
    assert sandbox.git("cat-file", "blob", f"{snapshot.commit}:staged/a") == "staged"


def test_a_snapshot_changes_nothing_of_the_user_and_runs_no_hook(
    sandbox: GitSandbox, trees: GitTrees, history: GitHistory, tmp_path: Path
) -> None:
    sandbox.commit_with({"a": "1", "b": "1"})
    trace = canaries(sandbox, tmp_path)
    sandbox.write_all({"a": "2", "new": "n"})
    sandbox.git("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "add", "a")
    sandbox.write("a", "3")
    before = sandbox.ledger()
    trace.unlink(missing_ok=True)
    one = trees.snapshot(REF, "r")
    trees.snapshot(REF + "2", "r")
    trees.diff(one.tree, trees.scan())
    trees.line_counts(one.tree, trees.scan())
    trees.restore(one.tree, one.tree, ["a"])
    history.uncommitted(["a"])
    history.require_usable()
    history.head()
    assert not trace.exists()
    # `ledger` lets git look at refs, which may run a hook or two
    assert sandbox.ledger() == before


def test_a_snapshot_works_on_a_detached_head_and_in_a_linked_worktree(sandbox: GitSandbox, tmp_path: Path) -> None:
    """F7, F10."""
    sandbox.commit_with({"a": "1"})
    sandbox.git("worktree", "add", "-q", str(tmp_path / "side"))
    sandbox.git("checkout", "-q", "--detach")
    for root in (sandbox.root, tmp_path / "side"):
        snapshot = GitTrees(discover.find(str(root))).snapshot(REF, "r")
        assert list(sandbox.tree(snapshot.tree)) == ["a"]


def test_a_snapshot_survives_garbage_collection(sandbox: GitSandbox, trees: GitTrees) -> None:
    """M9, F24."""
    sandbox.write("a", "only in the snapshot")
    snapshot = trees.snapshot(REF, "r")
    sandbox.remove("a")
    sandbox.git("gc", "--quiet", "--prune=now")
    assert trees.restore(snapshot.tree, trees.scan(), ["a"]) == ()
    assert sandbox.read("a") == "only in the snapshot"


def packed_and_unreachable(sandbox: GitSandbox) -> tuple[str, str]:
    """Return a blob, and the tree `d` of a file `d/b`, that a pack has and no ref reaches."""
    sandbox.commit_with({"a": "1"})
    sandbox.commit_with({"d/b": "precious\n"})
    blob, tree = sandbox.git("rev-parse", "HEAD:d/b"), sandbox.git("rev-parse", "HEAD:d")
    sandbox.git("gc", "--quiet")
    sandbox.git("update-ref", "refs/heads/main", "HEAD~1")
    sandbox.git("read-tree", "HEAD")
    sandbox.git("reflog", "expire", "--expire=all", "--all")
    shutil.rmtree(sandbox.root / "d")
    return blob, tree


def test_a_snapshot_has_what_git_removed_from_a_pack_that_idumb_had_open(sandbox: GitSandbox) -> None:
    """libgit2 goes on finding objects in a pack that `git gc --prune=now` has replaced."""
    blob, tree = packed_and_unreachable(sandbox)
    trees = trees_of(sandbox)
    trees.snapshot(REF, "first")
    assert trees.store(b"precious\n") == blob
    sandbox.git("gc", "--quiet", "--prune=now")
    assert trees.store(b"precious\n") == blob
    assert sandbox.git("cat-file", "blob", blob) == "precious"
    sandbox.git("gc", "--quiet", "--prune=now")
    sandbox.write("d/b", "precious\n")
    trees.snapshot(f"{REF}2", "second")
    assert sandbox.git("cat-file", "blob", blob) == "precious"
    assert sandbox.git("ls-tree", "--name-only", tree) == "b"
    sandbox.git("fsck", "--strict")


def before_the_name(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let somebody act just before a snapshot gets its name."""
    move = refs.move

    def late(*arguments: Any) -> None:
        if arguments[1] == REF:
            act()
        move(*arguments)

    monkeypatch.setattr(refs, "move", late)


@pytest.mark.parametrize("changed", ["d/b", "new"])
def test_a_snapshot_that_loses_a_file_just_before_it_has_a_name_is_refused(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """The first of a process looks again only for what HEAD does not reach."""
    sandbox.commit_with({"a": "1", "d/b": "1"})
    sandbox.write(changed, "changed\n")
    blob = sandbox.git("hash-object", changed)
    before_the_name(monkeypatch, lambda: sandbox.object_file(blob).unlink())
    with pytest.raises(errors.Refusal, match=f"{blob} of a snapshot is missing"):
        trees.snapshot(REF, "r")


def test_a_snapshot_has_what_the_repository_that_lends_the_objects_of_head_removed_meanwhile(
    sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.commit_with({"a": "1"})
    sandbox.git("checkout", "-q", "-b", "topic")
    sandbox.commit_with({"d/b": "precious"})
    sandbox.git("clone", "-q", "--shared", str(sandbox.root), str(tmp_path / "side"))
    trees = GitTrees(discover.find(str(tmp_path / "side")))

    def remove() -> None:
        if sandbox.try_git("rev-parse", "-q", "--verify", "topic").returncode == 0:
            sandbox.git("checkout", "-q", "main")
            sandbox.git("branch", "-q", "-D", "topic")
            sandbox.git("reflog", "expire", "--expire=all", "--all")
            sandbox.git("gc", "--quiet", "--prune=now")

    before_the_name(monkeypatch, remove)
    snapshot = trees.snapshot(REF, "r")
    assert GitSandbox(tmp_path / "side").git("cat-file", "blob", f"{snapshot.commit}:worktree/d/b") == "precious"


def test_a_snapshot_that_loses_a_file_of_a_head_that_was_amended_meanwhile_is_refused(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.commit_with({"a": "1", "d/b": "precious"})
    blob, amended = sandbox.git("rev-parse", "HEAD:d/b"), sandbox.git("commit-tree", "-m", "amended", "HEAD:d")

    def amend() -> None:
        sandbox.git("update-ref", "refs/heads/main", amended)
        sandbox.object_file(blob).unlink()

    before_the_name(monkeypatch, amend)
    with pytest.raises(errors.Refusal, match=f"{blob} of a snapshot is missing"):
        trees.snapshot(REF, "r")


@pytest.mark.parametrize("damage", [None, b"", b"garbage", bytes(40)], ids=["missing", "empty", "garbage", "zeros"])
def test_the_first_snapshot_of_a_process_needs_no_tree_of_head(sandbox: GitSandbox, damage: bytes | None) -> None:
    """A partial clone may lack them."""
    sandbox.commit_with({"a": "1", "d/b": "1", "e/c": "1"})
    missing = [sandbox.git("rev-parse", f"HEAD:{name}") for name in ("d", "e")]
    shutil.rmtree(sandbox.root / "e")
    sandbox.write("d/b", "2")
    for name in missing:
        file = sandbox.object_file(name)
        file.unlink()
        if damage is not None:
            file.write_bytes(damage)
    snapshot = trees_of(sandbox).snapshot(REF, "r")
    assert sorted(sandbox.tree(snapshot.tree)) == ["a", "d/b"]


@pytest.mark.parametrize("damage", ["a missing file", "a tree that is cut off"])
def test_a_snapshot_with_a_missing_or_damaged_object_is_refused(
    sandbox: GitSandbox, trees: GitTrees, damage: str
) -> None:
    sandbox.write("a", "1")
    tree = trees.scan()
    oid = sandbox.git("rev-parse", f"{tree}:a") if damage == "a missing file" else tree
    path = sandbox.object_file(oid)
    whole = path.read_bytes()
    path.unlink()
    if damage != "a missing file":
        path.write_bytes(whole[:-4])
    with refusing("git.snapshot-unreadable", "missing or damaged"):
        trees.keep(REF, tree, "r")
    assert sandbox.kept("refs/idumb/") == {}


def test_a_kept_tree_may_have_what_a_sparse_partial_clone_has_not_fetched(sandbox: GitSandbox, tmp_path: Path) -> None:
    sandbox.commit_with({"in/a": "1", "out/b": "2"})
    sandbox.git("config", "uploadpack.allowFilter", "true")
    clone = GitSandbox(tmp_path / "clone")
    source = ("-c", "protocol.file.allow=always", "clone", "-q", "--filter=blob:none", "--sparse")
    sandbox.git(*source, f"file://{sandbox.root}", str(clone.root))
    clone.git("sparse-checkout", "set", "in")
    trees, tree = trees_of(clone), clone.git("rev-parse", "HEAD^{tree}")
    trees.scan()
    assert trees.keep(REF, tree, "work").tree == tree
    changed = clone.git("mktree", "--missing", given=b"100644 blob " + b"1" * 40 + b"\tnew\n")
    with refusing("git.snapshot-unreadable"):
        trees.keep(REF, changed, "work")


def test_refs_outside_refs_idumb_are_never_written(sandbox: GitSandbox, trees: GitTrees) -> None:
    with pytest.raises(ValueError, match="refs/idumb/"):
        trees.keep("refs/heads/main", trees.scan(), "r")
    with pytest.raises(ValueError, match="refs/idumb/"):
        refs.delete_all(discover.find(str(sandbox.root)), {"refs/heads/main": "0" * 40})


def test_an_unchanged_tree_writes_no_object_again(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({f"d{n}/f": str(n) for n in range(5)})
    trees.snapshot(REF, "before T1")
    before = int(sandbox.git("count-objects").split()[0])
    trees.snapshot(REF + "2", "before T2")
    assert int(sandbox.git("count-objects").split()[0]) == before


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed: fsync calls are NOT counted")
def test_every_object_and_ref_of_a_snapshot_is_synced_to_disk(sandbox: GitSandbox, tmp_path: Path) -> None:
    """M1, M2: libgit2 syncs nothing unless it is configured to."""
    sandbox.write("a", "1")
    code = (
        "from idumb.git import discover, trees; t = trees.GitTrees(discover.find('.'));"
        f"s = t.snapshot({REF!r}, 'r'); print(s.commit, s.tree, t.entry(s.tree, 'a').oid)"
    )
    out = tmp_path / "strace"
    root = Path(__file__).parents[3]
    done = subprocess.run(
        ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync,rename,link", "-o", str(out), sys.executable, "-c", code],
        cwd=sandbox.root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "ptrace" in done.stderr:
        pytest.skip("tracing is not permitted here: fsync calls are NOT counted")
    assert done.returncode == 0, done.stderr
    lines = out.read_text().splitlines()
    calls = [line for line in lines if "sync(" in line]
    for oid in done.stdout.split():
        assert any(f"objects/{oid[:2]}>" in line for line in calls), f"the folder of {oid} is not forced"
        place = f"objects/{oid[:2]}/{oid[2:]}"
        named = next(n for n, line in enumerate(lines) if re.search(rf"(rename|link)\(.*{place}", line))
        written = re.search(r'\("[^"]*?([^"/]+)"', lines[named])
        assert written is not None
        assert any(written[1] in line and "sync(" in line for line in lines[:named]), f"{oid} is not forced first"
        moved = next(n for n, line in enumerate(lines) if REF in line)
        assert named < moved, f"the ref names {oid} before it is where git looks"
    assert any(f"{REF.rpartition('/')[0]}>" in line for line in calls)
    assert any(f"{sandbox.git_dir}/refs>" in line for line in calls)


def test_the_folder_of_idumb_is_private(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write("a", "1")
    trees.scan()
    mode = (sandbox.git_dir / "idumb/shadow/main").stat().st_mode
    assert stat.S_IMODE(mode) == 0o700
