"""A program that sees a folder at another place changes nothing there; see idumb/system/processes/private_layers.py."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from idumb.gates import surroundings
from idumb.system.processes import private_layers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if not surroundings.can_view(str(tmp_path), f"{tmp_path}/probe"):
        pytest.skip("this machine allows no mounts of one's own")
    return tmp_path


def run(folder: Path, *program: str) -> subprocess.CompletedProcess[str]:
    for name in ("user", "place"):
        (folder / name).mkdir()
    (folder / "user/a.txt").write_text("a\n")
    words = private_layers.views({f"{folder}/place": f"{folder}/user"}, f"{folder}/user/layers")
    return subprocess.run([*words, *program], capture_output=True, text=True, check=False)


def test_what_a_program_writes_in_a_view_is_discarded(folder: Path) -> None:
    """Also if the layer is below the folder that the view shows."""
    ran = run(folder, "/bin/sh", "-c", f"cd {folder}/place && cat a.txt && rm a.txt && echo new > b.txt && cat b.txt")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "a\nnew\n", "")
    assert [path.name for path in (folder / "user").iterdir() if path.is_file()] == ["a.txt"]
    assert not list((folder / "place").iterdir())


def test_a_program_that_cannot_start_is_not_blamed_on_the_mounts(folder: Path) -> None:
    ran = run(folder, "/no/such/program")
    assert (ran.returncode, ran.stderr) == (126, "/no/such/program could not be started: No such file or directory\n")


def test_a_place_that_does_not_exist_is_named(folder: Path) -> None:
    words = private_layers.views({f"{folder}/none": tempfile.gettempdir()}, f"{folder}/layers")
    ran = subprocess.run([*words, "/bin/true"], capture_output=True, text=True, check=False)
    assert ran.returncode == 126
    assert ran.stderr.startswith("idumb could not protect your files from this check: ")
