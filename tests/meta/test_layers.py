"""The import contracts, tried on a small house in which each of them is broken once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.meta import source

LINTER = Path(sysconfig.get_path("scripts")) / "lint-imports"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """The empty packages, under this project's contracts."""
    shutil.copy(source.ROOT / "pyproject.toml", tmp_path)
    for room in (*source.ROOMS, "app/core", "app/engine"):
        (tmp_path / "idumb" / room).mkdir(parents=True)
        (tmp_path / "idumb" / room / "__init__.py").touch()
    for module in ("__init__", "__main__"):
        (tmp_path / "idumb" / f"{module}.py").touch()
    return tmp_path


def lint(house: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(house)}
    return subprocess.run(
        [LINTER, "--no-logo", "--no-cache"], cwd=house, env=environment, capture_output=True, text=True, check=False
    )


def broken(house: Path) -> list[str]:
    return [line.removesuffix(" BROKEN") for line in lint(house).stdout.splitlines() if line.endswith(" BROKEN")]


def test_allowed_imports_break_no_contract(house: Path) -> None:
    allowed = {
        "cli/run.py": "import click\nfrom idumb.composition import container\nfrom idumb.system import clock\n",
        "composition/container.py": "from idumb import git, store, app, markdown\n",
        "git/snapshots.py": "import pygit2\nfrom idumb.app.core import journal\nfrom idumb.system import clock\n",
        "git/__init__.py": "import pygit2\n",
        "store/log.py": "import sqlite3\nfrom idumb.domain import event\n",
        "app/core/journal.py": "from idumb.domain import event\n",
        "app/engine/runner.py": "from idumb.app.core import journal\n",
        "domain/event.py": "import json\n",
        "system/clock.py": "import time\n",
    }
    for name, text in allowed.items():
        (house / "idumb" / name).write_text(text, encoding="utf-8")
    result = lint(house)
    assert (result.returncode, broken(house)) == (0, []), result.stdout


@pytest.mark.parametrize(
    ("place", "text", "contract"),
    [
        ("domain/event.py", "from idumb import app", "rooms import downwards only, implementations never one another"),
        ("gates/types.py", "from idumb import store", "rooms import downwards only, implementations never one another"),
        ("git/trees.py", "from idumb import cli", "rooms import downwards only, implementations never one another"),
        (
            "domain/event.py",
            "from idumb import system",
            "rooms import downwards only, implementations never one another",
        ),
        ("app/core/run.py", "from idumb.app import engine", "rooms of app import downwards only"),
        ("app/shared/__init__.py", "", "rooms of app import downwards only"),
        ("utils/__init__.py", "", "rooms import downwards only, implementations never one another"),
        ("app/core/run.py", "from idumb import system", "app reaches the system through ports only"),
        ("gates/ledger.py", "def late():\n    import pygit2", "pygit2 is imported in git/ only"),
        ("views/page.py", "from sqlite3 import connect", "sqlite3 is imported in store/ only"),
        ("composition/container.py", "import click", "click is imported in cli/ only"),
        ("app/core/run.py", "import subprocess", "app and domain touch no file, process, clock or chance"),
        ("app/core/run.py", "from pathlib import Path", "app and domain touch no file, process, clock or chance"),
        ("domain/event.py", "import os.path", "app and domain touch no file, process, clock or chance"),
    ],
)
def test_a_broken_contract_is_named(house: Path, place: str, text: str, contract: str) -> None:
    (house / "idumb" / place).parent.mkdir(exist_ok=True)
    (house / "idumb" / place).write_text(f"{text}\n", encoding="utf-8")
    assert broken(house) == [contract]


def test_a_cycle_inside_a_room_is_named(house: Path) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        text = f"def late():\n    from idumb.git import {other}\n"
        (house / "idumb" / "git" / f"{name}.py").write_text(text, encoding="utf-8")
    assert broken(house) == ["no import cycle, neither between rooms nor inside one"]
