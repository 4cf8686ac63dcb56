"""The user's tree is saved before a validator runs; its changes are named (R-GIT-2, R-GIT-6)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task, write

PASS = '{"verdict": "PASS", "evidence": [], "findings": []}'


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "# A project\n", "theirs.txt": "theirs\n"})


def judged_by(project: Project, place: Path, script: str, *, settings: str = "", makes: bool = True) -> None:
    """A task whose check passes, and a validator that runs a script first."""
    program = place / "judge"
    program.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    project.configure(f"validator: judge\nbindings:\n  judge: {{adapter: command, argv: [{program}]}}\n{settings}")
    files, steps = ("create `a.txt`", (write("a.txt", "made\n"),)) if makes else (None, ())
    proof = "test -s a.txt" if makes else "test -s README.md"
    if not makes:
        steps = ({"tool": "run", "intent": "look", "arguments": {"command": "true"}},)
    project.plan([task("T1-01", files=files, check=proof, steps=steps)])


def execute(project: Project, *flags: str) -> Answer:
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    return project.quick("execute-phase", "1", "--approve", consent, "--max-attempts", "1", "--no-verify", *flags)


def snapshots(project: Project) -> list[dict[str, Any]]:
    return [dict(event["payload"]) for event in project.events("1", "--kind", "snapshot.taken")]


def brought_back(project: Project, text: str, path: str) -> str:
    """Return the output of the command that is printed for a path."""
    commands = text.partition("Earlier state: ")[2].partition(".\n")[0].removesuffix(".").split("; ")
    (command,) = [one for one in commands if one.endswith(f":worktree/{path}")]
    return subprocess.run(["sh", "-c", command], cwd=project.folder, capture_output=True, text=True, check=True).stdout


def test_a_validator_that_changes_files_fails_the_attempt_and_the_restore_command_is_named(
    project: Project, tmp_path: Path
) -> None:
    """R-GIT-2: the work, a file of the user's, and an edit of the user's that no commit has."""
    project.repo.write("theirs.txt", "theirs, and not committed\n")
    judged_by(project, tmp_path, f"echo broken > a.txt; echo broken > theirs.txt; rm README.md; echo '{PASS}'")
    answer = execute(project)
    assert answer.code == 1
    assert "changed while the validator judge judged it: README.md, a.txt, theirs.txt" in answer.out + answer.err
    assert "While the validator judge judged T1-01, files changed in your own working tree" in answer.err
    for path, text in (
        ("a.txt", "made\n"),
        ("theirs.txt", "theirs, and not committed\n"),
        ("README.md", "# A project\n"),
    ):
        assert brought_back(project, answer.err, path) == text
    (event,) = snapshots(project)
    assert (event["role"], event["binding"]) == ("validator", "judge")
    assert project.repo.kept()[event["ref"]] == event["snapshot"]
    assert project.quick("doctor", "--json").code == 0


def test_no_snapshot_is_taken_if_the_tree_is_that_of_the_last_one(project: Project, tmp_path: Path) -> None:
    """R-GIT-2: files that the validator changes can be restored from that snapshot."""
    judged_by(project, tmp_path, f"echo broken > theirs.txt; echo '{PASS}'", makes=False)
    refs = len(project.repo.kept())
    answer = execute(project, "--json")
    assert answer.code == 1, answer
    assert snapshots(project) == []
    assert answer.data["tasks"][0]["reason"] == "changed while the validator judge judged it: theirs.txt"
    (warning,) = [one for one in answer.object["warnings"] if "judged T1-01" in one]
    assert brought_back(project, warning, "theirs.txt") == "theirs\n"
    names = project.repo.kept()
    assert len(names) > refs
    assert [name for name in names if "/validator/" in name] == []


def test_a_validator_that_changes_nothing_reports_nothing(project: Project, tmp_path: Path) -> None:
    """R-GIT-2: quiet; a second call of the same attempt takes no second snapshot."""
    cited = '{"verdict": "PASS", "evidence": [{"criterion": "AC-1", "file": "nothere.py", "line": 9}], "findings": []}'
    judged_by(project, tmp_path, f"echo '{cited}'")
    answer = execute(project, "--json")
    assert [one for one in answer.object["warnings"] if "judged T1-01" in one] == []
    assert len(project.events("1", "--kind", "call.retried")) == 1
    assert len(snapshots(project)) == 1


def test_files_that_a_clone_s_validator_writes_in_the_user_s_tree_are_named_too(
    project: Project, tmp_path: Path
) -> None:
    """R-GIT-2: the file is not part of the task, and its earlier bytes are kept."""
    project.repo.write("theirs.txt", "mine, meanwhile\n")
    script = f"echo broken > {json.dumps(str(project.folder))}/theirs.txt; echo '{PASS}'"
    judged_by(project, tmp_path, script, settings="run: {workspace: clone}\n")
    answer = execute(project)
    assert answer.code == 0, answer
    assert "theirs.txt (changed)" in answer.err
    assert brought_back(project, answer.err, "theirs.txt") == "mine, meanwhile\n"
    assert project.read("a.txt") == "made\n"
