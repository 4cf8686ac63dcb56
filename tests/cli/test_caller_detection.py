"""Commands reserved for a person are refused inside an agent or check that idumb started."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import prepared_project
from tests.support.project import Project, task

if TYPE_CHECKING:
    import pytest

CODE = "agent.not-a-person"
WORDS = [
    ("accept", "T1-01", "--why", "good"),
    ("skip", "T1-01", "--why", "no"),
    ("decide", "T1-01.failure.1", "retry"),
    ("approve", "1"),
    ("approve", "1", "--revoke"),
    ("amend", "1", "--decision", "so it is"),
    ("rollback", "1", "--to", "start", "--yes"),
    ("undo", "--yes"),
    ("stop",),
    ("plan", "discuss", "1", "--answer", "Q-1=yes"),
    ("deinit", "--yes"),
    ("install", "--host", "claude"),
    ("install", "--host", "claude", "--user", "--remove"),
    ("execute-phase", "1", "--approve", "0" * 64),
    ("execute-phase", "1", "--accept-git", "config"),
    ("start", "T1-01", "--approve", "0" * 64),
    ("quick", "Say it", "--files", "a.txt", "--check", "true", "--approve", "0" * 64),
]
ALLOWED = [
    ("status",),
    ("next",),
    ("graph", "1"),
    ("check-plan", "1"),
    ("decisions",),
    ("install", "--host", "claude", "--dry-run"),
]


def _project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.configure("builder: agent\nbindings:\n  agent: {adapter: command, argv: [touch, a.txt]}\n")
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    return project


project = prepared_project(_project)


def mark(monkeypatch: pytest.MonkeyPatch, folder: str | Path, role: str | None = "builder") -> None:
    monkeypatch.setenv("IDUMB_PLACE", f"0123456789abcdef@{folder}")
    if role is not None:
        monkeypatch.setenv("IDUMB_ROLE", role)
        monkeypatch.setenv("IDUMB_TASK", "T1-01")


def test_commands_reserved_for_a_person_are_refused_inside_an_agent(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-GATE-6, R-ASK-2."""
    before = project.repo.ledger()
    mark(monkeypatch, project.folder)
    for words in WORDS:
        answer = project.quick(*words, "--json")
        assert (answer.code, answer.error["code"]) == (4, CODE), answer
        assert "inside the builder of T1-01" in answer.error["message"]
    assert before.changed_paths(project.repo.ledger()) == []


def test_read_only_commands_work_inside_an_agent(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    mark(monkeypatch, project.folder)
    assert [words for words in ALLOWED if project.quick(*words, "--json").code != 0] == []


def test_a_check_is_not_a_person_either(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    mark(monkeypatch, project.folder, role=None)
    answer = project.quick("skip", "T1-01", "--why", "no", "--json")
    assert answer.error["code"] == CODE
    assert "inside a check" in answer.error["message"]


def test_an_agent_in_a_copy_made_by_idumb_belongs_to_this_repository(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("0123456789abcdef", "rehearsals/1/work"):
        mark(monkeypatch, project.repo.clones / place)
        assert project.quick(*project.undoing(), "--json").error["code"] == CODE


def test_an_agent_of_another_repository_does_not_count_in_this_one(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks of a project may themselves run plans somewhere else."""
    other = GitSandbox.create(tmp_path / "other")
    mark(monkeypatch, other.root)
    answer = project.quick(*project.undoing(), "--json")
    assert answer.error["code"] != CODE
