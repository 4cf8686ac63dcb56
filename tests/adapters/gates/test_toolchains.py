"""Real tools find their data in a check with a private home (R-RUN-3). A test whose tool is missing skips.

`test_check_environment.py` has what every run of the tests shows of each tool.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import DEFAULT_ENVIRONMENT
from idumb.gates import toolchains
from idumb.gates.check_environment import CheckEnvironment, Inputs
from tests.support.cases import every
from tests.support.programs import script
from tests.support.shell_checks import shell_checks

Run = Callable[[str], Evidence]

REAL_HOME = pwd.getpwuid(os.geteuid()).pw_dir
TREE = "7" * 40
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


def needs(program: str, path: str | None = None) -> str:
    found = shutil.which(program, path=path)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


@pytest.fixture
def run(tmp_path: Path, home: Path) -> Iterator[Run]:
    """Return a function that runs one check in the empty folder `tmp_path/repo`, in the environment of the test."""
    root = tmp_path / "repo"
    root.mkdir(exist_ok=True)
    environments: list[CheckEnvironment] = []

    def check(command: str) -> Evidence:
        if not environments:
            inputs = Inputs(dict(os.environ), DEFAULT_ENVIRONMENT, str(home), (str(root), f"{root}/.git"))
            environments.append(
                CheckEnvironment(inputs, lambda: {"user.name": "Pat", "user.email": "p@example.invalid"})
            )
        checks = shell_checks(root, DEFAULT_ENVIRONMENT, private=environments[0])
        return checks.command("AC-1", "", command, timeout=50, tree=TREE)

    yield check
    for environment in environments:
        environment.close()


def python() -> str:
    """Return an interpreter with pip that is no virtual environment, because those have no user site."""
    base = os.path.join(sys.base_prefix, "bin", "python3")
    if subprocess.run([base, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("pip is not installed")
    return base


@pytest.mark.nightly
def test_a_package_of_pip_user_can_be_imported(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = python()
    wheel = tmp_path / "homely-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("homely.py", "WORD = 'from the user site'\n")
        archive.writestr("homely-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: homely\nVersion: 1.0\n")
        archive.writestr("homely-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("homely-1.0.dist-info/RECORD", "")
    install = [interpreter, "-m", "pip", "install", "--user", "--no-index", "--quiet", "--break-system-packages"]
    if "--break-system-packages" not in _help(interpreter):
        install.pop()
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    monkeypatch.setenv("PATH", f"{os.path.dirname(interpreter)}:{SYSTEM_PATH}")
    assert run("python3 -c 'import homely; print(homely.WORD)'").output == "from the user site\n"


def _help(interpreter: str) -> str:
    command = [interpreter, "-m", "pip", "install", "--help"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


@pytest.mark.nightly
def test_java_finds_the_real_home(run: Run) -> None:
    """Maven, Gradle and Ivy keep their data there, so that they need no variable."""
    needs("java")
    result = run("java -XshowSettings:properties -version 2>&1 | grep ' user.home = '")
    assert result.output.split() == ["user.home", "=", REAL_HOME]


@pytest.mark.nightly
def test_go_finds_the_user_s_modules(run: Run, home: Path) -> None:
    needs("go")
    (home / "go").mkdir()
    assert run("go env GOMODCACHE").output.split() == [f"{home}/go/pkg/mod"]


@pytest.mark.nightly
def test_cargo_reads_the_user_s_configuration(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cargo = needs("cargo")
    rustup = os.path.join(REAL_HOME, ".rustup")
    if os.path.isdir(rustup):
        monkeypatch.setenv("RUSTUP_HOME", rustup)
    if subprocess.run([cargo, "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("cargo has no toolchain")
    (home / ".cargo").mkdir()
    (home / ".cargo" / "config.toml").write_text('[alias]\nhomely = "version"\n')
    result = run("cargo homely")
    assert result.output.startswith("cargo "), result.output


@pytest.mark.nightly
def test_the_shims_of_pyenv_start_the_user_s_python(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    root = os.path.join(REAL_HOME, ".pyenv")
    needs("python3", f"{root}/shims")
    monkeypatch.setenv("PYENV_ROOT", root)
    monkeypatch.setenv("PATH", f"{root}/shims:{root}/bin:{SYSTEM_PATH}")
    assert f"{root}/versions/" in run("python3 -c 'import sys; print(sys.prefix)'").output


SHIM = 'exec "${MISE_DATA_DIR:-$HOME/.local/share/mise}/installs/tool/1.0/bin/tool" "$@"'


def test_the_shims_of_mise_start_the_installed_tool(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = home / "data" / "mise"  # XDG_DATA_HOME of the tests
    script(data / "shims/tool", SHIM)
    script(data / "installs/tool/1.0/bin/tool", "echo 1.0")
    monkeypatch.setenv("PATH", f"{data}/shims:{SYSTEM_PATH}")
    result = run("tool")
    assert result.output == "1.0\n"
    assert f"MISE_DATA_DIR={data}" in result.locations


def test_git_can_commit_in_a_check(run: Run) -> None:
    result = run("git init -q inner && cd inner && git commit -q --allow-empty -m x && git log --format=%an")
    assert result.output == "Pat\n"


def names(
    command: str, *search_path: Path, above: Path | None = None, since: int = 1, files: tuple[str, ...] = ()
) -> list[str]:
    folders = [str(folder) for folder in search_path]
    return [*toolchains.changed(command, folders, files, [str(above)] if above else [], since)]


def now(path: Path) -> int:
    return path.stat().st_ctime_ns


def test_a_program_on_path_or_named_by_its_path_that_changed_is_named(tmp_path: Path) -> None:
    """What the command starts may start any program on PATH, as `make` starts `cc`."""
    compiler, own = script(tmp_path / "bin/cc"), script(tmp_path / "own/run")
    (tmp_path / "bin/notes").touch()
    assert names(f"{own} x && make", tmp_path / "bin") == [str(own), str(compiler)]
    assert names(f"{own} x && make", tmp_path / "bin", since=max(now(compiler), now(own))) == []
    assert names("true", Path("/usr/bin"), Path("/bin")) == [], "only an administrator can replace it"


def test_a_link_is_as_new_as_what_it_leads_to(tmp_path: Path) -> None:
    target, link = script(tmp_path / "elsewhere/tool"), tmp_path / "bin/tool"
    link.parent.mkdir()
    link.symlink_to(target)
    made = link.lstat().st_ctime_ns
    assert names("tool", link.parent, since=made) == []
    while now(target) <= made:  # the file system's clock ticks slowly
        target.chmod(0o755)
    assert names("tool", link.parent, since=made) == [str(link)]


def test_a_folder_of_path_that_leads_to_another_place_now_is_named(tmp_path: Path) -> None:
    script(tmp_path / "v1/tool")
    current = tmp_path / "current"
    current.symlink_to(tmp_path / "v1")
    assert names("tool", current, since=current.lstat().st_ctime_ns - 1)[0] == str(current)


@every("place", ["package.json", "node_modules", ".cargo/config.toml", "conftest.py"])
def test_what_tools_find_above_the_tree_is_named(tmp_path: Path, place: str) -> None:
    assert names("npm test", above=tmp_path) == []
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).touch()
    assert names("npm test", above=tmp_path) == [str(tmp_path / place)]


def test_packages_that_were_installed_for_python_or_by_the_user_are_named(tmp_path: Path) -> None:
    interpreter, packages = script(tmp_path / "bin/python3"), tmp_path / "lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    since = max(now(packages), now(interpreter))
    assert names("pytest", tmp_path / "bin", since=since) == []
    assert toolchains.changed("pytest", [], [], [], since, str(tmp_path)) == ()
    (packages / "installed").mkdir()
    since = now(packages) - 1
    assert names("pytest", tmp_path / "bin", since=since) == [str(packages)]
    assert toolchains.changed("pytest", [], [], [], since, str(tmp_path)) == (str(packages),)


def test_files_of_toolchains_and_a_folder_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "config.toml").touch()
    assert names("x", tmp_path / "none", files=(f"{tmp_path}/config.toml", f"{tmp_path}/gone")) == [
        f"{tmp_path}/config.toml"
    ]


def test_at_most_twenty_are_named(tmp_path: Path) -> None:
    for number in range(30):
        script(tmp_path / f"bin/p{number}")
    assert len(names("x", tmp_path / "bin")) == 20
