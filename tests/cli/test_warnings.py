"""Warnings in JSON and events: uncovered files, and links and attributes that a restore does not keep."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, edit, task


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files={"app.txt": "one\ntwo\n", ".gitignore": "*.log\n"})
    project.plan(
        [task("T1-01", files="modify `app.txt`", check="grep -q TWO app.txt", steps=[edit("app.txt", "two", "TWO")])]
    )
    return project


def leave_out(project: Project) -> None:
    """An ignored file, a special file and a nested repository."""
    project.repo.write("debug.log", "l")
    os.mkfifo(project.folder / "pipe")
    GitSandbox.create(project.folder / "inner").write("a", "a")


NAMED = ("ignored by git): debug.log", "neither file, link nor folder): pipe", "a repository of its own): inner")


def test_files_outside_all_snapshots_are_in_the_warnings(project: Project) -> None:
    leave_out(project)
    answer = project.execute()
    assert answer.code == 0, answer
    warnings = "\n".join(answer.object["warnings"])
    assert [words for words in NAMED if words not in warnings] == []
    assert project.resume().object["warnings"] == []


def test_a_refusal_includes_its_warnings(project: Project) -> None:
    leave_out(project)
    project.repo.write("app.txt", "mine\ntwo\n")
    answer = project.execute()
    assert answer.error["code"] == "task.dirty-path"
    assert any("pipe" in words for words in answer.object["warnings"])


def test_files_outside_all_snapshots_are_a_note_among_the_events(project: Project) -> None:
    leave_out(project)
    answer = project.quick("execute-phase", "1", "--approve", project.approval(), "--events")
    lines = [json.loads(line) for line in answer.out.splitlines()]
    notes = "\n".join(line["payload"]["text"] for line in lines if line["kind"] == "note")
    assert [words for words in NAMED if words not in notes] == []
    assert next(line["seq"] for line in lines if line["kind"] != "note") == 1


def test_a_rollback_names_the_hard_links_and_attributes_it_cannot_keep(project: Project, tmp_path: Path) -> None:
    """F20: the other link keeps the bytes that the task made."""
    assert project.execute("--no-verify").code == 0
    os.link(project.folder / "app.txt", tmp_path / "other")
    expected = ["app.txt is one of 2 links"]
    with contextlib.suppress(OSError, AttributeError):  # where there are no extended attributes
        os.setxattr(project.folder / "app.txt", "user.colour", b"green")
        expected.append("user.colour")
    answer = project.json("rollback", "1", "--to", "start", "--yes")
    assert answer.code == 0
    warnings = "\n".join(answer.object["warnings"])
    assert [words for words in expected if words not in warnings] == []
    assert (tmp_path / "other").read_text() == "one\nTWO\n"
    assert (project.folder / "app.txt").read_text() == "one\ntwo\n"
    os.link(project.folder / "app.txt", tmp_path / "third")
    assert expected[0] in project.quick("undo", "--yes").err
