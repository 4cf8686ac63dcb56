"""`checkout.prepare`: what checks need is installed once per lock file, in the proving tree (R-RUN-3)."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import seed
from tests.support.plans import run
from tests.support.project import Project, shell, task, write


def _commit(project: Project, files: dict[str, str], ignored: str) -> None:
    project.repo.write_all({**files, ".gitignore": f"{project.read('.gitignore')}{ignored}\n"})
    project.repo.commit("project")


def _plan(project: Project, check: str, *names: str) -> None:
    tasks = [
        task(f"T1-0{i}", files=f"create `{n}`", check=check, steps=[write(n, "x\n")]) for i, n in enumerate(names, 1)
    ]
    project.plan(tasks)


def _runs(folder: Path) -> int:
    counted = folder / "runs"
    return len(counted.read_text().splitlines()) if counted.exists() else 0


@pytest.fixture
def made(project: Project, tmp_path: Path) -> Project:
    """Return a project whose check needs what `make deps` installs; each installation is counted."""
    makefile = f"deps:\n\techo run >> {tmp_path}/runs\n\tmkdir -p deps\n\tcp list.lock deps/list\n\ttouch deps/mine\n"
    _commit(project, {"Makefile": makefile, "requirements.txt": "one\n", "list.lock": "one\n"}, "/deps")
    project.configure("checkout: {prepare: [make deps]}\n")
    return project


def test_what_checks_need_is_installed_once_and_kept_for_later_commands(made: Project, tmp_path: Path) -> None:
    _plan(made, "grep one deps/list", "a.txt", "b.txt")
    answer = run(made, "--no-verify")
    assert answer.code == 0, answer.out
    assert not made.exists("deps")
    assert _runs(tmp_path) == 1
    proof = made.events("--kind", "evidence.recorded")[-1]["payload"]
    assert "weaker" not in proof
    assert "deps <- checkout.prepare" in proof["locations"]
    assert made.quick("verify-work", "1").code == 0
    assert _runs(tmp_path) == 1
    proven = made.quick("prove", "1")
    assert proven.code == 0, proven.out
    assert _runs(tmp_path) == 2, "in a fresh clone, they are installed again"
    assert "Installing what checks need: make deps" in proven.out + proven.err


def test_a_program_that_a_builder_replaced_does_not_install_unseen(
    made: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The builder puts another `make` on PATH, which installs what the check expects."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    plant = f"echo x > a.txt; printf '#!/bin/sh\\nmkdir deps; echo two > deps/list\\n' > {programs}/make"
    steps = [shell(f"{plant}; chmod +x {programs}/make")]
    made.plan([task("T1-01", files="create `a.txt`", check="grep two deps/list", steps=steps)])
    assert run(made, "--no-verify").code == 0
    proof = made.events("--kind", "evidence.recorded")[0]["payload"]
    assert proof["changed_programs"] == [f"{programs}/make"]
    assert [words for words in proof["weaker"] if words.endswith("changed during the run")]


def test_a_command_that_fails_stops_the_run_and_does_not_count(made: Project) -> None:
    made.configure("checkout: {prepare: ['echo no such package; exit 3']}\n")
    _plan(made, "test -e deps/list", "a.txt")
    answer = run(made, "--no-verify")
    assert answer.code == 1
    assert "`echo no such package; exit 3` (checkout.prepare) failed: exit 3" in answer.out
    assert "Correct checkout.prepare in .idumb/config.yaml" in answer.out
    assert "idumb execute-phase 1" in answer.out
    assert made.statuses()["T1-01"] != "failed"
    made.configure("checkout: {prepare: [make deps]}\n")
    assert run(made, "--no-verify").code == 0


@pytest.mark.nightly
def test_before_the_work_a_command_may_fail(made: Project) -> None:
    """What it installs from may be the work of a task."""
    made.configure("checkout: {prepare: [test -s a.txt && make deps]}\n")
    made.plan([task("T1-01", files="create `a.txt`", check="test -e deps/list", steps=[write("a.txt", "x\n")])])
    assert made.quick("approve", "1", "--hash", made.contract_hash()).code == 0
    ran = made.quick("check-plan", "1", "--run-checks", "--json")
    assert [row["result"] for row in ran.data["ran"]] == ["errored"]
    assert run(made, "--no-verify").code == 0


def test_a_command_that_changes_committed_files_is_refused(made: Project) -> None:
    made.configure("checkout: {prepare: ['make deps && echo two > requirements.txt']}\n")
    _plan(made, "true", "a.txt")
    answer = run(made, "--no-verify")
    assert answer.code == 1
    assert "checkout.prepare changed requirements.txt, which the commit holds" in answer.out
    assert made.read("requirements.txt") == "one\n"


def test_consent_names_the_commands_and_covers_them(made: Project, tmp_path: Path) -> None:
    _plan(made, "test -e deps/list", "a.txt")
    asked = made.quick("execute-phase", "1")
    assert (asked.code, _runs(tmp_path)) == (5, 0)
    assert "before checks: make deps" in asked.err
    consent = re.findall("--approve ([0-9a-f]{64})", asked.err)[0]
    made.configure("checkout: {prepare: [make deps, 'echo more']}\n")
    other = made.quick("execute-phase", "1", "--approve", consent)
    assert other.code != 0
    assert "would run has now the hash" in other.err
    assert _runs(tmp_path) == 0


def virtual_environment(project: Project) -> str:
    """A wheel is an archive, so that the installation needs no pip."""
    (project.repo.root / "wheels").mkdir()
    with zipfile.ZipFile(project.repo.root / "wheels/lib-1-py3-none-any.whl", "w") as archive:
        archive.writestr("lib.py", "VALUE = 1\n")
    _commit(project, {"requirements.txt": "./wheels/lib-1-py3-none-any.whl\n", "app.py": "import lib\n"}, ".venv")
    python = sys.executable
    site = f".venv/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    install = f"{python} -m zipfile -e wheels/lib-1-py3-none-any.whl {site}"
    project.configure(f"checkout: {{prepare: ['{python} -m venv --without-pip .venv', '{install}']}}\n")
    _plan(project, ".venv/bin/python -c 'import app; assert app.lib.VALUE == 1'", "a.txt")
    return ".venv"


def npm(project: Project) -> str:
    """The dependency is a folder of the project, so a check sees that of the tree to be committed."""
    lock = (
        '{"name": "app", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": {"name": "app", "version": "1.0.0",'
        ' "dependencies": {"dep": "file:dep"}}, "dep": {"version": "1.0.0"},'
        ' "node_modules/dep": {"resolved": "dep", "link": true}}}'
    )
    files = {
        "package.json": '{"name": "app", "version": "1.0.0", "dependencies": {"dep": "file:dep"}}',
        "package-lock.json": lock,
        "dep/package.json": '{"name": "dep", "version": "1.0.0", "main": "index.js"}',
        "dep/index.js": "module.exports = 1\n",
    }
    _commit(project, files, "node_modules")
    project.configure("checkout: {prepare: [npm ci --offline --no-audit --no-fund]}\n")
    check = "node -e 'process.exit(require(\"dep\") === 2 ? 0 : 1)'"
    steps = [write("dep/index.js", "module.exports = 2\n")]
    project.plan([task("T1-01", files="modify `dep/index.js`", check=check, steps=steps)])
    return "node_modules"


def cargo(project: Project) -> str:
    files = {
        "Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n',
        "Cargo.lock": 'version = 3\n\n[[package]]\nname = "app"\nversion = "0.1.0"\n',
        "src/main.rs": 'fn main() { println!("one"); }\n',
    }
    _commit(project, files, "target")
    project.configure("checkout: {prepare: [cargo build --offline --locked -q]}\n")
    check = "cargo run --offline --locked -q | grep two"
    steps = [write("src/main.rs", 'fn main() { println!("two"); }\n')]
    project.plan([task("T1-01", files="modify `src/main.rs`", check=check, steps=steps)])
    return "target"


TOOLS = [virtual_environment, *(tool for tool in (npm, cargo) if shutil.which(tool.__name__))]


@pytest.mark.nightly
@pytest.mark.parametrize("tool", seed.one_on_a_push(TOOLS, "installers"))
def test_what_a_real_tool_installs_is_there_for_checks_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch, tool: Callable[[Project], str]
) -> None:
    for variable, name in (("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")):
        own = Path(pwd.getpwuid(os.getuid()).pw_dir) / name
        if variable not in os.environ and own.is_dir():
            monkeypatch.setenv(variable, str(own))  # tests have a home of their own
    installed = tool(project)
    answer = run(project, "--no-verify")
    assert answer.code == 0, answer.out
    assert not project.exists(installed)
