"""A change of what decides which program or package a check runs is seen (R-RUN-3, T12)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from idumb.domain.proof.evidence import Evidence
from idumb.gates.check_environment import CheckEnvironment, Inputs
from idumb.gates.checks import ShellChecks
from tests.support.cases import every

ALLOWED = ("PATH", "HOME", "TMPDIR")
TREE = "7" * 40


class World:
    """A home with a toolchain, a repository, and the checks of a run in it."""

    def __init__(self, root: Path, home: Path) -> None:
        self.home, self.repository = home, root / "repo"
        self.repository.mkdir()
        self.bin = home / ".local" / "bin"
        self.bin.mkdir(parents=True)
        (self.bin / "python3").symlink_to(sys.executable)
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        self.packages = home / ".local" / "lib" / version / "site-packages"
        self.packages.mkdir(parents=True)
        (self.packages / "known.pth").write_text("# nothing\n")
        (home / ".cargo").mkdir()
        (home / ".cargo" / "config.toml").write_text("[build]\n")
        (home / ".npmrc").write_text("fund=false\n")
        (home / ".rustup").mkdir()
        (home / "work" / "node_modules" / "known").mkdir(parents=True)
        self.program("tool", "exit 0")
        self.program("unnamed", "exit 0")
        self.program("behind", "exit 0").rename(home / "behind")
        (self.bin / "linked").symlink_to(home / "behind")
        (home / "sdk-1" / "bin").mkdir(parents=True)
        (home / "sdk").symlink_to(home / "sdk-1")
        self.settle()

    def program(self, name: str, text: str) -> Path:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def settle(self) -> None:
        """Give all files times well in the past, as those of a real home have; a kernel sets the rest."""
        for path in sorted(self.home.rglob("*")):
            os.utime(path, ns=(10**18, 10**18), follow_symlinks=False)

    def start(self) -> Callable[[str], Evidence]:
        root = str(self.repository)
        environment = {"PATH": f"{self.bin}:{self.home}/sdk/bin:/usr/bin:/bin", "HOME": str(self.home)}
        above = (str(self.home), str(self.home / "work"))
        private = CheckEnvironment(Inputs(environment, ALLOWED, str(self.home), (root, f"{root}/.git"), above=above))
        private.watch(["tool", "python3", "missing-tool"])
        checks = ShellChecks(root, ALLOWED, str, "run", private=private)
        return lambda command: checks.command("AC-1", "", command, timeout=60, tree=TREE)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.fixture
def world(tmp_path: Path, home: Path, temporary: None) -> World:
    return World(tmp_path, home)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _removed(world: World) -> Path:
    path = world.home / ".npmrc"
    path.unlink()
    return path


def _same_size_and_times(world: World) -> Path:
    path = world.home / ".npmrc"
    before = path.stat()
    path.write_text("fund=trues\n"[: before.st_size - 1] + "\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return path


def _package(world: World) -> Path:
    return _write(world.packages / "answer" / "__init__.py", "").parent


def _packages_above(world: World) -> Path:
    path = world.home / "node_modules"
    path.mkdir()
    return path


def _changed_packages_above(world: World) -> Path:
    (world.home / "work" / "node_modules" / "answer").mkdir()
    return world.home / "work" / "node_modules"


def _moved_program(world: World) -> Path:
    other = _write(world.home / "prepared", "#!/bin/sh\nexit 0 # always\n")
    other.chmod(0o755)
    path = world.bin / "tool"
    path.unlink()
    path.symlink_to(other)
    return path


def _program_behind_a_link(world: World) -> Path:
    _write(world.home / "behind", "#!/bin/sh\nexit 0 # always\n")
    return world.bin / "linked"


def _folder_behind_a_link(world: World) -> Path:
    other = world.home / "other" / "bin"
    other.mkdir(parents=True)
    path = world.home / "sdk"
    path.unlink()
    path.symlink_to(other.parent)
    return path / "bin"


WRAPPER = '[build]\nrustc-wrapper = "/tmp/cheat"\n'
EXITS = "import os\nos._exit(0)\n"
CHANGES: dict[str, Callable[[World], Path]] = {
    "config": lambda world: _write(world.home / ".cargo/config.toml", WRAPPER),
    "new_config": lambda world: _write(world.home / ".pip/pip.conf", "[global]\nindex-url = http://127.0.0.1/\n"),
    "toolchain": lambda world: _write(world.home / ".rustup/settings.toml", 'default_toolchain = "cheat"\n'),
    "removed": _removed,
    "same_size_and_times": _same_size_and_times,
    "site": lambda world: _write(world.packages / "sitecustomize.py", EXITS),
    "user_site_package": lambda world: _write(world.packages / "usercustomize/__init__.py", EXITS),
    "package": _package,
    "module": lambda world: _write(world.packages / "answer.py", ""),
    "packages_above": _packages_above,
    "changed_packages_above": _changed_packages_above,
    "settings_above": lambda world: _write(world.home / "work/.cargo/config.toml", "[build]\n"),
    "path_file": lambda world: _write(world.packages / "planted.pth", "import os; os._exit(0)\n"),
    "known_path_file": lambda world: _write(world.packages / "known.pth", "import os; os._exit(0)\n"),
    "another_version": lambda world: _write(
        world.packages.parents[1] / "python3.99/site-packages/sitecustomize.py", "import os\n"
    ),
    "program": lambda world: world.program("tool", "exit 0 # always"),
    "moved_program": _moved_program,
    "another_program": lambda world: world.program("cc", "exit 0"),
    "overwritten_program": lambda world: _write(world.bin / "unnamed", "#!/bin/sh\nexit 0 # always\n"),
    "program_behind_a_link": _program_behind_a_link,
    "folder_behind_a_link": _folder_behind_a_link,
    "git": lambda world: _write(world.home / ".gitconfig", "[alias]\n\tstatus = !true\n"),
}


@every("change", CHANGES.values())
@pytest.mark.usefixtures("temporary")
def test_evidence_after_a_change_is_weaker_and_names_the_path(tmp_path: Path, change: Callable[[World], Path]) -> None:
    world = World(tmp_path, tmp_path / "home")
    run = world.start()
    before = run("tool")
    path = str(change(world))
    after = run("tool")
    assert (before.entry_points, before.weaker) == ((), ())
    assert after.passed
    assert after.entry_points == (path,)
    assert after.weaker == (f"~{path.removeprefix(str(world.home))} changed during the run",)
    assert after.as_dict()["entry_points"] == [path]


def test_a_program_that_appears_is_a_change_although_no_command_was_known(world: World) -> None:
    run = world.start()
    planted = world.program("new-tool", "exit 0")
    assert run("new-tool -q && true").entry_points == (str(planted),)
    assert run("missing-tool || tool").entry_points == (str(planted),), "what a command starts may start it"


def test_a_program_that_hides_another_is_a_change(world: World) -> None:
    run = world.start()
    assert run("git --version").entry_points == ()
    planted = world.program("git", "exit 0")
    assert run("git --version").entry_points == (str(planted),)


def test_the_same_bytes_are_no_change(world: World) -> None:
    run = world.start()
    for path in (world.home / ".npmrc", world.bin / "tool", world.packages / "known.pth"):
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
        path.chmod(0o755)
    assert run("tool").entry_points == ()


def test_a_change_that_is_taken_back_is_over(world: World) -> None:
    run = world.start()
    path = world.home / ".npmrc"
    data = path.read_bytes()
    path.write_text("registry=http://127.0.0.1/\n")
    assert run("tool").entry_points == (str(path),)
    path.write_bytes(data)
    assert run("tool").entry_points == ()


def test_other_files_of_the_home_are_no_entry_points(world: World) -> None:
    run = world.start()
    (world.home / ".bash_history").write_text("ls\n")
    (world.bin / "other").write_text("")
    (world.packages / "__pycache__").mkdir()
    (world.home / "work" / "notes.txt").write_text("")
    assert run("tool").entry_points == ()


def test_hooks_of_a_virtual_environment_on_path_are_watched(world: World, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    variables = {"PATH": f"{environment}/bin:/usr/bin:/bin", "HOME": str(world.home)}
    private = CheckEnvironment(Inputs(variables, ALLOWED, str(world.home), (str(world.repository),)))
    checks = ShellChecks(str(world.repository), ALLOWED, str, "run", private=private)
    (packages,) = environment.glob("lib/python3*/site-packages")
    assert checks.command("AC-1", "", "python3 -c 1", timeout=60, tree=TREE).entry_points == ()
    (packages / "sitecustomize.py").write_text("import os\nos._exit(0)\n")
    cheated = checks.command("AC-1", "", "python3 -c 'raise SystemExit(1)'", timeout=60, tree=TREE)
    assert cheated.passed
    assert cheated.entry_points == (str(packages / "sitecustomize.py"),)
    private.close()
