"""The working tree in which checks run holds exactly one tree, whatever checks leave in it (R-RUN-3)."""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from idumb.domain.errors import Refusal
from idumb.git import discover, proving_files, proving_folders
from idumb.git.history import GitHistory
from idumb.git.proving_tree import ProvingTree
from idumb.system.files import private_folders
from tests.support.gitrepo import GitSandbox


@pytest.fixture
def proving(sandbox: GitSandbox) -> Iterator[ProvingTree]:
    made = create(sandbox, cached=lambda path: path.startswith("cache/"))
    yield made
    made.close()


def create(sandbox: GitSandbox, **options: Any) -> ProvingTree:
    repository = discover.find(str(sandbox.root))
    return ProvingTree(repository, proving_folders.place(repository), **options)


def tree(sandbox: GitSandbox, revision: str = "HEAD") -> str:
    return sandbox.git("rev-parse", f"{revision}^{{tree}}").strip()


def shown(proving: ProvingTree) -> dict[str, bytes]:
    root = Path(proving.root)
    found = (path for path in sorted(root.rglob("*")) if ".git" not in path.relative_to(root).parts)
    return {str(p.relative_to(root)): p.read_bytes() for p in found if p.is_file()}


def show(proving: ProvingTree, sandbox: GitSandbox, revision: str = "HEAD") -> Path:
    proving.show(tree(sandbox, revision), sandbox.git("rev-parse", revision).strip())
    return Path(proving.root)


def test_it_holds_what_is_committed_and_nothing_else(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n", "d/run.sh": "#!/bin/sh\n", ".gitignore": "*.log\n", "x.log": "ignored\n"})
    os.chmod(sandbox.root / "d/run.sh", 0o755)
    sandbox.link("l", "a.txt")
    sandbox.commit()
    sandbox.write_all({"a.txt": "not committed\n", "new.txt": "untracked\n"})
    root = show(proving, sandbox)
    assert shown(proving) == {".gitignore": b"*.log\n", "a.txt": b"a\n", "d/run.sh": b"#!/bin/sh\n", "l": b"a\n"}
    assert os.readlink(root / "l") == "a.txt"
    assert os.access(root / "d/run.sh", os.X_OK)
    assert not os.access(root / "a.txt", os.X_OK)


def test_what_a_check_mounted_is_not_removed_with_the_tree(
    sandbox: GitSandbox, proving: ProvingTree, tmp_path: Path
) -> None:
    """It may be files of the user: a bind mount, or a disk of another machine. The next check has another folder."""
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root, mine = show(proving, sandbox), tmp_path / "mine"
    (root / "m").mkdir()
    mine.mkdir()
    (mine / "file").write_text("mine\n")
    if subprocess.run(["mount", "--bind", mine, root / "m"], capture_output=True, check=False).returncode:
        pytest.skip("only root may mount")
    try:
        proving.renew()
        assert show(proving, sandbox) != root
        assert shown(proving) == {"a.txt": b"a\n"}
        proving.close()
        proving_folders.clear()
        show(proving, sandbox)
        proving.close()
        assert (root / "m" / "file").read_text() == "mine\n"
    finally:
        subprocess.run(["umount", root / "m"], check=True)
    assert (mine / "file").read_text() == "mine\n"
    proving_folders.clear()
    assert not root.parent.exists()


@pytest.mark.parametrize("place", ["left", "../left"])
def test_what_cannot_be_removed_stays_behind(
    sandbox: GitSandbox, proving: ProvingTree, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A container that a check starts may leave files of another user."""
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root, remove = show(proving, sandbox), private_folders.remove_tree
    (root / place).mkdir()
    stuck = os.path.realpath(root / place)
    monkeypatch.setattr(private_folders, "remove_at", raising(PermissionError))
    monkeypatch.setattr(
        private_folders, "remove_tree", lambda path: None if f"{stuck}/".startswith(f"{path}/") else remove(path)
    )
    proving.renew()
    assert show(proving, sandbox) != root
    assert shown(proving) == {"a.txt": b"a\n"}


def raising(kind: type[Exception]) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise kind

    return fail


def test_a_check_may_leave_folders_of_any_depth(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    subprocess.run(["mkdir", "-p", "/".join(["d"] * 1200)], cwd=root, check=True)
    proving.renew()
    assert show(proving, sandbox) == root
    assert sorted(os.listdir(root)) == [".git", "a.txt"]


def test_it_follows_a_new_tree_by_the_difference(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"same.txt": "same\n", "gone/old.txt": "x\n", "folder/file.txt": "x\n", "file": "x\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    unchanged = os.stat(root / "same.txt")
    sandbox.remove("gone/old.txt")
    sandbox.remove("file")
    sandbox.remove("folder/file.txt")
    sandbox.write_all({"file/now-a-folder": "x\n", "folder.txt": "x\n", "new.txt": "new\n"})
    sandbox.commit()
    show(proving, sandbox)
    assert set(shown(proving)) == {"same.txt", "file/now-a-folder", "folder.txt", "new.txt"}
    assert os.stat(root / "same.txt").st_ino == unchanged.st_ino
    assert not (root / "gone").exists()


def test_a_tracked_file_that_a_check_changes_is_restored_and_named(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "aaa\n", "b.txt": "b\n", "c.txt": "c\n", "d/e.txt": "e\n"})
    sandbox.link("l", "a.txt")
    sandbox.commit()
    root = show(proving, sandbox)
    times = os.stat(root / "a.txt")
    (root / "a.txt").write_text("bbb\n")  # as long, and with the old time
    os.utime(root / "a.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    (root / "b.txt").unlink()
    os.chmod(root / "c.txt", 0o755)
    subprocess.run(["rm", "-r", str(root / "d")], check=True)
    (root / "d").symlink_to("/tmp")
    (root / "l").unlink()
    (root / "l").write_text("no link\n")
    assert proving.restore() == ("a.txt", "b.txt", "c.txt", "d/e.txt", "l")
    assert shown(proving) == {"a.txt": b"aaa\n", "b.txt": b"b\n", "c.txt": b"c\n", "d/e.txt": b"e\n", "l": b"aaa\n"}
    assert proving.restore() == ()


def test_a_file_that_is_only_touched_is_not_changed(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    os.utime(root / "a.txt", (1, 1))
    assert proving.restore() == ()


def test_outputs_stay_for_the_next_check_and_go_with_the_next_tree(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    for path in ("out.txt", "build/deep/x", "cache/kept"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("made by a check\n")
    assert proving.restore() == ()
    show(proving, sandbox)
    assert (root / "out.txt").exists()
    sandbox.write_all({"a.txt": "b\n"})
    sandbox.commit()
    show(proving, sandbox)
    assert set(shown(proving)) == {"a.txt", "cache/kept"}


def test_a_changed_file_is_newer_than_each_output_that_stays(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    (root / "cache").mkdir()
    (root / "cache/out").write_text("x\n")
    ahead = os.stat(root / "a.txt").st_mtime_ns + 5_000_000_000
    os.utime(root / "cache/out", ns=(ahead, ahead))
    sandbox.write_all({"a.txt": "b\n"})
    sandbox.commit()
    show(proving, sandbox)
    assert os.stat(root / "a.txt").st_mtime_ns > ahead


def test_git_works_in_it_without_the_user_s_refs_hooks_and_settings(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    parent = sandbox.commit()
    sandbox.git("tag", "v1")
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
    assert git("describe", "--tags").strip() == "v1"
    assert git("for-each-ref", "--format=%(refname)").split() == ["refs/tags/v1"]
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


def test_it_is_outside_the_repository_and_below_no_manifest(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Node, pytest and cargo search the folders above."""
    state, repository = tmp_path / "state", discover.find(str(sandbox.root))
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    assert proving_folders.place(repository).startswith(f"{state}/idumb-proving/")
    (tmp_path / "package.json").write_text("{}\n")
    assert proving_folders.place(repository).startswith("/var/tmp/idumb-proving-")
    (tmp_path / "package.json").unlink()
    (state / "idumb-proving").mkdir(parents=True)
    (state / "idumb-proving").chmod(0o777)  # another user could write there
    assert proving_folders.place(repository).startswith("/var/tmp/idumb-proving-")
    monkeypatch.setenv("XDG_STATE_HOME", str(sandbox.root / "state"))
    assert proving_folders.place(repository).startswith("/var/tmp/idumb-proving-")


def test_closing_removes_it_and_the_next_command_removes_that_of_a_killed_one(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    code = (
        "import sys; from idumb.git import discover, proving_folders, proving_tree\n"
        "place = discover.find(sys.argv[1])\n"
        "made = proving_tree.ProvingTree(place, proving_folders.place(place)); made.show(sys.argv[2], None)\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = [sys.executable, "-c", code, str(sandbox.root), tree(sandbox)]
    subprocess.run(killed, check=False)
    assert len(list((tmp_path / "state").rglob("a.txt"))) == 1
    GitHistory(discover.find(str(sandbox.root))).remove_stale_files(None)
    assert not (tmp_path / "state" / "idumb-proving").exists()
    subprocess.run(killed, check=False)
    first, second = (create(sandbox) for _ in range(2))
    show(first, sandbox)
    show(second, sandbox)
    assert first.root != second.root
    assert len(list((tmp_path / "state").rglob("a.txt"))) == 2
    proving_folders.clear()
    assert len(list((tmp_path / "state").rglob("a.txt"))) == 2
    first.close()
    second.close()
    assert not (tmp_path / "state" / "idumb-proving").exists()


def test_provided_paths_are_those_of_the_user(sandbox: GitSandbox) -> None:
    sandbox.write_all({"a.txt": "a\n", "packages/own/index.js": "committed\n", ".gitignore": "node_modules\ndata\n"})
    sandbox.commit()
    sandbox.write_all({"node_modules/lib/index.js": "lib\n", "node_modules/@s/lib/index.js": "s\n", "data/x": "x\n"})
    sandbox.link("node_modules/own", "../packages/own")
    sandbox.link("node_modules/@s/own", "../../packages/own")
    sandbox.link("node_modules/.bin/own", "../own/index.js")
    sandbox.write_all({"packages/own/index.js": "not committed\n"})
    proving = create(sandbox, provided=("node_modules", "data/", "missing"))
    root = show(proving, sandbox)
    assert (root / "node_modules/lib/index.js").read_text() == "lib\n"
    assert (root / "node_modules/@s/lib/index.js").read_text() == "s\n"
    assert (root / "node_modules/own/index.js").read_text() == "committed\n"
    assert (root / "node_modules/@s/own/index.js").read_text() == "committed\n"
    assert (root / "node_modules/.bin/own").read_text() == "committed\n"
    assert (root / "data/x").read_text() == "x\n"
    sandbox.write_all({"a.txt": "b\n"})
    sandbox.git("commit", "-qm", "next", "a.txt")
    show(proving, sandbox)
    assert (root / "data/x").read_text() == "x\n"
    proving.close()
    assert sandbox.read("data/x") == "x\n"
    assert sandbox.read("node_modules/lib/index.js") == "lib\n"


def test_packages_above_the_repository_are_found_as_they_were_before_the_work(tmp_path: Path) -> None:
    """Node searches the folders above; a builder that installs something there proves nothing with it."""
    nearest, farther = tmp_path / "above" / "node_modules", tmp_path / "node_modules"
    for folder, names in ((nearest, ("near", "@s/near")), (farther, ("near", "far", "@s/far"))):
        for name in names:
            (folder / name).mkdir(parents=True)
            (folder / name / "index.js").write_text(f"{folder}\n")
    sandbox = GitSandbox.create(nearest.parent / "repo")
    sandbox.write_all({"packages/own/index.js": "committed\n"})
    sandbox.commit()
    (nearest / "own").symlink_to(sandbox.root / "packages/own")
    proving = create(sandbox)
    (nearest / "later").mkdir()
    sandbox.write_all({"packages/own/index.js": "not committed\n"})
    above = show(proving, sandbox).parent / "node_modules"
    for name, folder in (("near", nearest), ("@s/near", nearest), ("far", farther), ("@s/far", farther)):
        assert (above / name / "index.js").read_text() == f"{folder}\n"
    assert (above / "own/index.js").read_text() == "committed\n"
    assert not (above / "later").exists()
    proving.close()
    assert (nearest / "near/index.js").exists()


def test_an_editable_install_leads_to_the_tree_not_to_the_user_s_folder(sandbox: GitSandbox) -> None:
    """A virtual environment of the project usually has one; the check would judge the folder again."""
    sandbox.write_all({"src/own/__init__.py": "", "flat.py": "", ".gitignore": ".venv\n"})
    sandbox.commit()
    site = ".venv/lib/python3.11/site-packages"
    finder = f"MAPPING: dict[str, str] = {{'own': {str(sandbox.root / 'src/own')!r}}}\n"
    sandbox.write_all(
        {
            ".venv/pyvenv.cfg": "",
            f"{site}/__editable__.own.pth": "import __editable___own_finder; __editable___own_finder.install()\n",
            f"{site}/__editable___own_finder.py": finder,
            f"{site}/flat.pth": f"{sandbox.root}\n/usr/lib\n",
        }
    )
    proving = create(sandbox, provided=(".venv",))
    variables = proving.show(tree(sandbox), None)
    assert variables["PYTHONPATH"].split(":") == [f"{proving.root}/src", f"{proving.root}/."]
    sandbox.write(f"{site}/odd.pth", f"import sys; sys.path.append({str(sandbox.root / 'src')!r})\n")
    with pytest.raises(Refusal, match=r"odd\.pth leads Python to your own folder"):
        proving.show(tree(sandbox), None)
    proving.close()


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


def test_links_of_the_tree_lead_no_provided_path_elsewhere(sandbox: GitSandbox, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    sandbox.write_all({"web/node_modules/pkg/index.js": "x\n", "other/data/x": "x\n"})
    sandbox.write(".gitignore", "node_modules\n/other/data\n")
    made = create(sandbox, provided=("web/node_modules", ".git/hooks", "other/data"))
    blob = sandbox.git("hash-object", "-w", "--stdin", given=os.fsencode(tmp_path / "elsewhere")).strip()
    sandbox.git("update-index", "--add", "--cacheinfo", f"120000,{blob},web")
    sandbox.git("add", ".gitignore")
    sandbox.git("commit", "-qm", "a link")
    root = show(made, sandbox)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (root / ".git/hooks").exists()
    assert (root / "other/data/x").read_text() == "x\n"
    made.close()
    assert sandbox.read("other/data/x") == "x\n"


def test_a_check_that_replaces_it_by_a_link_leads_idumb_nowhere(
    sandbox: GitSandbox, proving: ProvingTree, tmp_path: Path
) -> None:
    """Otherwise idumb would remove there what the tree does not hold."""
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    own = {"a.txt": "mine\n", "precious.txt": "mine\n", ".git/config": "mine\n"}
    for depth in range(3):
        users = tmp_path / f"user{depth}"
        root = show(proving, sandbox)
        at = [root, root.parent, root.parent.parent][depth]
        below = root.relative_to(at)
        for path, text in own.items():
            (users / below / path).parent.mkdir(parents=True, exist_ok=True)
            (users / below / path).write_text(text)
        at.rename(tmp_path / f"moved{depth}")
        at.symlink_to(users)
        assert proving.restore() == ("a.txt",)
        show(proving, sandbox)
        assert shown(proving) == {"a.txt": b"a\n"}
        assert {path: (users / below / path).read_text() for path in own} == own


def test_what_a_check_puts_beside_it_is_removed_and_never_followed(
    sandbox: GitSandbox, proving: ProvingTree, tmp_path: Path
) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("mine\n")
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    (root.parent / "verified").unlink()
    (root.parent / "verified").symlink_to(precious)
    (root.parent / "node_modules/helper").mkdir(parents=True)
    (root.parent / "conftest.py").write_text("")
    assert proving.restore() == ()
    sandbox.write_all({"a.txt": "b\n"})
    sandbox.commit()
    show(proving, sandbox)
    assert precious.read_text() == "mine\n"
    assert sorted(os.listdir(root.parent)) == ["verified", "work"]


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


def test_a_link_among_the_folders_of_proving_trees_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "mine/1").mkdir(parents=True)
    (tmp_path / "state/idumb-proving").mkdir(parents=True, mode=0o700)
    (tmp_path / "state/idumb-proving/x").symlink_to(tmp_path / "mine")
    proving_folders.clear()
    assert (tmp_path / "mine/1").exists()


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


def test_a_file_that_is_linked_elsewhere_is_a_file_of_its_own_again(
    sandbox: GitSandbox, proving: ProvingTree, tmp_path: Path
) -> None:
    """Otherwise the next check could write through it into another file, or another program into the tree."""
    sandbox.write_all({"a.txt": "a\n", "run.sh": "#!/bin/sh\n"})
    os.chmod(sandbox.root / "run.sh", 0o755)
    sandbox.commit()
    root = show(proving, sandbox)
    for name in ("a.txt", "run.sh"):
        os.link(root / name, tmp_path / name)
    assert proving.restore() == ()
    assert [(root / name).stat().st_nlink for name in ("a.txt", "run.sh")] == [1, 1]
    assert os.access(root / "run.sh", os.X_OK)


def test_a_write_through_memory_is_found_although_it_leaves_no_time(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not os.path.isdir("/dev/shm"):
        pytest.skip("no file system in memory")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="idumb-test-") as folder:
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        sandbox.write_all({"a.txt": "a\n"})
        sandbox.commit()
        proving = create(sandbox)
        root = show(proving, sandbox)
        assert str(root).startswith(folder)
        with (root / "a.txt").open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as mapped:
            assert mapped[0] == ord("a")  # pages that were read are written without a stamp
            started = (root / "a.txt").stat().st_ctime_ns
            while (root.parent / "verified").stat().st_ctime_ns < started + 25_000_000:
                assert proving.restore() == ()
            mapped[0] = ord("b")
        assert proving.restore() == ("a.txt",)
        assert shown(proving) == {"a.txt": b"a\n"}
        proving.close()


def test_a_full_disk_is_one_clear_line_and_nothing_of_the_user_changes(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The tree is written again as soon as there is room."""
    small = tmp_path / "small"
    small.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "x", small], check=False).returncode:
        pytest.skip("only root can mount a small file system")
    try:
        monkeypatch.setenv("XDG_STATE_HOME", str(small))
        sandbox.write_all({"a.txt": "a\n", "big.bin": b"x" * 100_000})
        sandbox.commit()
        before = sandbox.ledger()
        proving = create(sandbox)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left") as full:
                show(proving, sandbox)
            assert full.value.errno == errno.ENOSPC
            assert full.value.filename == proving.root
        assert sandbox.ledger().changed_paths(before) == []
        subprocess.run(["mount", "-o", "remount,size=1m", small], check=True)
        show(proving, sandbox)
        assert set(shown(proving)) == {"a.txt", "big.bin"}
        proving.close()
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_a_folder_that_is_swapped_while_files_are_written_leads_nowhere_else(tmp_path: Path) -> None:
    """A process that escaped its check can swap folders at any moment."""
    root, precious = tmp_path / "root", tmp_path / "precious"
    (root / "d/e").mkdir(parents=True)
    precious.mkdir()
    status = root.stat()
    folders = proving_files.OpenFolders(str(root), (status.st_dev, status.st_ino))
    at = folders.at("d/e")
    (root / "d/e").rename(tmp_path / "moved")
    (root / "d/e").symlink_to(precious)
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=at))
    assert [path.name for path in (tmp_path / "moved").iterdir()] == ["file"]
    assert folders.at("") != folders.at("d")
    with pytest.raises(OSError, match="e"):
        folders.at("d/e")
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folders.at("d/e", make=True)))
    assert [path.name for path in (root / "d/e").iterdir()] == ["file"]
    folders.close()
    assert list(precious.iterdir()) == []
    root.rename(tmp_path / "away")
    root.mkdir()
    with pytest.raises(NotADirectoryError):
        proving_files.OpenFolders(str(root), (status.st_dev, status.st_ino))


@pytest.mark.parametrize("is_dangling", ["", "dangling"])
def test_a_scope_of_packages_that_is_a_link_is_linked_as_it_is(tmp_path: Path, is_dangling: str) -> None:
    """Farther packages of the same scope are not written through it into the user's folder."""
    nearest, farther = tmp_path / "above" / "node_modules", tmp_path / "node_modules"
    (farther / "@s/far").mkdir(parents=True)
    nearest.mkdir(parents=True)
    (nearest / "@s").symlink_to(tmp_path / "scope")
    if not is_dangling:
        (tmp_path / "scope").mkdir()
    sandbox = GitSandbox.create(nearest.parent / "repo")
    sandbox.write_all({"a.txt": "a\n", ".gitignore": "node_modules\n"})
    sandbox.commit()
    sandbox.write("node_modules/@s/own/index.js", "own\n")
    proving = create(sandbox, provided=("node_modules",))
    root = show(proving, sandbox)
    assert os.readlink(root.parent / "node_modules/@s") == str(nearest / "@s")
    assert (root / "node_modules/@s/own/index.js").read_text() == "own\n"
    assert is_dangling or list((tmp_path / "scope").iterdir()) == []
    proving.close()


def test_a_link_of_the_tree_in_place_of_a_scope_stays(sandbox: GitSandbox) -> None:
    sandbox.write(".gitignore", "node_modules/*\n!node_modules/@s\n")
    sandbox.link("node_modules/@s", "../missing")
    sandbox.git("add", "-A")
    sandbox.git("commit", "-qm", "a dangling link")
    sandbox.remove("node_modules/@s")
    sandbox.write("node_modules/@s/own/index.js", "own\n")
    proving = create(sandbox, provided=("node_modules",))
    assert os.readlink(show(proving, sandbox) / "node_modules/@s") == "../missing"
    proving.close()
