"""The Makefile and the scripts under `.ci/`, as far as they can be tried without making another environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta import source

# This Python, in the belief that it is an old one.
OLD_PYTHON = f"""\
#!/bin/sh
[ "$1" = --version ] && echo Python 3.9.2 && exit
exec '{sys.executable}' -c "import sys; sys.version_info = (3, 9, 2); $2"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with this project's Makefile and scripts, without an installation."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(source.ROOT / name, tmp_path)
    shutil.copytree(source.ROOT / ".ci", tmp_path / ".ci")
    return tmp_path


def run(folder: Path, *argv: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MAKEFLAGS": "", "PATH": path or os.environ["PATH"]}
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_an_old_python_is_refused_in_one_line(project: Path) -> None:
    old = project / "python3.9"
    old.write_text(OLD_PYTHON, encoding="utf-8")
    old.chmod(0o755)
    result = run(project, "make", "setup", f"PYTHON={old}")
    assert result.returncode != 0
    first, *rest = result.stderr.splitlines()
    assert first.startswith("idumb needs Python 3.11 or newer")
    assert "Python 3.9.2" in first
    assert all(line.startswith("make") for line in rest)
    assert not (project / ".venv").exists()


def test_setup_is_not_repeated_while_the_project_file_is_older(project: Path) -> None:
    stamp = project / ".venv" / ".made-from-pyproject"
    stamp.parent.mkdir()
    stamp.touch()
    os.utime(project / "pyproject.toml", (1, 1))
    assert run(project, "make", "setup", "PYTHON=/bin/false").returncode == 0


def test_the_run_script_names_a_missing_program(project: Path) -> None:
    tools = project / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "env", "git"):
        (tools / name).symlink_to(shutil.which(name) or name)
    result = run(project, str(project / ".ci" / "run"), path=str(tools))
    assert (result.returncode, result.stderr) == (1, "missing program: make\n")


def test_every_check_runs_and_the_last_line_names_the_failed_ones(project: Path) -> None:
    tools = project / ".venv" / "bin"
    tools.mkdir(parents=True)
    for name in ("ruff", "mypy", "lint-imports", "python"):
        tool = tools / name
        tool.write_text(f"#!/bin/sh\nexit {int(name == 'ruff')}\n", encoding="utf-8")
        tool.chmod(0o755)
    result = run(project, ".ci/check", "quick")
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith("== ")] == [
        "== format",
        "== lint",
        "== types",
        "== layers",
        "== own plan",
        "== unit tests",
    ]
    assert result.returncode == 1
    assert lines[-1].startswith("failed after ")
    assert lines[-1].endswith(": format lint")
