"""Links that a program in a sandbox could have made are not followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.system import programs
from tests.support.cases import every


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """`work` is where a program may write."""
    (tmp_path / "work/deep").mkdir(parents=True)
    (tmp_path / "home/cache").mkdir(parents=True)
    (tmp_path / "work/planted").symlink_to(tmp_path / "home")
    (tmp_path / "work/deep/up").symlink_to("../../home")
    (tmp_path / "mine").symlink_to("home")
    (tmp_path / "indirect").symlink_to("work/planted")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@every(
    "path, real",
    [
        ("work/planted", None),
        ("work/planted/cache", None),
        ("work/deep/up", None),
        ("indirect/cache", None),
        ("mine/../work/planted", None),
        ("loop", None),
        ("mine/cache", "home/cache"),
        ("mine/./cache/missing", "home/cache/missing"),
        ("work/deep", "work/deep"),
        ("work/../mine", "home"),
    ],
)
def test_a_link_counts_only_where_no_program_could_have_made_it(path: str, real: str | None, top: Path) -> None:
    found = programs.real_path(f"{top}/{path}", [f"{top}/work"])
    assert found == (None if real is None else str(top / real))


def test_a_link_at_a_place_with_a_similar_name_counts(top: Path) -> None:
    (top / "work-2").mkdir()
    (top / "work-2/mine").symlink_to(top / "home")
    assert programs.real_path(f"{top}/work-2/mine", [f"{top}/work"]) == str(top / "home")
