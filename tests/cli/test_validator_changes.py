"""What a validator changes fails the attempt (R-GIT-2, R-GIT-6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
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


def execute(project: Project, *flags: str) -> Answer:
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    return project.quick("execute-phase", "1", "--approve", consent, "--max-attempts", "1", "--no-verify", *flags)


def test_a_validator_that_changes_files_fails_the_attempt_and_touches_none_of_yours(
    project: Project, tmp_path: Path
) -> None:
    """R-GIT-2: neither the work nor an edit of the user's that no commit has."""
    project.repo.write("theirs.txt", "theirs, and not committed\n")
    judged_by(project, tmp_path, f"echo broken > a.txt; echo broken > theirs.txt; rm README.md; echo '{PASS}'")
    before = project.repo.ledger()
    answer = execute(project, "--json")
    assert answer.code == 1
    assert answer.data["tasks"][0]["reason"] == (
        "changed while the validator judge judged it: README.md, a.txt, theirs.txt"
    )
    assert projects.user_bytes(before, project.repo.ledger()) == []
