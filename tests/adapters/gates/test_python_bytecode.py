"""Bytecode reaches a check only if no builder and no check of the run can have written it (R-RUN-3)."""

from __future__ import annotations

import mmap
import os
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from idumb.domain.settings import PRIVATE_HOME
from idumb.gates.check_environment import CheckEnvironment, Inputs
from idumb.gates.checks import ShellChecks
from idumb.gates.python_bytecode import Bytecode
from idumb.system.files import private_folders

LATER = 1 << 62
"""Nanoseconds: a run that starts so much later finds what these tests write older than itself."""
TAG = sys.implementation.cache_tag


@pytest.fixture(autouse=True)
def usual_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's bytecode lies beside its source, even if these tests keep theirs elsewhere."""
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)


class Prefix:
    """A folder as PYTHONPYCACHEPREFIX, and a library outside the tree whose bytecode the user has."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "prefix"
        self.root = folder / "tree"
        self.library = folder / "library"
        for each in (self.path, self.root, self.library):
            each.mkdir(parents=True)

    def module(self, name: str, folder: Path | None = None) -> Path:
        """Write a module with the user's bytecode; return where a check has its bytecode."""
        source = (folder or self.library) / f"{name}.py"
        source.write_text("VALUE = 1\n")
        py_compile.compile(str(source))
        return self.place(source)

    def place(self, source: Path) -> Path:
        return Path(f"{self.path}{source.parent}", f"{source.stem}.{TAG}.pyc")

    def forge(self, place: Path, content: bytes = b"forged") -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)

    def users(self, name: str) -> bytes:
        return (self.library / f"__pycache__/{name}.{TAG}.pyc").read_bytes()

    def clean(self, bytecode: Bytecode) -> None:
        bytecode.clean(str(self.path), str(self.root))

    def files(self) -> set[Path]:
        return {Path(at, name) for at, _, names in os.walk(self.path) for name in names}


@pytest.fixture
def prefix(tmp_path: Path) -> Prefix:
    return Prefix(tmp_path)


def now(place: Path) -> int:
    """Return the file system's own time in nanoseconds."""
    marker = place.with_suffix(".now")
    marker.touch()
    written = marker.stat().st_ctime_ns
    marker.unlink()
    return written


def later() -> Bytecode:
    return Bytecode(LATER)


def test_bytecode_that_is_older_than_the_run_replaces_what_a_check_compiled(prefix: Prefix) -> None:
    place = prefix.module("old")
    prefix.forge(place)
    prefix.clean(later())
    assert place.read_bytes() == prefix.users("old")
    assert place.stat().st_nlink == 1


def test_bytecode_of_the_run_or_of_a_source_of_the_run_is_compiled_again(prefix: Prefix) -> None:
    place = prefix.module("new")
    prefix.forge(place)
    prefix.clean(Bytecode(now(place.parent)))
    assert prefix.files() == set()
    files = prefix.library / "new.py", prefix.library / f"__pycache__/new.{TAG}.pyc"
    for older, newer in (files, files[::-1]):
        while newer.stat().st_ctime_ns <= older.stat().st_ctime_ns:  # a builder sets the old time of a file again
            os.utime(newer, ns=(newer.stat().st_atime_ns, newer.stat().st_mtime_ns))
        prefix.forge(place)
        prefix.clean(Bytecode(older.stat().st_ctime_ns + 10_000_000_001))
        assert prefix.files() == set()


def test_the_tree_s_own_modules_are_compiled_again(prefix: Prefix) -> None:
    for place in (prefix.module("own", prefix.root), prefix.place(prefix.library / "unknown.py")):
        prefix.forge(place)
    prefix.clean(later())
    assert prefix.files() == set()
    assert list(prefix.path.iterdir()) == []


def test_a_provided_environment_in_the_tree_is_the_user_s(prefix: Prefix) -> None:
    prefix.module("lib")
    (prefix.root / ".venv").symlink_to(prefix.library)
    place = prefix.place(prefix.root / ".venv" / "lib.py")
    prefix.forge(place)
    prefix.clean(later())
    assert place.read_bytes() == prefix.users("lib")


def test_bytecode_of_other_bytes_than_the_source_s_is_not_taken(prefix: Prefix) -> None:
    place = prefix.module("stale")
    (prefix.library / "stale.py").write_text("VALUE = 22\n")
    prefix.forge(place)
    prefix.clean(later())
    assert prefix.files() == set()


@pytest.mark.parametrize("settled", ["", "settled"])
def test_what_a_check_changes_is_replaced(prefix: Prefix, settled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_folders, "hides_writes", lambda _: not settled)  # TMPDIR may be in memory, or not
    place, bytecode = prefix.module("kept"), later()
    prefix.forge(place)
    prefix.clean(bytecode)
    written = place.stat()
    while settled and now(prefix.library) < written.st_ctime_ns + 25_000_000:
        prefix.clean(bytecode)
    assert place.stat().st_ino == written.st_ino
    place.write_bytes(bytes(written.st_size))
    os.utime(place, ns=(written.st_atime_ns, written.st_mtime_ns))
    prefix.clean(bytecode)
    assert place.read_bytes() == prefix.users("kept")


def test_a_source_that_changes_later_is_compiled_again(prefix: Prefix) -> None:
    place, bytecode = prefix.module("later"), later()
    prefix.forge(place)
    prefix.clean(bytecode)
    (prefix.library / "later.py").write_text("VALUE = 22\n")
    prefix.clean(bytecode)
    assert prefix.files() == set()


def test_links_are_not_followed(prefix: Prefix, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (precious / "inner").mkdir(parents=True)
    (precious / "inner/file").write_text("mine\n")
    place = prefix.module("linked")
    place.parent.mkdir(parents=True)
    place.symlink_to(precious / "inner/file")
    (prefix.path / "folder").symlink_to(precious)
    prefix.clean(later())
    assert (precious / "inner/file").read_text() == "mine\n"
    assert {path for path in prefix.files() if path.is_symlink()} == set()
    prefix.path.rename(tmp_path / "moved")
    prefix.path.symlink_to(precious)
    with pytest.raises(OSError, match="prefix"):
        prefix.clean(later())
    assert (precious / "inner/file").read_text() == "mine\n"


@pytest.fixture
def memory() -> Iterator[Path]:
    folder = Path("/dev/shm", f"idumb-test-{os.getpid()}")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("no file system in memory")
    yield folder
    for at, folders, names in os.walk(folder, topdown=False):
        for name in names:
            os.unlink(os.path.join(at, name))
        for name in folders:
            os.rmdir(os.path.join(at, name))
    folder.rmdir()


def test_a_write_through_memory_is_found_although_it_leaves_no_time(memory: Path) -> None:
    prefix, bytecode = Prefix(memory), later()
    place = prefix.module("mapped")
    prefix.forge(place)
    prefix.clean(bytecode)
    with place.open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as mapped:
        assert mapped[20] is not None  # pages that were read are written without a stamp
        until = now(prefix.library) + 25_000_000
        while now(prefix.library) < until:
            prefix.clean(bytecode)
        mapped[20] = mapped[20] ^ 1
        mapped.flush()
    prefix.clean(bytecode)
    assert place.read_bytes() == prefix.users("mapped")


def test_a_check_cannot_decide_what_the_next_one_imports(tmp_path: Path, home: Path) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "forge.py").write_text(
        "import colorsys, importlib.util, os, py_compile\n"
        "place = colorsys.__cached__\n"
        "with open('other.py', 'w') as other: other.write('FORGED = 1\\n')\n"
        "header = open(place, 'rb').read(16)\n"
        "py_compile.compile('other.py', 'other.pyc')\n"
        "with open(place, 'wb') as out: out.write(header + open('other.pyc', 'rb').read()[16:])\n"
    )
    inputs = Inputs(dict(os.environ), ("PATH",), str(home), (str(root),), home_of_checks=PRIVATE_HOME)
    environment = CheckEnvironment(inputs)
    checks = ShellChecks(str(root), ("PATH",), str, "run", private=environment)
    for command in (f"{sys.executable} forge.py", f"! {sys.executable} -c 'import colorsys; colorsys.FORGED'"):
        result = checks.command("AC-1", "it holds", command, timeout=60, tree="t" * 40)
        assert result.passed, result.output
    environment.close()
