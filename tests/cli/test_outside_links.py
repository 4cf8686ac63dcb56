"""A link that a task makes out of the working tree refers to bytes that no commit has (R-GIT-5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.plans import run
from tests.support.project import Project, shell, task, write


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside.txt"
    place.write_text("hello\n", encoding="ascii")
    return place


def linking(project: Project, command: str, path: str = "greeting.txt") -> None:
    check = f"grep -q hello {path}"
    project.plan([task("T1-01", files=f"create `{path}`", check=check, steps=[shell(command)])])


def test_a_declared_file_that_became_a_link_to_the_outside_is_not_work(project: Project, outside: Path) -> None:
    linking(project, f"ln -s {outside} greeting.txt")
    answer = run(project, "--max-attempts", "1")
    assert answer.code == 1
    reason = answer.data["tasks"][0]["reason"]
    assert f"greeting.txt is a link that leads out of the working tree, to {outside}" in reason
    assert project.events("--kind", "evidence.recorded") == []
    assert "Task T1-01" not in project.subjects()


def test_existing_links_and_links_that_stay_inside_are_accepted(project: Project, outside: Path) -> None:
    project.repo.link("old", str(outside))
    project.repo.commit("a link", "old")
    steps = [write("said.txt", "hello\n"), shell("ln -s said.txt greeting.txt; ln -s not-yet later.txt")]
    files = "create `greeting.txt`, `said.txt`, `later.txt`"
    project.plan([task("T1-01", files=files, check="grep -q hello greeting.txt old", steps=steps)])
    assert run(project, "--no-verify").code == 0
