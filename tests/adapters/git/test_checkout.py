"""A checkout holds exactly one tree, as git checks it out, with a git folder for programs (R-RUN-3)."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from idumb.git.checkouts import checkout as checkout_module
from idumb.git.checkouts.checkout import BUILD, PROVE
from idumb.system import clock
from tests.adapters.git.conftest import Take, trees_of
from tests.support import checkouts
from tests.support.checkouts import run, show, shown, tree
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox


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
        run("git init -q new/inner && touch new/inner/x && chmod 555 new/inner", checkout)
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


def test_a_declared_file_that_is_cached_or_provided_is_what_a_task_starts_from(
    sandbox: GitSandbox, proof: Take
) -> None:
    sandbox.commit_with({"a.txt": "a\n", ".gitignore": "cache\nlent\n"})
    sandbox.write("lent/x", "of the user\n")
    checkout = proof(BUILD, is_cached=lambda path: path == "cache", provided=("lent",), limit=1 << 20)
    root, paths = show(checkout, sandbox), ["cache", "lent/x"]
    (root / "cache").write_text("made\n")
    assert checkout.with_ignored(tree(sandbox), paths) == checkout.trees.scan(paths) != tree(sandbox)
    assert (root / "lent/x").exists()


@pytest.mark.parametrize("control", [False, True])
def test_caches_stay_when_the_tree_changes_unless_somebody_or_a_control_changed_them_later(
    sandbox: GitSandbox, proof: Take, tmp_path: Path, *, control: bool
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
    run("rm -r d", checkout)
    (root / "d").symlink_to("/tmp")
    (root / "l").unlink()
    (root / "l").write_text("no link\n")
    os.utime(root / "t.txt", (1, 1))  # only touched
    assert checkout.restore() == ("a.txt", "b.txt", "c.txt", "d/e.txt", "l")
    assert shown(checkout) == {"a.txt": b"aaa\n", "l": b"aaa\n", **others}
    assert checkout.restore() == ()


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
    run("git init -q inner", checkout)
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
    assert run("git symbolic-ref -q HEAD || echo $?", checkout) == "1"


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
    sandbox.object_file(oid).unlink()
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
