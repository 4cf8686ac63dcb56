"""Submodules in a checkout: at their recorded commits, lost, or not on this machine (R-RUN-3)."""

from __future__ import annotations

from pathlib import Path

from idumb.git.checkouts.checkout import BUILD
from tests.adapters.git.conftest import Take
from tests.support import checkouts
from tests.support.checkouts import run, show, shown, tree
from tests.support.gitrepo import GitSandbox


def test_submodules_are_checked_out_at_their_recorded_commits(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.write("a.txt", "a\n")
    sandbox.add_submodule("sub", {"lib.txt": "one\n", "deep/x": "x\n"})
    sandbox.commit()
    sandbox.write_all({"sub/lib.txt": "not committed\n", "sub/new.txt": "untracked\n"})
    checkout = proof()
    root = show(checkout, sandbox)
    assert {"sub/lib.txt": b"one\n", "sub/deep/x": b"x\n"}.items() <= shown(checkout).items()
    assert "sub/new.txt" not in shown(checkout)
    assert (run("git status --porcelain", checkout), checkout.trees.scan()) == ("", tree(sandbox))
    (root / "sub/lib.txt").write_text("by a check\n")
    (root / "sub/left").write_text("by a check\n")
    assert checkout.restore() == ("sub/lib.txt",)
    run("rm -r sub", checkout)
    (root / "sub").symlink_to(sandbox.root / "sub")  # where the user has other bytes
    assert "sub/lib.txt" in checkout.restore()
    show(checkout, sandbox)
    assert (shown(checkout)["sub/lib.txt"], sandbox.read("sub/lib.txt")) == (b"one\n", "not committed\n")
    sandbox.git("-C", "sub", "rm", "-qr", "deep")
    sandbox.git("-C", "sub", "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qam", "two")
    sandbox.commit("next", "sub")
    show(checkout, sandbox)
    assert set(shown(checkout)) == {".gitmodules", "a.txt", "sub/lib.txt"}
    assert shown(checkout)["sub/lib.txt"] == b"not committed\n"
    sandbox.git("rm", "-qf", "sub")
    sandbox.write("sub/lib.txt", "vendored\n")
    sandbox.commit("files in its place")
    show(checkout, sandbox)
    assert shown(checkout)["sub/lib.txt"] == b"vendored\n"


def test_what_idumb_knows_of_a_submodule_may_be_lost(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.add_submodule("sub", {"lib.txt": "one\n"})
    sandbox.commit()
    checkout = proof(BUILD)
    (show(checkout, sandbox) / "sub/lib.txt").write_text("left\n")
    checkouts.close(checkout)
    (place,) = (sandbox.git_dir / "idumb/checkouts/build-1/modules").iterdir()
    (place / "shown").write_bytes(b"damaged")
    checkout = proof(BUILD)
    show(checkout, sandbox)
    assert shown(checkout)["sub/lib.txt"] == b"one\n"


def test_a_submodule_that_this_machine_lacks_is_an_empty_folder_and_named(
    sandbox: GitSandbox, proof: Take, tmp_path: Path
) -> None:
    inner = GitSandbox.create(tmp_path / "inner")
    innermost = inner.add_submodule("deep", {"deep.txt": "one\n"})
    inner.commit()
    sandbox.add_submodule("sub", source=inner)
    sandbox.commit()
    checkout = proof()
    root = show(checkout, sandbox)
    line = "git submodule update --init --recursive sub"
    words = f"submodule sub/deep: this machine does not have its commit {innermost.head()[:10]}; {line}"
    assert checkout.missing == (words,)
    (root / "sub/deep/left").write_text("by a check\n")
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
    checkout.renew()
    show(checkout, sandbox)
    assert {path for path in shown(checkout) if "deep/" in path} == {"sub/deep/deep.txt"}
    assert not checkout.missing


def test_a_linked_working_tree_that_was_committed_by_accident_is_shown_as_a_submodule(
    sandbox: GitSandbox, proof: Take
) -> None:
    sandbox.write("a.txt", "a\n")
    sandbox.commit()
    sandbox.git("worktree", "add", "-q", "trees/agent-1")
    sandbox.git("add", "trees/agent-1")
    sandbox.commit("by accident", "trees/agent-1")
    checkout = proof()
    show(checkout, sandbox)
    assert shown(checkout) == {"a.txt": b"a\n", "trees/agent-1/a.txt": b"a\n"}
    assert not checkout.missing
