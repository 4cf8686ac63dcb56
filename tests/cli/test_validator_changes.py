"""What a validator changes is in no commit (R-GIT-2, R-GIT-6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making

PASS = '{"verdict": "PASS", "evidence": [], "findings": []}'


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "# A project\n", "theirs.txt": "theirs\n"})


def judged_by(project: Project, place: Path, script: str) -> None:
    """A task whose check passes, and a validator that runs a script first."""
    program = place / "judge"
    program.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    project.configure(f"validator: judge\nbindings:\n  judge: {{adapter: command, argv: [{program}]}}\n")
    project.plan([making("T1-01", "a.txt")])


def test_what_a_validator_changes_is_removed_and_none_of_it_is_yours(project: Project, tmp_path: Path) -> None:
    """R-GIT-2: neither in the work nor in an edit of the user's that no commit has. It sees what was proven."""
    project.repo.write("theirs.txt", "theirs, and not committed\n")
    changes = "echo broken > a.txt; echo broken > theirs.txt; rm README.md; echo new > new.txt"
    judged_by(project, tmp_path, f"test -s a.txt && grep -qx theirs theirs.txt || exit 1; {changes}; echo '{PASS}'")
    before = project.repo.ledger()
    answer = project.execute("--no-verify")
    assert answer.code == 0, answer
    assert project.repo.git("show", "--name-only", "--format=", "HEAD~1").split() == ["a.txt"]
    assert projects.user_bytes(before, project.repo.ledger()) == ["a.txt"]
