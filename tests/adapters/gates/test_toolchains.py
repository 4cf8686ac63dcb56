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
from idumb.gates.check_environment import CheckEnvironment, Inputs
from idumb.gates.checks import ShellChecks
from idumb.gates.shell_command import Shell

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
        checks = ShellChecks(
            root=str(root), allowed=DEFAULT_ENVIRONMENT, shell=Shell(str), run_id="run", private=environments[0]
        )
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


SHIM = '#!/bin/sh\nexec "${MISE_DATA_DIR:-$HOME/.local/share/mise}/installs/tool/1.0/bin/tool" "$@"\n'


def test_the_shims_of_mise_start_the_installed_tool(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = home / "data" / "mise"  # XDG_DATA_HOME of the tests
    for path, text in ((data / "shims" / "tool", SHIM), (data / "installs/tool/1.0/bin/tool", "#!/bin/sh\necho 1.0\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{data}/shims:{SYSTEM_PATH}")
    result = run("tool")
    assert result.output == "1.0\n"
    assert f"MISE_DATA_DIR={data}" in result.locations


def test_git_can_commit_in_a_check(run: Run) -> None:
    result = run("git init -q inner && cd inner && git commit -q --allow-empty -m x && git log --format=%an")
    assert result.output == "Pat\n"
