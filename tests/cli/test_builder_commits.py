"""The commit policy `builder`: agents commit in a clone, and what they commit is checked and taken (R-GIT-8)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, task

SETTINGS = "git: {{commit: builder}}\nrun: {{max_attempts: {attempts}}}\nbuilder: agent\nbindings:\n  agent: {agent}\n"
PLAIN = "echo one > a.txt; git add a.txt; git commit -qm 'Add a'"


def project_with(sandbox: GitSandbox, script: str, *, attempts: int = 1, tasks: tuple[str, ...] = ()) -> Project:
    """A project whose builder is a shell script that is started in the clone."""
    project = projects.create(sandbox, files={"README.md": "# A project\n", "kept.txt": "kept\n"})
    agent = f"{{adapter: command, argv: [sh, -c, {json.dumps(script)}]}}"
    project.configure(SETTINGS.format(attempts=attempts, agent=agent))
    project.plan(tasks or (task("T1-01", files="create `a.txt`", check="test -s a.txt"),))
    return project


def execute(project: Project, *flags: str) -> Answer:
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    return project.quick("execute-phase", "1", "--approve", consent, "--no-verify", *flags, "--json")


def reason(answer: Answer) -> str:
    return str(answer.data["tasks"][0]["reason"])


def test_the_commits_of_the_builder_become_the_users_history_as_they_are(sandbox: GitSandbox) -> None:
    script = (
        "echo one > a.txt; git add a.txt; git commit -qm 'Add a' --author 'An Agent <agent@example.invalid>';"
        " echo two >> a.txt; git commit -qam 'Say two'"
    )
    project = project_with(sandbox, script)
    base = sandbox.head()
    sandbox.write("README.md", "staged\n")
    sandbox.git("add", "README.md")
    sandbox.write("README.md", "mine\n")
    answer = execute(project)
    assert answer.code == 0, answer
    made = sandbox.git("log", "--reverse", "--format=%H %s|%an|%cn", f"{base}..HEAD").splitlines()
    assert [line.partition(" ")[2] for line in made[:2]] == [
        "Add a|An Agent|Pat Tester",
        "Say two|Pat Tester|Pat Tester",
    ]
    tip = made[1].partition(" ")[0]
    row = answer.data["tasks"][0]
    assert (row["status"], row["commit"], row["git_hash"]) == ("completed", tip, tip)
    assert sandbox.git("show", "HEAD:a.txt") == "one\ntwo"
    assert [line for line in sandbox.status() if ".idumb" not in line] == ["MM README.md"]
    assert sandbox.git("show", ":README.md") == "staged"
    sandbox.git("fsck", "--strict")
    assert not list((project.folder / ".git" / "idumb").glob("clones/*"))
