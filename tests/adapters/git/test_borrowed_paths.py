"""A check cannot damage what the user provides; see idumb/git/borrowed_paths.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from idumb.app.ports.checks import COPIED, LINKED, PROTECTED, Borrowed
from idumb.git import borrowed_paths, path_copies
from idumb.git.borrowed_paths import BorrowedPaths
from idumb.git.path_copies import PathCopies
from idumb.system.processes import private_layers

_DESTROY = 'rm -rf {0}/* {0}/.[!.]*; echo new > {0}/new; cd {0} && rm -rf "$PWD"/* "$(pwd -P)"/*; true'


class Folders:
    """A user's working tree with a folder and a file that git ignores, and the empty working tree of checks."""

    def __init__(self, top: Path) -> None:
        self.user, self.tree = top / "user", top / "proving" / "work"
        for folder in (self.user / "node_modules/lib", self.tree):
            folder.mkdir(parents=True)
        (self.user / "node_modules/lib/index.js").write_text("lib\n")
        (self.user / "node_modules/.package-lock.json").write_text("{}\n")
        (self.user / "data.db").write_text("data\n")

    def borrowing(self, *shared: str) -> BorrowedPaths:
        return BorrowedPaths(str(self.user), str(self.tree), shared)

    def content(self) -> dict[str, str]:
        files = (path for path in self.user.rglob("*") if path.is_file())
        return {str(path.relative_to(self.user)): path.read_text() for path in files}

    def run(self, borrowed: BorrowedPaths, command: str) -> subprocess.CompletedProcess[str]:
        argv = [*borrowed.now.launcher, "/bin/sh", "-c", command]
        return subprocess.run(argv, cwd=self.tree, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def _no_mounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_layers, "command", lambda *_: ())


def _mounts(_: pytest.MonkeyPatch) -> None:
    program = (
        "import ctypes, os; raise SystemExit(ctypes.CDLL(None).unshare(0x20000 | (0x10000000 if os.getuid() else 0)))"
    )
    if sys.platform != "linux" or subprocess.run([sys.executable, "-c", program], check=False).returncode:
        pytest.skip("this machine allows no mounts of one's own")


@pytest.mark.parametrize(("machine", "way"), [(_mounts, PROTECTED), (_no_mounts, COPIED)])
def test_a_check_that_deletes_everything_it_reaches_leaves_the_user_s_bytes(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, machine: Callable[[pytest.MonkeyPatch], None], way: str
) -> None:
    machine(monkeypatch)
    before = folders.content()
    borrowed = folders.borrowing()
    borrowed.bring(["node_modules", "data.db"])
    assert borrowed.now.ways == {"node_modules": way, "data.db": COPIED}
    done = folders.run(borrowed, "cat node_modules/lib/index.js data.db && echo x >> node_modules/lib/index.js")
    assert (done.returncode, done.stdout) == (0, "lib\ndata\n")
    for path in ("node_modules/lib", "node_modules"):
        folders.run(borrowed, _DESTROY.format(path))
    folders.run(borrowed, "rm -f data.db; echo mine > data.db")
    assert folders.content() == before
    borrowed.bring(["node_modules", "data.db"])
    assert folders.run(borrowed, "cat node_modules/lib/index.js data.db; ls -A node_modules").stdout.split() == [
        *("lib", "data", ".package-lock.json", "lib")
    ]
    assert folders.content() == before


def test_a_check_reaches_a_protected_folder_by_its_own_path_only_to_read(folders: Folders) -> None:
    """A program of a virtual environment names the folder in its first line, and would change it there."""
    _mounts(pytest.MonkeyPatch())
    borrowed = folders.borrowing()
    borrowed.bring(["node_modules"])
    own = folders.user / "node_modules"
    done = folders.run(borrowed, f"echo x > {own}/lib/index.js; echo y > {own}/lib/y; cat {own}/lib/y")
    assert (done.returncode, done.stdout) == (0, "y\n")
    assert folders.content()["node_modules/lib/index.js"] == "lib\n"
    assert not (own / "lib/y").exists()
    later = folders.run(borrowed, "cat node_modules/lib/y")
    assert later.stdout == "y\n", "a later check of the same task sees what an earlier one left"


@pytest.fixture
def reachable() -> Iterator[Path]:
    """Return a folder that other users can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_another_user_than_root_is_protected_too(reachable: Path) -> None:
    _mounts(pytest.MonkeyPatch())
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; the other tests run as one")
    folders = Folders(reachable)
    borrowed = folders.borrowing()
    borrowed.bring(["node_modules"])
    shutil.rmtree(folders.tree.parent / borrowed_paths.LAYERS)
    subprocess.run(["chown", "-R", "65534:65534", reachable], check=True)
    before = folders.content()
    program = "/usr/bin/python3"
    if not os.access(program, os.X_OK):
        pytest.skip("other users may not be able to start this Python")
    script = shutil.copy(private_layers.__file__, reachable)
    launcher = [script if word == os.path.abspath(private_layers.__file__) else word for word in borrowed.now.launcher]
    argv = [
        program,
        *launcher[1:],
        "/bin/sh",
        "-c",
        "id -u; umount ../../user/*; " + _DESTROY.format("node_modules/lib"),
    ]
    done = subprocess.run(
        argv, cwd=folders.tree, capture_output=True, text=True, timeout=60, check=False, user=65534, group=65534
    )
    assert done.stdout.startswith("65534\n"), done.stderr
    assert "could not protect" not in done.stderr
    assert folders.content() == before


def test_a_package_that_is_a_link_to_another_project_is_protected_too(folders: Folders, tmp_path: Path) -> None:
    _mounts(pytest.MonkeyPatch())
    (tmp_path / "other").mkdir()
    (tmp_path / "other/index.js").write_text("other\n")
    (folders.user / "node_modules/other").symlink_to("../../other")
    borrowed = folders.borrowing()
    borrowed.bring(["node_modules"])
    done = folders.run(borrowed, "cat node_modules/other/index.js; rm node_modules/other/*; ls node_modules/other")
    assert done.stdout == "other\n"
    assert (tmp_path / "other/index.js").read_text() == "other\n"


def test_without_mounts_a_package_elsewhere_is_named_as_linked(
    folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _no_mounts(monkeypatch)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/index.js").write_text("other\n")
    (folders.user / "node_modules/other").symlink_to("../../other")
    borrowed = folders.borrowing()
    borrowed.bring(["node_modules"])
    assert borrowed.now.ways == {"node_modules": COPIED, "node_modules/other": LINKED}
    for _ in range(2):
        assert folders.run(borrowed, "cat node_modules/other/index.js").stdout == "other\n"
        borrowed.bring(["node_modules"])


@pytest.mark.parametrize(("machine", "linked"), [(_mounts, []), (_no_mounts, ["data/file", "data/other"])])
def test_links_in_a_provided_folder_lead_no_check_to_the_user_s_bytes_unnamed(
    folders: Folders,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    machine: Callable[[pytest.MonkeyPatch], None],
    linked: list[str],
) -> None:
    machine(monkeypatch)
    elsewhere = tmp_path / "elsewhere"
    for folder in (elsewhere, folders.user / "src", folders.user / "data/v1"):
        folder.mkdir(parents=True)
        (folder / "file").write_text("mine\n")
    for name, target in (
        *(("other", "../../elsewhere"), ("file", elsewhere / "file"), ("src", "../src")),
        *(("source", folders.user / "src"), ("now", folders.user / "data/v1")),
    ):
        (folders.user / "data" / name).symlink_to(target)
    before = folders.content()
    borrowed = folders.borrowing()
    borrowed.bring(["data"])
    assert sorted(name for name, way in borrowed.now.ways.items() if way == LINKED) == linked
    assert folders.run(borrowed, "cat data/now/file data/other/file data/file").stdout == "mine\n" * 3
    names = ["now", "src", "source", *(() if linked else ("other",))]
    folders.run(borrowed, "".join(f"rm -f data/{name}/*;" for name in names) + ("" if linked else "echo x > data/file"))
    assert folders.content() == before
    assert (elsewhere / "file").read_text() == "mine\n"


def test_a_folder_with_too_many_links_is_named_as_linked(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(borrowed_paths, "_MOST_LINKS", 1)
    (folders.user / "data").mkdir()
    for name in "abc":
        (folders.user / "data" / name).symlink_to("/etc")
    borrowed = folders.borrowing()
    borrowed.bring(["data"])
    assert borrowed.now.ways == {"data": LINKED}


def test_a_copy_omits_what_goes_meanwhile_or_cannot_be_read(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    _no_mounts(monkeypatch)
    gone, copy = folders.user / "node_modules/lib/gone", PathCopies._copy
    gone.write_text("x\n")

    def copied(copies: PathCopies, source: str, *rest: Any) -> None:
        gone.unlink(missing_ok=True)
        copy(copies, source, *rest)

    def listed(folder: str) -> Any:
        if folder.endswith("data/"):
            raise PermissionError(folder)
        return scandir(folder)

    scandir = os.scandir
    (folders.user / "data").mkdir()
    monkeypatch.setattr(PathCopies, "_copy", copied)
    monkeypatch.setattr(os, "scandir", listed)
    borrowed = folders.borrowing()
    borrowed.bring(["node_modules", "data"])
    assert borrowed.now.ways == {"node_modules": COPIED, "data": COPIED}
    assert folders.run(borrowed, "ls node_modules/lib").stdout == "index.js\n"


def test_what_is_too_large_for_a_copy_is_linked_without_mounts(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    _no_mounts(monkeypatch)
    monkeypatch.setattr(path_copies, "MOST_BYTES", 5)
    borrowed = folders.borrowing()
    borrowed.bring(["node_modules", "data.db"])
    assert borrowed.now.ways == {"node_modules": LINKED, "data.db": COPIED}
    assert (folders.tree / "node_modules/lib").is_symlink()


def test_a_large_file_is_read_only(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    _mounts(monkeypatch)
    monkeypatch.setattr(path_copies, "MOST_BYTES", 1)
    borrowed = folders.borrowing()
    borrowed.bring(["data.db"])
    assert borrowed.now.ways == {"data.db": PROTECTED}
    done = folders.run(borrowed, "cat data.db; echo x > data.db")
    assert (done.stdout, done.returncode != 0) == ("data\n", True)
    assert "Read-only file system" in done.stderr
    assert (folders.user / "data.db").read_text() == "data\n"


def test_shared_paths_are_linked(folders: Folders) -> None:
    borrowed = folders.borrowing("node_modules/", "data.db")
    borrowed.bring(["node_modules/", "data.db"])
    assert borrowed.now == Borrowed({"node_modules": LINKED, "data.db": LINKED})
    folders.run(borrowed, "echo x > data.db")
    assert (folders.user / "data.db").read_text() == "x\n"


def test_a_folder_around_the_tree_is_only_linked(folders: Folders) -> None:
    (folders.user / "all").symlink_to(folders.user.parent)
    borrowed = folders.borrowing()
    borrowed.bring(["all"])
    assert borrowed.now.ways["all"] == LINKED


def test_mounts_that_fail_let_no_check_run(folders: Folders) -> None:
    """Nothing may run without the protection that the evidence names."""
    argv = [*private_layers.command([str(folders.user / "missing/x")], str(folders.tree / "l")), "/bin/echo", "ran"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (126, "")
    assert "idumb could not protect your files from this check" in done.stderr


def test_a_copy_follows_the_original_by_the_difference(tmp_path: Path) -> None:
    source, target, copies = tmp_path / "s", tmp_path / "t", PathCopies(str(tmp_path / "s"))
    for name in ("keep", "change", "go", "deep/x"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(f"{name}\n")
        os.utime(source / name, ns=(1, 1))
    (source / "link").symlink_to("keep")
    os.mkfifo(source / "pipe")
    copies.bring(str(source), str(target))
    assert sorted(path.name for path in target.rglob("*")) == ["change", "deep", "go", "keep", "link", "x"]
    assert (target / "keep").stat().st_mtime_ns == 1
    (source / "change").write_text("other\n")
    (source / "go").unlink()
    (source / "new").write_text("new\n")
    (target / "keep").write_text("KEEP\n")  # as a check may, with the same size and time
    os.utime(target / "keep", ns=(1, 1))
    (target / "extra").mkdir()
    (target / "deep/x").unlink()
    (target / "link").unlink()
    copies.bring(str(source), str(target))
    assert {p.name: p.read_text() for p in target.rglob("*") if p.is_file()} == {
        "keep": "keep\n",
        "change": "other\n",
        "new": "new\n",
        "x": "deep/x\n",
        "link": "keep\n",
    }
    assert not (target / "extra").exists()
    (target / "deep/x").unlink()
    (target / "deep").rmdir()
    (target / "deep").symlink_to(source / "deep")  # what is written or removed below would be the original
    copies.bring(str(source), str(target))
    assert (target / "deep/x").read_text() == (source / "deep/x").read_text() == "deep/x\n"
    assert not (target / "deep").is_symlink()


def test_programs_of_a_copied_environment_start_its_own_python(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise `pip install` in a check would change the user's environment."""
    _no_mounts(monkeypatch)
    environment = folders.user / ".venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n")
    (environment / "bin/python").symlink_to(os.path.realpath(sys.executable))
    (environment / "bin/where").write_text(f"#!{environment}/bin/python\nimport sys; print(sys.prefix)\n")
    (environment / "bin/where").chmod(0o755)
    borrowed = folders.borrowing()
    borrowed.bring([".venv"])
    assert borrowed.now.ways == {".venv": COPIED}
    assert folders.run(borrowed, ".venv/bin/where").stdout == f"{folders.tree}/.venv\n"


def test_files_of_the_tree_stay_where_the_user_s_folder_has_others(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    _no_mounts(monkeypatch)
    for top, name in (
        (folders.user, "vendor/kept.txt"),
        (folders.user, "vendor/lib/x"),
        (folders.tree, "vendor/kept.txt"),
    ):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(f"{top.name}\n")
    borrowed = folders.borrowing()
    for _ in range(2):
        borrowed.bring(["vendor"])
        assert (folders.tree / "vendor/kept.txt").read_text() == "work\n"
        assert (folders.tree / "vendor/lib/x").read_text() == "user\n"
        (folders.tree / "vendor/lib/x").write_text("changed\n")
    assert borrowed.kept == {"vendor/lib"}
    (folders.tree / "vendor").rename(folders.tree / "moved")
    (folders.tree / "vendor").symlink_to(folders.user / "vendor")
    borrowed.bring([])
    assert (folders.user / "vendor/lib/x").read_text() == "user\n", "a check cannot make idumb remove it"
    (folders.tree / "vendor").unlink()
    (folders.tree / "moved").rename(folders.tree / "vendor")
    borrowed.bring(["vendor"])
    borrowed.bring([])
    assert not (folders.tree / "vendor/lib").exists()
    assert borrowed_paths.LAYERS not in {path.name for path in folders.user.iterdir()}


def test_the_places_of_a_launcher_are_where_the_program_has_layers() -> None:
    launcher = (*private_layers.views({"/tree/home": "/home"}, "/v"), *private_layers.command(["/a", "/b"], "/l"))
    assert private_layers.places(launcher) == ("/tree/home", "/a", "/b")
    assert private_layers.places(("/bin/sh", "--")) == private_layers.places(()) == ()
