"""The import contracts, tried on a small house in which each of them is broken once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import tomllib
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


def broken(report: str) -> list[str]:
    return [line.removesuffix(" BROKEN") for line in report.splitlines() if line.endswith(" BROKEN")]


LAYERS = "rooms import downwards only, implementations never one another"
LAYERS_OF_APP = "rooms of app import downwards only"
PURE = "app and domain touch no file, process, clock or chance"
CYCLES = "no import cycle, neither between rooms nor inside one"
# Each import, and what the report says of it.
# fmt: off
FORBIDDEN = [
    ("domain/event.py", "from idumb import app", LAYERS, "idumb.domain.event -> idumb.app "),
    ("domain/clock.py", "from idumb import system", LAYERS, "idumb.domain.clock -> idumb.system "),
    ("gates/types.py", "from idumb import store", LAYERS, "idumb.gates.types -> idumb.store "),
    ("git/trees.py", "from idumb import cli", LAYERS, "idumb.git.trees -> idumb.cli "),
    ("app/core/run.py", "from idumb.app import engine", LAYERS_OF_APP, "idumb.app.core.run -> idumb.app.engine "),
    ("app/core/now.py", "from idumb import system", "app reaches the system through its services only",
     "idumb.app.core.now -> idumb.system "),
    ("gates/ledger.py", "def late():\n    import pygit2", "pygit2 is imported in git/ only",
     "idumb.gates.ledger -> pygit2 "),
    ("views/page.py", "from sqlite3 import connect", "sqlite3 is imported in store/ only",
     "idumb.views.page -> sqlite3 "),
    ("composition/container.py", "import click", "click is imported in cli/ only",
     "idumb.composition.container -> click "),
    ("app/core/one.py", "import subprocess", PURE, "idumb.app.core.one -> subprocess "),
    ("app/core/two.py", "from pathlib import Path", PURE, "idumb.app.core.two -> pathlib "),
    ("domain/four.py", "import os.path", PURE, "idumb.domain.four -> os "),
    ("store/one.py", "def late():\n    from idumb.store import two", CYCLES, "allowed in idumb.store."),
    ("store/two.py", "def late():\n    from idumb.store import one", CYCLES, "allowed in idumb.store."),
]
# fmt: on


def test_every_forbidden_import_is_named_with_its_contract(house: Path) -> None:
    for place, text, _, _ in FORBIDDEN:
        (house / "idumb" / place).write_text(f"{text}\n", encoding="utf-8")
    report = lint(house).stdout
    assert set(broken(report)) == {contract for _, _, contract, _ in FORBIDDEN}
    assert [row for row in FORBIDDEN if row[3] not in section(report, row[2])] == []


def test_only_app_names_the_classes_of_rooms_that_it_must_not_import() -> None:
    """The contracts ignore imports for the type checker, because signatures of app name what composition gives it."""
    settings = tomllib.loads((source.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    depth = {room: number for number, layer in enumerate(layers) for room in re.findall(r"\w+", layer)}
    assert [
        (source.name_of(place), name)
        for place in source.python_files("idumb")
        if "TYPE_CHECKING" in source.text(place)
        if (room := place.relative_to(source.ROOT / "idumb").parts[0].removesuffix(".py")) in depth and room != "app"
        for _, name in source.imports(place)
        if (other := f"{name}..".split(".")[1]) in depth and name.startswith("idumb.") and other != room
        if depth[other] <= depth[room]
    ] == []


def section(report: str, contract: str) -> str:
    """What the report says of a broken contract, below its underlined name."""
    return report.partition(f"\n{contract}\n---")[2].partition("\n---")[0]


def test_a_room_that_no_contract_knows_is_named(house: Path) -> None:
    for room in ("utils", "app/shared"):
        (house / "idumb" / room).mkdir()
        (house / "idumb" / room / "__init__.py").touch()
    assert broken(lint(house).stdout) == [LAYERS, LAYERS_OF_APP]
