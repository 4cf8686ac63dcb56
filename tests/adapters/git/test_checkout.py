"""A checkout holds exactly one tree, as git checks it out, with a git folder for programs (R-RUN-3)."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from idumb.app.ports import Conflict
from idumb.domain.errors import Refusal
from idumb.git import tree_objects
from idumb.git.checkouts import checkout as checkout_module
from idumb.git.checkouts import untracked
from idumb.git.checkouts.checkout import BUILD, PROVE, Checkout
from idumb.git.checkouts.tree_files import TreeFiles
from idumb.git.tree_objects import EMPTY_TREE
from idumb.system import clock
from tests.adapters.git.conftest import trees_of
from tests.support import checkouts
from tests.support.checkouts import create, show, shown, tree
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox


@pytest.fixture
def proof(sandbox: GitSandbox) -> Iterator[Callable[..., Checkout]]:
    """Return what takes a checkout, once the sandbox is as the test wants it."""
    taken = list[Checkout]()

    def take(*arguments: str, **options: Any) -> Checkout:
        taken.append(create(sandbox, *arguments, **options))
        return taken[-1]

    yield take
    for checkout in taken:
        checkouts.close(checkout)


Take = Callable[..., Checkout]


def run(command: str, checkout: Checkout) -> str:
    done = subprocess.run(command, cwd=checkout.top, shell=True, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_it_holds_what_is_committed_and_nothing_else(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.write_all({"a.txt": "a\n", "d/run.sh": "#!/bin/sh\n", ".gitignore": "*.log\n", "x.log": "ignored\n"})
    os.chmod(sandbox.root / "d/run.sh", 0o755)
    sandbox.link("l", "a.txt")
    sandbox.commit()
    sandbox.write_all({"a.txt": "not committed\n", "new.txt": "untracked\n"})
    before, checkout = sandbox.ledger(), proof()
    root = show(checkout, sandbox)
    assert shown(checkout) == {".gitignore": b"*.log\n", "a.txt": b"a\n", "d/run.sh": b"#!/bin/sh\n", "l": b"a\n"}
    assert os.readlink(root / "l") == "a.txt"
    assert [os.access(root / name, os.X_OK) for name in ("d/run.sh", "a.txt")] == [True, False]
    assert checkout.trees.scan() == tree(sandbox)
    assert sandbox.ledger() == before


def test_it_holds_names_that_the_user_s_git_accepts(sandbox: GitSandbox, proof: Take) -> None:
    """As scans do: `core.protectNTFS` and `core.protectHFS` count there too."""
    names = {"d/git~1": b"1", "d/.g\u200cit": b"1"}
    for key in ("core.protectNTFS", "core.protectHFS"):
        sandbox.git("config", key, "false")
    sandbox.commit_with(names)
    checkout = proof()
    show(checkout, sandbox)
    assert shown(checkout) == names
    assert checkout.trees.scan() == tree(sandbox)


def test_it_follows_a_new_tree_by_the_difference(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.commit_with({"same.txt": "same\n", "gone/old.txt": "x\n", "folder/file.txt": "x\n", "file": "x\n"})
    checkout = proof()
    root = show(checkout, sandbox)
    unchanged = os.stat(root / "same.txt")
    for path in ("gone/old.txt", "file", "folder"):
        sandbox.remove(path)
    sandbox.commit_with({"file/now-a-folder": "x\n", "folder": "x\n", "new.txt": "new\n"})
    show(checkout, sandbox)
    assert set(shown(checkout)) == {"same.txt", "file/now-a-folder", "folder", "new.txt"}
    assert os.stat(root / "same.txt").st_ino == unchanged.st_ino
    assert not (root / "gone").exists()


def test_what_programs_leave_goes_with_the_next_tree_and_in_a_build_what_git_ignores_stays(
    sandbox: GitSandbox, proof: Take
) -> None:
    sandbox.commit_with({"a.txt": "a\n", ".gitignore": "build/\n"})
    for use, stays in (("proof", []), (BUILD, ["build/out"])):
        checkout = proof(use)
        root = show(checkout, sandbox)
        for path in ("build/out", "new/file", "empty/folder/x"):
            (root / path).parent.mkdir(parents=True)
            (root / path).write_text("made\n")
        (root / "empty/folder/x").unlink()
        (root / "a.txt").write_text("changed\n")
        subprocess.run(
            "git init -q new/inner && touch new/inner/x && chmod 555 new/inner", cwd=root, shell=True, check=True
        )
        (root / ".gitignore").write_text("*\n")
        show(checkout, sandbox)
        assert (root / "new/file").exists(), "the same tree: what is there stays"
        sandbox.git("commit", "-q", "--allow-empty", "-m", "next")
        show(checkout, sandbox)
        assert sorted(shown(checkout)) == sorted([".gitignore", "a.txt", *stays])
        checkout.renew()
        show(checkout, sandbox)
        assert sorted(shown(checkout)) == [".gitignore", "a.txt"]


def test_an_attempt_that_starts_anew_gets_the_same_tree_without_what_the_last_one_left(
    sandbox: GitSandbox, proof: Take
) -> None:
    sandbox.commit_with({"a.txt": "a\n", ".gitignore": "build\n"})
    checkout = proof(BUILD)
    root = show(checkout, sandbox)
    checkout.begin("refs/idumb/worktrees/main/runs/r1/T1/1/interrupted")
    for path in ("a.txt", "new", "build"):
        (root / path).write_text("made\n")
    checkout.end()
    show(checkout, sandbox)
    assert shown(checkout) == {".gitignore": b"build\n", "a.txt": b"a\n", "build": b"made\n"}
    found = checkout.with_ignored(tree(sandbox), ["a.txt", "build", "nothing"])
    assert found == tree(sandbox), "it is not what the task starts from"
    assert shown(checkout) == {".gitignore": b"build\n", "a.txt": b"a\n"}


def test_a_declared_file_that_is_cached_is_what_a_task_starts_from(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.commit_with({"a.txt": "a\n", ".gitignore": "cache\n"})
    checkout = proof(BUILD, is_cached=lambda path: path == "cache")
    (show(checkout, sandbox) / "cache").write_text("made\n")
    assert checkout.with_ignored(tree(sandbox), ["cache"]) == checkout.trees.scan(["cache"]) != tree(sandbox)


@pytest.mark.parametrize("control", [False, True])
def test_caches_stay_when_the_tree_changes_unless_somebody_or_a_control_changed_them_later(
    sandbox: GitSandbox,
    proof: Take,
    tmp_path: Path,
    control: bool,  # noqa: FBT001
) -> None:
    sandbox.commit_with({"a.txt": "a\n", ".gitignore": "cache/\n"})
    checkout = proof(is_cached=lambda path: path == "cache/")
    root = show(checkout, sandbox)
    for name in ("kept", "changed"):
        (root / "cache" / name).mkdir(parents=True)
        (root / "cache" / name / "out").write_text("x\n")
    assert checkout.restore() == ()
    noted = (sandbox.git_dir / "idumb/checkouts/proof-1/checked").stat().st_mtime_ns
    while clock_of(tmp_path / "clock") <= noted:
        pass
    if control:
        checkout.renew(control=True)
        show(checkout, sandbox)
    (root / "cache/changed/out").write_text("planted\n")
    if control:
        checkout.restore()
    for _ in range(3):  # what is removed changes the folder above it
        checkout.renew()
        show(checkout, sandbox)
        assert set(shown(checkout)) == {".gitignore", "a.txt", "cache/kept/out"}
        assert checkout.cached == ("cache",)


def clock_of(path: Path) -> int:
    """Return the time with which the file system stamps a change now."""
    path.touch()
    return path.stat().st_ctime_ns


def test_a_tracked_file_that_a_check_changes_is_restored_and_named(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.write_all({"a.txt": "aaa\n", "b.txt": "b\n", "c.txt": "c\n", "d/e.txt": "e\n", "t.txt": "t\n"})
    sandbox.link("l", "a.txt")
    sandbox.commit()
    checkout = proof()
    root = show(checkout, sandbox)
    times, others = os.stat(root / "a.txt"), {"b.txt": b"b\n", "c.txt": b"c\n", "d/e.txt": b"e\n", "t.txt": b"t\n"}
    (root / "a.txt").write_text("bbb\n")  # as long, and with the old time
    os.utime(root / "a.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    (root / "b.txt").unlink()
    os.chmod(root / "c.txt", 0o755)
    subprocess.run(["rm", "-r", str(root / "d")], check=True)
    (root / "d").symlink_to("/tmp")
    (root / "l").unlink()
    (root / "l").write_text("no link\n")
    os.utime(root / "t.txt", (1, 1))  # only touched
    assert checkout.restore() == ("a.txt", "b.txt", "c.txt", "d/e.txt", "l")
    assert shown(checkout) == {"a.txt": b"aaa\n", "l": b"aaa\n", **others}
    assert checkout.restore() == ()


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


def test_the_checkout_of_a_stranger_has_neither_the_user_s_settings_nor_caches(sandbox: GitSandbox) -> None:
    """R-RUN-13."""
    sandbox.commit_with({"a.txt": "a\n", ".gitignore": "cache\n"})
    sandbox.git("config", "core.autocrlf", "true")
    command = checkouts.opened(sandbox, is_cached=lambda _: True)
    checkout = command.open(PROVE, plain=True)
    (show(checkout, sandbox) / "cache").write_text("made\n")
    checkout.restore()
    checkout.renew()
    show(checkout, sandbox)
    assert shown(checkout) == {"a.txt": b"a\n", ".gitignore": b"cache\n"}
    command.close()


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


def test_a_scan_has_ignored_files_only_by_name_and_repositories_of_programs_are_named(
    sandbox: GitSandbox, proof: Take
) -> None:
    sandbox.write_all({"a.txt": "a\n", ".gitignore": "*.log\n", "kept.log": "tracked\n"})
    sandbox.commit("without", "a.txt", ".gitignore")
    sandbox.git("add", "-f", "kept.log")
    sandbox.git("commit", "-q", "-m", "with what git ignores")
    checkout = proof(BUILD)
    show(checkout, sandbox, "HEAD~1")
    assert checkout.trees.scan() == tree(sandbox, "HEAD~1")
    root = show(checkout, sandbox)
    assert checkout.trees.scan() == tree(sandbox)
    for name in ("x.log", "new.txt"):
        (root / name).write_text("made\n")
    (root / "kept.log").write_text("changed\n")
    subprocess.run(["git", "init", "-q", "inner"], cwd=root, check=True)
    (root / "inner/file").write_text("x\n")
    found = sandbox.tree(checkout.trees.scan())
    assert set(found) == {"a.txt", ".gitignore", "kept.log", "new.txt"}
    assert found["kept.log"] != sandbox.tree()["kept.log"]
    assert checkout.trees.repositories() == ("inner",)
    assert set(sandbox.tree(checkout.trees.scan(["x.log"]))) == {*found, "x.log"}


def test_git_works_in_it_without_the_user_s_refs_hooks_and_settings(sandbox: GitSandbox, proof: Take) -> None:
    parent = sandbox.commit_with({"a.txt": "a\n"})
    sandbox.git("tag", "v1")
    sandbox.git("pack-refs", "--all")
    sandbox.git("tag", "-m", "annotated", "team/v0")
    sandbox.git("update-ref", "refs/idumb/x", "HEAD")
    sandbox.git("config", "secret.key", "mine")
    sandbox.git("remote", "add", "origin", "/nowhere")
    sandbox.write(".git/hooks/post-checkout", "#!/bin/sh\n", mode=0o755)
    candidate = sandbox.commit_with({"a.txt": "b\n", "new.txt": "new\n"})
    refs, checkout = sandbox.refs(), proof()
    checkout.show(tree(sandbox), parent)
    assert run("git rev-parse HEAD; git symbolic-ref HEAD", checkout).split() == [parent, "refs/heads/main"]
    assert run("git status --porcelain", checkout) == "M  a.txt\nA  new.txt"
    assert run("git describe", checkout) == "team/v0"
    assert run("git diff HEAD --name-only", checkout).split() == ["a.txt", "new.txt"]
    assert "secret" not in run("git config --list --local", checkout)
    assert run("git remote", checkout) == ""
    run("git commit -qm 'by a program'", checkout)
    assert run("git log -1 --format='%an %s'", checkout) == "Pat Tester by a program"
    assert sandbox.refs() == refs
    sandbox.git("checkout", "-q", "--detach")
    checkout.show(tree(sandbox), candidate)
    assert run("git status --porcelain; git log --format=%s", checkout).split() == ["work", "work"]
    assert subprocess.run(["git", "symbolic-ref", "-q", "HEAD"], cwd=checkout.top, check=False).returncode == 1


def test_history_stays_readable_although_the_user_amends_and_collects_garbage(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.write("a.txt", "a\n")
    sandbox.commit("first")
    sandbox.write("a.txt", "b\n")
    base = sandbox.commit("amended away")
    checkout = proof()
    trees_of(sandbox).snapshot("refs/idumb/worktrees/main/runs/r/T1/1/base", "before T1")
    show(checkout, sandbox)
    sandbox.write("a.txt", "c\n")
    sandbox.git("commit", "-q", "-a", "--amend", "-m", "amended")
    sandbox.git("reflog", "expire", "--expire=all", "--all")
    sandbox.git("gc", "-q", "--prune=now")
    assert sandbox.git("branch", "--contains", base) == ""
    checkout.refresh()
    assert run("git log --format=%s", checkout).splitlines() == ["amended away", "first"]
    assert run("git show HEAD:a.txt", checkout) == "b"


def test_before_the_first_commit_it_has_no_head(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.write("a.txt", "a\n")
    sandbox.git("add", "-A")
    checkout = proof()
    checkout.show(sandbox.git("write-tree"), None)
    assert shown(checkout) == {"a.txt": b"a\n"}
    assert run("git status --porcelain", checkout) == "A  a.txt"


@pytest.mark.parametrize("kind", ["blob", "tree"])
def test_a_missing_object_is_refused_by_name(sandbox: GitSandbox, proof: Take, kind: str) -> None:
    sandbox.commit_with({"d/a.txt": "only here\n"})
    oid = sandbox.git("rev-parse", "HEAD:d/a.txt" if kind == "blob" else "HEAD:d")
    (sandbox.git_dir / "objects" / oid[:2] / oid[2:]).unlink()
    with refusing("git.object-missing", oid):
        show(proof(), sandbox)


def test_the_user_s_sparse_checkout_applies(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.commit_with({"in/a.txt": "a\n", "out/b.txt": "b\n", ".gitattributes": "*.txt eol=crlf\n"})
    sandbox.git("sparse-checkout", "set", "in")
    checkout = proof(BUILD)
    root = show(checkout, sandbox)
    assert set(shown(checkout)) == {"in/a.txt", ".gitattributes"}
    assert (checkout.restore(), checkout.trees.scan()) == ((), tree(sandbox))
    assert run("git status --porcelain", checkout) == ""
    assert sandbox.git("cat-file", "blob", f"{checkout.checked_out(tree(sandbox), ['out/b.txt'])}:out/b.txt") == "b\r"
    (root / "out").mkdir()
    (root / "out/b.txt").write_text("changed all the same\n")
    assert sandbox.tree(checkout.trees.scan())["out/b.txt"] != sandbox.tree()["out/b.txt"]


def test_work_that_the_user_s_sparse_checkout_omits_is_shown_before_and_after_its_delivery(
    sandbox: GitSandbox, proof: Take
) -> None:
    """R-GIT-7."""
    base = sandbox.commit_with({"in/a.txt": "a\n", "out/b.txt": "b\n"})
    sandbox.write("out/new.txt", "new\n")
    candidate = tree(sandbox, done := sandbox.commit())
    sandbox.git("reset", "--quiet", "--hard", base)
    sandbox.git("sparse-checkout", "set", "in")
    checkout = proof()
    checkout.show(candidate, base)
    assert (set(shown(checkout)), checkout.restore()) == ({"in/a.txt", "out/new.txt"}, ())
    for harm in ("echo changed > out/new.txt", "rm out/new.txt"):
        run(harm, checkout)
        assert (checkout.restore(), shown(checkout)["out/new.txt"]) == (("out/new.txt",), b"new\n")
    sandbox.write("out/new.txt", "new\n")
    checkout.show(candidate, done)
    assert set(shown(checkout)) == {"in/a.txt", "out/new.txt"}
    assert checkout.trees.scan() == candidate


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
    subprocess.run(["rm", "-r", root / "sub"], check=True)
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


def test_a_link_above_a_provided_path_leads_to_no_file_of_the_user(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.commit_with({".gitignore": "node_modules\n", "web/node_modules/lib.js": "1"})
    user = sandbox.ledger()
    checkout = proof(provided=("node_modules",), limit=1 << 30)
    root = show(checkout, sandbox)
    shutil.rmtree(root / "web")
    (root / "web").symlink_to(sandbox.root / "web")
    checkout.renew()
    show(checkout, sandbox)
    assert shown(checkout)["web/node_modules/lib.js"] == b"1"
    assert not (root / "web").is_symlink()
    assert sandbox.ledger() == user


def test_programs_in_it_find_its_sources_instead_of_an_editable_install_of_the_user_s(
    sandbox: GitSandbox, proof: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "env/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (site / "own.pth").write_text(f"{sandbox.root}/src\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/env/bin", prepend=os.pathsep)
    sandbox.write("src/own.py")
    sandbox.commit()
    checkout = proof()
    assert checkout.show(tree(sandbox), sandbox.head()) == {"PYTHONPATH": f"{checkout.top}/src"}


def test_provided_and_prepared_paths_are_there_and_no_work(sandbox: GitSandbox, proof: Take) -> None:
    """What is prepared is made once for the same lock file, also for the next command."""
    sandbox.write_all({"a.txt": "a\n", "package.json": "{}\n", "node_modules/x": "x\n", "made/y": "of the user\n"})
    sandbox.commit("without what is ignored", "a.txt", "package.json")
    sandbox.write(".git/info/exclude", "node_modules\n")
    runs, notes = list[str](), list[str]()
    for identity, count in (("npm ci", 1), ("npm ci", 1), ("npm i", 2)):
        checkout = proof(provided=("node_modules",), limit=1 << 30, note=notes.append)
        root = show(checkout, sandbox)

        def install(root: Path = root) -> None:
            runs.append("once")
            (root / "made").mkdir()
            (root / "made/y").write_text("y\n")

        checkout.prepare(identity, install)
        files = {"a.txt": b"a\n", "package.json": b"{}\n", "node_modules/x": b"x\n", "made/y": b"y\n"}
        assert (shown(checkout), len(runs)) == (files, count)
        assert (checkout.provided, checkout.prepared) == (("node_modules",), ("made",))
        assert (run("git status --porcelain", checkout), checkout.trees.scan()) == ("", tree(sandbox))
        for name in ("node_modules/x", "a.txt"):
            (root / name).write_text("by a check\n")
        (root / "left").write_text("by a check\n")
        assert checkout.restore() == ("a.txt",)
        checkout.renew()
        show(checkout, sandbox)
        assert shown(checkout) == files
        assert (run("git status --porcelain", checkout), checkout.trees.scan()) == ("", tree(sandbox))
        checkouts.close(checkout)
    assert [words.partition("with ")[2] for words in notes] == ["copies of your node_modules (0.0 MB)"]


def test_a_large_tree_that_takes_long_is_mentioned_once(
    sandbox: GitSandbox, proof: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout_module, "_MANY", 3)
    sandbox.commit_with({f"{number}.txt": "x\n" for number in range(4)})
    times, notes = itertools.count(0, 2), list[str]()
    monkeypatch.setattr(clock.SystemClock, "monotonic", lambda _: next(times))
    for _ in range(2):
        checkout = proof(note=notes.append)
        show(checkout, sandbox)
        checkouts.close(checkout)
        assert notes == ["The proof checkout was made in 2.0 s"]


@pytest.mark.parametrize("end", ["failed", "killed"])
def test_of_an_installation_that_did_not_end_nothing_stays_or_counts(
    sandbox: GitSandbox, proof: Take, end: str
) -> None:
    sandbox.commit_with({"package.json": "{}\n"})

    def install(name: str) -> None:
        (root / "made").mkdir()
        (root / "made" / name).touch()

    def begin() -> None:
        install("partial")
        if end == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise TimeoutError

    checkout = proof()
    root = show(checkout, sandbox)
    checkout.prepare("a", lambda: install("one"))
    checkouts.close(checkout)
    checkout = proof()
    show(checkout, sandbox)
    if end == "failed":
        with pytest.raises(TimeoutError):
            checkout.prepare("b", begin)
    elif (process := os.fork()) == 0:
        checkout.prepare("b", begin)
    else:
        os.waitpid(process, 0)  # a hook of another test may have left a process that ends now
    assert (root / "made/partial").exists()
    if end == "failed":
        show(checkout, sandbox)
        assert set(shown(checkout)) == {"package.json"}
    checkouts.close(checkout)
    checkout = proof()
    show(checkout, sandbox)
    assert set(shown(checkout)) == {"package.json"}
    checkout.prepare("b", lambda: install("two"))
    assert (checkout.prepared, set(shown(checkout))) == (("made",), {"package.json", "made/two"})


def test_paths_are_those_of_the_project_and_its_folder_exists(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.commit_with({"app/a.txt": "a\n", "top.txt": "t\n"})
    checkout = proof(folder="app")
    root = show(checkout, sandbox)
    assert checkout.root == checkout.trees.root == str(root / "app")
    for name in ("app/a.txt", "top.txt"):
        (root / name).write_text("changed\n")
    assert checkout.restore() == ("a.txt", "../top.txt")
    (sandbox.root / "app/a.txt").unlink()
    sandbox.commit()
    show(checkout, sandbox)
    assert Path(checkout.root).is_dir()


def test_without_room_for_the_tree_nothing_is_written_and_no_room_is_needed_twice(
    sandbox: GitSandbox, proof: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    from idumb.system import machine

    sandbox.add_submodule("sub", {"a.txt": "a\n"})
    sandbox.commit_with({"a.txt": "a\n"})
    checkout = proof()
    with monkeypatch.context() as full:
        full.setattr(machine, "room", lambda _: machine.Room("/", 8191, None))
        with refusing("system.full", "8192 bytes"):
            show(checkout, sandbox)
        assert checkouts.names(checkout.top) == []
    show(checkout, sandbox)
    checkouts.close(checkout)
    monkeypatch.setattr(machine, "room", lambda _: machine.Room("/", 0, None))
    checkout = proof()
    show(checkout, sandbox)  # every file has its room already
    assert shown(checkout)["sub/a.txt"] == b"a\n"
