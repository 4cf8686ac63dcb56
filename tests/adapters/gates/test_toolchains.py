"""Real tools find their data in a check with a private home (R-RUN-3). A test whose tool is missing skips.

`test_check_environment.py` has what every run of the tests shows of each tool.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pwd
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import DEFAULT_ENVIRONMENT
from idumb.gates.check_environment import CheckEnvironment, Inputs
from idumb.gates.checks import ShellChecks

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
        checks = ShellChecks(str(root), DEFAULT_ENVIRONMENT, str, "run", private=environments[0])
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


class _Registry(BaseHTTPRequestHandler):
    """An npm registry with one package."""

    package = b""

    def do_GET(self) -> None:
        if self.path.endswith(".tgz"):
            self._send(self.package)
            return
        port = self.headers["Host"].rpartition(":")[2]
        dist = {
            "tarball": f"http://127.0.0.1:{port}/-/homely-1.0.0.tgz",
            "shasum": hashlib.sha1(self.package).hexdigest(),
        }
        version = {"name": "homely", "version": "1.0.0", "dist": dist}
        self._send(
            json.dumps({"name": "homely", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode()
        )

    def _send(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def _npm_package() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        files = {"package.json": '{"name": "homely", "version": "1.0.0"}', "index.js": "module.exports = 'private';\n"}
        for name, text in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


@pytest.mark.nightly
def test_npm_installs_from_the_private_registry_that_npmrc_names(run: Run, home: Path, tmp_path: Path) -> None:
    needs("npm")
    _Registry.package = _npm_package()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (home / ".npmrc").write_text(f"registry=http://127.0.0.1:{server.server_address[1]}/\nupdate-notifier=false\n")
    (tmp_path / "repo" / "package.json").write_text('{"name": "project", "version": "1.0.0"}\n')
    command = "npm install --silent --no-audit --no-fund homely && node -p 'require(\"homely\")'"
    try:
        result = run(command)
    finally:
        server.shutdown()
        server.server_close()
    assert result.output.endswith("private\n"), result.output
    assert f"NPM_CONFIG_USERCONFIG={home}/.npmrc" in result.locations


_POM = """<project><modelVersion>4.0.0</modelVersion>
{0}<groupId>org.example</groupId><artifactId>{1}</artifactId><version>1</version><packaging>pom</packaging></project>
"""
_PARENT = "<parent><groupId>org.example</groupId><artifactId>parent</artifactId><version>1</version></parent>\n"


@pytest.mark.nightly
def test_maven_reads_the_user_s_mavenrc_and_local_repository(run: Run, home: Path, tmp_path: Path) -> None:
    """Java takes `user.home` from the user database; the test's own home is named in `~/.mavenrc`."""
    needs("mvn")
    (home / ".mavenrc").write_text(f"MAVEN_OPTS=-Duser.home={home}\n")
    parent = home / ".m2" / "repository" / "org" / "example" / "parent" / "1" / "parent-1.pom"
    parent.parent.mkdir(parents=True)
    parent.write_text(_POM.format("", "parent"))
    (tmp_path / "repo" / "pom.xml").write_text(_POM.format(_PARENT, "project"))
    result = run("mvn --offline --quiet --batch-mode validate")
    assert result.passed, result.output
    assert f"~/.m2 -> {home}/.m2" in result.locations
    (home / ".mavenrc").unlink()


@pytest.mark.nightly
def test_java_finds_the_real_home(run: Run) -> None:
    """Maven, Gradle and Ivy keep their data there, so that they need no variable."""
    needs("java")
    result = run("java -XshowSettings:properties -version 2>&1 | grep ' user.home = '")
    assert result.output.split() == ["user.home", "=", REAL_HOME]


@pytest.mark.nightly
def test_go_reads_the_user_s_env_file_and_module_cache(run: Run, home: Path) -> None:
    needs("go")
    subprocess.run(["go", "env", "-w", "GOPROXY=off"], check=True, cwd=home)
    (home / "go").mkdir()
    assert run("go env GOPROXY GOMODCACHE").output.split() == ["off", f"{home}/go/pkg/mod"]


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


def test_asdf_s_default_versions_are_in_the_home_of_a_check(run: Run, home: Path) -> None:
    (home / ".tool-versions").write_text("tool 1.0\n")
    assert run("cat $HOME/.tool-versions").output == "tool 1.0\n"


def test_git_can_commit_in_a_check(run: Run) -> None:
    result = run("git init -q inner && cd inner && git commit -q --allow-empty -m x && git log --format=%an")
    assert result.output == "Pat\n"
