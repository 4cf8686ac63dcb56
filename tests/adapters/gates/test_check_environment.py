"""The environment of a check: private folders, the user's toolchains, nothing of the repository (R-RUN-3, S4, S5)."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import PRIVATE_HOME, USER_HOME
from idumb.gates.check_environment import CheckEnvironment, Inputs
from idumb.gates.checks import ShellChecks
from idumb.gates.prepare import prepare_identity
from idumb.system import private_folders
from tests.support.cases import every
from tests.support.programs import script
from tests.support.shell_checks import shell_checks

ALLOWED = ("PATH", "HOME", "TMPDIR")
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

Start = Callable[..., ShellChecks]


def computed(
    environment: Mapping[str, str], *existing: str, home: str = "/home/pat", **inputs: object
) -> CheckEnvironment:
    """Compute without a disk; `existing` are the paths that exist."""
    values = {"inside": ("/src", "/src/.git"), "allowed": ALLOWED, **inputs}
    return CheckEnvironment(
        Inputs({"HOME": home, **environment}, home=home, **values),  # type: ignore[arg-type]
        exists=lambda path: path in existing,
        real=lambda path: path,
    )


@every(
    "variable, place",
    [
        ("CARGO_HOME", ".cargo"),
        ("RUSTUP_HOME", ".rustup"),
        ("GOPATH", "go"),
        ("GOCACHE", ".cache/go-build"),
        ("PYENV_ROOT", ".pyenv"),
        ("PYTHONUSERBASE", ".local"),
        ("NVM_DIR", ".nvm"),
        ("VOLTA_HOME", ".volta"),
        ("GRADLE_USER_HOME", ".gradle"),
        ("MISE_DATA_DIR", ".local/share/mise"),
        ("PIP_CACHE_DIR", ".cache/pip"),
    ],
)
def test_a_tool_finds_its_data_below_the_real_home(variable: str, place: str) -> None:
    path = f"/home/pat/{place}"
    found = computed({}, path)
    assert found.kept[variable] == path
    assert f"{variable}={path}" in found.locations
    assert variable not in computed({}).kept


def test_the_user_s_own_location_comes_first_unless_it_is_in_the_repository() -> None:
    found = computed({"CARGO_HOME": "/data/cargo", "XDG_CACHE_HOME": "/fast"}, "/home/pat/.cargo", "/fast/pip")
    assert (found.kept["CARGO_HOME"], found.kept["PIP_CACHE_DIR"]) == ("/data/cargo", "/fast/pip")
    for value in ("/src/tools", "/src", "relative", "", "/src/.git/tools"):
        assert "CARGO_HOME" not in computed({"CARGO_HOME": value}).kept
    assert "PIP_CACHE_DIR" not in computed({"XDG_CACHE_HOME": "/src/cache"}, "/src/cache/pip").kept
    assert computed({"GOPATH": "/src/go:/data/go"}).kept["GOPATH"] == "/data/go"
    passed = computed({"CARGO_HOME": "/src/.cargo"}, allowed=(*ALLOWED, "CARGO_HOME"))
    assert passed.variables["CARGO_HOME"] == "/src/.cargo"
    assert "CARGO_HOME=/src/.cargo" in passed.locations


def test_folders_of_the_repository_are_no_part_of_path() -> None:
    path = f"/src/bin:/src/.venv/bin:{SYSTEM_PATH}:relative::/srcs/bin:/usr/bin"
    found = computed({"PATH": path})
    assert found.folders("/proof") == [*SYSTEM_PATH.split(":"), "/srcs/bin"]


def test_a_provided_folder_of_path_is_that_of_the_proving_tree() -> None:
    found = computed({"PATH": f"/src/.venv/bin:/src/tools:{SYSTEM_PATH}"})
    assert found.variables_of("/private", "/proof", [".venv/"])["PATH"] == f"/proof/.venv/bin:{SYSTEM_PATH}"


def test_tools_of_a_repository_around_the_home_are_kept() -> None:
    found = computed({"PATH": f"/home/pat/.local/bin:{SYSTEM_PATH}"}, "/home/pat/.cargo", inside=("/home/pat",))
    assert (found.kept["CARGO_HOME"], found.folders("/proof")[0]) == ("/home/pat/.cargo", "/home/pat/.local/bin")


def test_mise_trusts_the_tree_of_the_check() -> None:
    found = computed({}, "/home/pat/.local/share/mise")
    assert found.variables_of("/private", "/proof")["MISE_TRUSTED_CONFIG_PATHS"] == "/proof"
    assert "MISE_TRUSTED_CONFIG_PATHS" not in computed({}).variables_of("/private", "/proof")


def test_the_user_s_home_is_a_choice_and_the_user_s_variables_still_name_the_toolchains() -> None:
    """As in images in which Rust is in /usr/local; the defaults below the home need no variable."""
    environment = {"TMPDIR": "/tmp", "CARGO_HOME": "/usr/local/cargo", "GOPATH": "/src/go"}
    found = computed(environment, "/home/pat/.rustup", "/home/pat/.m2", home_of_checks=USER_HOME)
    assert found.locations == ("CARGO_HOME=/usr/local/cargo",)
    variables = found.variables_of("/private", "/proof")
    assert [variables[name] for name in ("HOME", "TMPDIR", "CARGO_HOME")] == [
        "/home/pat",
        "/private/t",
        "/usr/local/cargo",
    ]


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for private folders in TMPDIR, although that has a long path."""
    monkeypatch.setattr(private_folders, "_SHORT", 500)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / f"idumb-{os.geteuid()}"


@pytest.fixture
def start(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Return a function that starts the checks of a run in the repository `tmp_path/repo`."""
    (tmp_path / "repo").mkdir()
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    environments: list[CheckEnvironment] = []

    def begin(home_of_checks: str = PRIVATE_HOME, git: Mapping[str, str] | None = None) -> ShellChecks:
        root = str(tmp_path / "repo")
        inputs = Inputs(dict(os.environ), ALLOWED, str(home), (root, f"{root}/.git"), home_of_checks=home_of_checks)
        environments.append(CheckEnvironment(inputs, lambda: git or {}))
        return shell_checks(root, ALLOWED, private=environments[-1])

    yield begin
    for environment in environments:
        environment.close()


def run(checks: ShellChecks, command: str) -> Evidence:
    return checks.command("AC-1", "it holds", command, timeout=60, tree="t" * 40)


def test_each_check_has_new_private_folders(start: Start, home: Path) -> None:
    checks = start()
    command = 'for f in "$HOME" "$TMPDIR"; do echo $f; ls $f; date > $f/left; done; ls -a $HOME'
    first, second = (run(checks, command).output.split() for _ in range(2))
    assert first[2:] == second[2:] == [".", "..", ".gitconfig", "left"]
    assert set(first[:2]).isdisjoint(second[:2])
    assert not any(path.startswith(str(home)) or os.path.exists(path) for path in first[:2])


def test_a_socket_fits_into_the_private_tmpdir(start: Start) -> None:
    result = run(start(), "printf %s $TMPDIR")
    with socket.socket(socket.AF_UNIX) as server, pytest.raises(FileNotFoundError):
        server.bind(f"{result.output}/{'x' * 50}/s")  # the folder is missing; a long path would be another error


def test_the_private_home_has_the_user_s_git_identity_and_nothing_else(start: Start) -> None:
    checks = start(git={"user.name": 'Pat "P" \\ Tester', "user.email": "pat@example.invalid"})
    assert run(checks, "git config --global --list").output.split("\n") == [
        'user.name=Pat "P" \\ Tester',
        "user.email=pat@example.invalid",
        "",
    ]


def test_a_folder_without_write_permission_is_removed(start: Start, base: Path) -> None:
    run(start(), "mkdir -p $HOME/go/pkg/mod/x && touch $HOME/go/pkg/mod/x/y && chmod -R a-w $HOME/go")
    (session,) = (path for path in base.iterdir() if path.is_dir())
    assert list(session.iterdir()) == []
    assert stat.S_IMODE(base.stat().st_mode) == stat.S_IMODE(session.stat().st_mode) == 0o700


def test_a_later_process_removes_the_folders_of_a_killed_one(base: Path) -> None:
    (base / "7").mkdir(parents=True)
    base.chmod(0o700)
    (base / "7.lock").touch()
    living = private_folders.TemporaryFolder("idumb")
    other = private_folders.TemporaryFolder("idumb")
    assert {str(path) for path in base.iterdir() if path.is_dir()} == {living.path, other.path}
    living.close()
    assert base.exists(), "the other one is in it"
    other.close()
    assert not base.exists()


def test_a_folder_of_others_is_not_used(base: Path) -> None:
    base.mkdir(mode=0o777)
    base.chmod(0o777)
    folder = private_folders.TemporaryFolder("idumb")
    assert not folder.path.startswith(str(base.parent))
    folder.close()


def test_a_program_that_only_the_repository_s_path_entry_has_does_not_run(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `pytest` that a builder plants in the repository's entry of PATH never runs."""
    planted = script(tmp_path / "repo/.local/bin/planted-pytest")
    monkeypatch.setenv("PATH", f"{planted.parent}:{SYSTEM_PATH}")
    assert run(start(), "planted-pytest -q").result == evidence.ERRORED


def test_the_user_s_home_is_recorded_as_weaker(start: Start, home: Path) -> None:
    result = run(start(USER_HOME), "printf %s $HOME")
    assert (result.output, result.weaker) == (str(home), ("HOME is the user's (checks.home: user)",))
    assert run(start(), "true").weaker == ()


def test_the_user_s_locations_are_in_the_evidence(start: Start, home: Path) -> None:
    (home / ".cargo").mkdir()
    result = run(start(), "printf %s $CARGO_HOME")
    assert result.output == str(home / ".cargo")
    assert result.as_dict()["locations"] == [f"CARGO_HOME={home}/.cargo"]


def test_python_leaves_no_bytecode_for_later_checks(start: Start, tmp_path: Path) -> None:
    (tmp_path / "repo/module.py").touch()
    assert run(start(), f"{sys.executable} -c 'import module'; ls").output == "module.py\n"


@every("command", ["uv venv --python python9", "sh -c 'python9 -m venv .venv'"])
def test_a_changed_program_that_prepare_names_makes_another_installation(tmp_path: Path, command: str) -> None:
    tool = script(tmp_path / "python9")
    before = prepare_identity([command], {"PATH": str(tmp_path)})
    script(tool, "exit 0  # newer")
    assert prepare_identity([command], {"PATH": str(tmp_path)}) != before
