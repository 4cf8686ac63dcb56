"""Paths on the command line, relative to the root: of a step plan, which exists, and of files that a task declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.cli.arguments import declared_path, step_plan_path

# In each row: the folder of the user, the argument, the path of a step plan, the path that a task declares.
CASES = {
    "absolute, inside": (".", "{root}/docs/a.yaml", "docs/a.yaml", "{root}/docs/a.yaml"),
    "absolute, outside": (".", "{root}/../b.yaml", "../b.yaml", "{root}/../b.yaml"),
    "a name that is a file": (".", "top.yaml", "top.yaml", "top.yaml"),
    "a name that is no file": ("docs", "new.yaml", "new.yaml", "docs/new.yaml"),
    "a path where no file is": ("docs", "../new.yaml", "new.yaml", "new.yaml"),
    "a slash at the end": (".", "docs/", "docs", "docs/"),
    "a parent folder": (".", "docs/../top.yaml", "top.yaml", "top.yaml"),
    "outside the root": (".", "../b.yaml", "../b.yaml", "../b.yaml"),
    "from a folder": ("docs", "a.yaml", "docs/a.yaml", "docs/a.yaml"),
    "from a folder, upwards": ("docs", "../top.yaml", "top.yaml", "top.yaml"),
    "through a link to a folder": (".", "link/a.yaml", "docs/a.yaml", "link/a.yaml"),
    "a link to a file": (".", "docs/alias.yaml", "docs/alias.yaml", "docs/alias.yaml"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "docs").mkdir(parents=True)
    for file in (root / "top.yaml", root / "docs" / "a.yaml", tmp_path / "b.yaml"):
        file.write_text("steps: []\n", encoding="utf-8")
    (root / "link").symlink_to("docs")
    (root / "docs" / "alias.yaml").symlink_to("a.yaml")
    return root


@pytest.mark.parametrize("case", CASES)
def test_each_kind_of_path_is_given_from_the_root(root: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    folder, argument, plan, declared = (text.format(root=root) for text in CASES[case])
    monkeypatch.chdir(root / folder)
    assert step_plan_path(argument, str(root)) == plan
    assert declared_path(argument, str(root)) == declared
