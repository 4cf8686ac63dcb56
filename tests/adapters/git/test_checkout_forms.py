"""The files of a checkout have the form in which git checks them out: line endings, filters, modes (R-RUN-3)."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from idumb.app.ports import Conflict
from idumb.domain.errors import Refusal
from idumb.git import tree_objects
from idumb.git.checkouts import untracked
from idumb.git.checkouts.checkout import BUILD
from idumb.git.checkouts.tree_files import TreeFiles
from idumb.git.tree_objects import EMPTY_TREE
from idumb.system import clock
from tests.adapters.git.conftest import Take, trees_of
from tests.support import checkouts, seed
from tests.support.checkouts import show, shown, tree
from tests.support.gitrepo import GitSandbox


def test_attributes_that_a_check_writes_decide_nothing(
    sandbox: GitSandbox, proof: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.commit_with({"d/a.txt": "a\nb\n", "d/b.txt": "a\n", ".gitattributes": "*.md text\n"})
    checkout, check_out = proof(), TreeFiles._check_out

    def slowly(files: TreeFiles, tree: str) -> None:
        check_out(files, tree)
        later = os.stat(checkout.index).st_mtime + 5
        os.utime(checkout.index, (later, later))  # otherwise git compares the bytes
        files._folder._written = files._folder.stamp()

    monkeypatch.setattr(TreeFiles, "_check_out", slowly)
    root = show(checkout, sandbox)
    (root / "d/.gitattributes").write_text("*.txt text eol=crlf\n")
    (root / "d/a.txt").write_bytes(b"a\r\nb\r\n")
    assert (checkout.restore(), (root / ".gitattributes").exists()) == (("d/a.txt",), True)
    (root / "d/.gitattributes").write_text("*.txt text eol=crlf\n")
    (root / "d/a.txt").write_bytes(b"a\r\nb\r\n")
    sandbox.commit_with({"d/b.txt": "b\n"})
    show(checkout, sandbox)
    assert (shown(checkout)["d/a.txt"], shown(checkout)["d/b.txt"]) == (b"a\nb\n", b"b\n")


def test_files_have_the_line_endings_and_filters_of_the_user_and_scans_those_of_a_commit(
    sandbox: GitSandbox, proof: Take
) -> None:
    attributes = "*.up filter=up -text\n*.bin binary\n"
    sandbox.commit_with({".gitattributes": attributes, "a.txt": "x\ny\n", "a.bin": b"\0\n", "a.up": "A\n"})
    for name, value in (("smudge", "tr A-Z a-z"), ("clean", "tr a-z A-Z")):
        sandbox.git("config", f"filter.up.{name}", value)
    sandbox.git("config", "core.autocrlf", "true")
    checkout = proof(BUILD)
    root = show(checkout, sandbox)
    assert [shown(checkout)[name] for name in ("a.txt", "a.bin", "a.up")] == [b"x\r\ny\r\n", b"\0\n", b"a\n"]
    assert checkout.trees.scan() == tree(sandbox)
    (root / "a.txt").write_bytes(b"z\r\n")
    (root / "b.up").write_bytes(b"new\n")
    scanned = checkout.trees.scan()
    assert [sandbox.git("cat-file", "blob", f"{scanned}:{name}") for name in ("a.txt", "b.up")] == ["z", "NEW"]
    raw = checkout.checked_out(scanned, ["a.txt", "b.up", "gone"])
    assert [sandbox.git("cat-file", "blob", f"{raw}:{name}") for name in ("a.txt", "b.up")] == ["z\r", "new"]
    assert checkout.checked_out(scanned, ["a.bin"]) == scanned
    assert checkout.cleaned("b.up", b"new\n") == sandbox.git("rev-parse", f"{scanned}:b.up")
    subprocess.run(["rm", "-r", checkout.top], check=True)
    assert checkout.checked_out(scanned, ["a.txt", "b.up", "gone"]) == raw, "the folder was made again"


@pytest.mark.parametrize("by", seed.one_on_a_push(["the tree", "the user's attributes", "a setting"], "conversion"))
def test_a_later_command_checks_out_again_what_git_converts(sandbox: GitSandbox, proof: Take, by: str) -> None:
    rule = "*.txt text eol=crlf\n"
    sandbox.commit_with({"a.txt": "x\n", ".gitattributes": rule if by == "the tree" else "*.bin -diff\n"})
    if by == "the user's attributes":
        sandbox.write(".git/info/attributes", rule)
    elif by == "a setting":
        sandbox.git("config", "core.autocrlf", "true")
    checkout = proof()
    root = show(checkout, sandbox)
    checkouts.close(checkout)
    (root / "a.txt").write_bytes(b"x\n")  # as git stores it
    show(proof(), sandbox)
    assert (root / "a.txt").read_bytes() == b"x\r\n"


def test_a_file_that_the_user_had_in_another_form_of_the_same_content_has_that_form(
    sandbox: GitSandbox, proof: Take
) -> None:
    """The first of the user's trees counts in which git calls the file unmodified."""
    sandbox.commit_with({".gitattributes": "*.id ident\n", "a.id": "$Id$\n", **dict.fromkeys("abc", "1\n2\n")})
    sandbox.git("config", "core.autocrlf", "true")
    checkout, user, seen = proof(BUILD), trees_of(sandbox), []
    show(checkout, sandbox)
    for content in (b"1\r\n2\n", b"other\n", b"1\n2\n"):
        (sandbox.root / "a").write_bytes(content)
        sandbox.write_all({"a.id": "$Id: 12 $\n", "b": "other\n"})
        sandbox.remove("c")
        sandbox.link("c", "a")
        seen.append(user.scan())
    for trees, expected in ((seen, b"1\r\n2\n"), ([EMPTY_TREE, *seen[1:]], b"1\n2\n"), ((), b"1\r\n2\r\n")):
        raw = checkout.checked_out(tree(sandbox), ["a", "a.id", "b", "c"], trees)
        blobs = [user.read(entry.oid) for name in ("a", "a.id", "b", "c") if (entry := user.entry(raw, name))]
        assert blobs[0] == expected
        assert blobs[2:] == [b"1\r\n2\r\n"] * 2
        assert (blobs[1] == b"$Id: 12 $\n") == bool(trees)


def test_kept_files_are_in_the_tree_of_a_commit_as_git_would_store_them(sandbox: GitSandbox, proof: Take) -> None:
    """R-RUN-13: as `prove` needs them where nothing was committed. Nothing of them stays in the checkout."""
    base = sandbox.commit_with({".gitattributes": "*.txt text eol=crlf\n", "a.txt": "one\n", "b.txt": "one\n"})
    sandbox.write_all({"a.txt": "two\r\n", "b.txt": "two\r\n"})
    checkout, kept = proof(), trees_of(sandbox).scan()
    sandbox.git("add", "a.txt")
    assert checkout.committed(base, kept, ["a.txt"]) == sandbox.git("write-tree")
    show(checkout, sandbox)
    assert shown(checkout)["a.txt"] == b"one\r\n"


def test_a_file_of_the_user_s_stays_executable_if_git_ignores_modes(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.commit_with({"a": "1\n", "b": "1\n"})
    sandbox.git("config", "core.fileMode", "false")
    (sandbox.root / "a").chmod(0o755)
    written = proof(BUILD).checked_out(tree(sandbox), ["a", "b"])
    assert [mode for mode, _ in sandbox.tree(written).values()] == ["100755", "100644"]


def test_what_a_killed_command_checked_out_beside_it_goes(
    sandbox: GitSandbox, proof: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.commit_with({".gitattributes": "*.txt text\n", "a.txt": "a\n"})
    checkout, own = proof(BUILD), sandbox.git_dir / "idumb/checkouts/build-1"
    show(checkout, sandbox)
    before = checkouts.names(own)
    with monkeypatch.context() as patched:
        patched.setattr(tree_objects, "store", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        if (process := os.fork()) == 0:
            checkout.checked_out(tree(sandbox), ["a.txt"])
        assert os.waitpid(process, 0)[1] == signal.SIGKILL
    assert checkouts.names(own) != before
    checkouts.close(checkout)
    proof(BUILD)
    assert checkouts.names(own) == before


def test_patches_and_restores_write_what_git_checks_out(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.write_all({".gitattributes": "*.txt text eol=crlf\n*.up filter=up\n", "a.txt": "one\r\n", "a.up": "A\n"})
    for name, value in (("smudge", "tr A-Z a-z"), ("clean", "tr a-z A-Z")):
        sandbox.git("config", f"filter.up.{name}", value)
    sandbox.commit()
    checkout = proof(BUILD)
    root, base = show(checkout, sandbox), checkout.trees.scan()
    (root / "a.txt").write_bytes(b"two\r\n")
    (root / "a.up").write_bytes(b"b\n")
    after = checkout.trees.scan()
    patch = checkout.trees.diff(base, after)
    assert checkout.trees.restore(base, after, ["a.txt", "a.up"]) == ()
    assert [(root / name).read_bytes() for name in ("a.txt", "a.up")] == [b"one\r\n", b"a\n"]
    assert checkout.trees.apply_patch(patch, lambda _: None) == (True, "")
    assert [(root / name).read_bytes() for name in ("a.txt", "a.up")] == [b"two\r\n", b"b\n"]
    (root / "a.txt").write_bytes(b"three\r\n")
    assert checkout.trees.restore(base, after, ["a.txt"]) == (Conflict("a.txt", "was changed since"),)
    assert (root / "a.txt").read_bytes() == b"three\r\n"


def test_without_the_program_of_a_filter_a_file_is_as_in_the_commit(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.commit_with({".gitattributes": "*.key filter=lock\n", "a.key": "locked\n"})
    for name, value in (("smudge", "no-such-program"), ("clean", "no-such-program"), ("required", "true")):
        sandbox.git("config", f"filter.lock.{name}", value)
    checkout = proof()
    root = show(checkout, sandbox)
    assert shown(checkout)["a.key"] == b"locked\n"
    assert checkout.restore() == ()
    (root / "a.key").write_text("by a check\n")
    assert checkout.restore() == ("a.key",)
    build = proof(BUILD)
    root = show(build, sandbox)
    (root / "new.txt").write_text("new\n")  # git also looks at files that are as young as its index
    assert sandbox.git("ls-tree", "-r", "--name-only", build.trees.scan()).split() == [
        ".gitattributes",
        "a.key",
        "new.txt",
    ]
    (root / "a.key").write_text("in plain text\n")
    with pytest.raises(Refusal, match="no-such-program"):
        build.trees.scan()


def test_git_crypt_finds_its_keys(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.write(".git/git-crypt/key", "in plain text\n")
    sandbox.commit_with({".gitattributes": "*.key filter=crypt\n", "a.key": "x\n"})
    sandbox.git("config", "filter.crypt.smudge", 'cat "$(git rev-parse --git-dir)/git-crypt/key"')
    checkout = proof()
    show(checkout, sandbox)
    assert shown(checkout)["a.key"] == b"in plain text\n"


def test_a_tree_with_other_attributes_leaves_no_file_of_the_last_one_and_none_as_it_was(
    sandbox: GitSandbox, proof: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-RUN-3: git then writes every file anew, and removes none."""
    later = SimpleNamespace(nanoseconds=lambda: clock.nanoseconds() + 3_000_000_000, TICK=clock.TICK)
    monkeypatch.setattr(untracked, "clock", later)  # so that folders count as settled
    files = {"a/b/old.txt": "x\n", "a/c/stays.bat": "x\n", ".gitattributes": "*.bat eol=crlf\n"}
    sandbox.add_submodule("sub", files)
    sandbox.commit_with(files)
    checkout = proof()
    show(checkout, sandbox)
    assert shown(checkout)["a/c/stays.bat"] == shown(checkout)["sub/a/c/stays.bat"] == b"x\r\n"
    for place in ("sub", "."):
        sandbox.git("-C", place, "rm", "-rq", "a/b")
        sandbox.write(f"{place}/.gitattributes", "*.bat -text\n")
        sandbox.git("-C", place, "add", ".gitattributes")
        sandbox.git("-C", place, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "two")
        sandbox.commit("next", "sub")
        show(checkout, sandbox)
        assert not Path(checkout.top, place, "a/b/old.txt").exists()
        assert Path(checkout.top, place, "a/c/stays.bat").read_bytes() == b"x\n"
