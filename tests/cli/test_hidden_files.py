"""Files that become ignored during a task are detected, reported and, if accepted, delivered. R-GIT-5."""

from __future__ import annotations

import json

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, task

HIDES = "mkdir -p helper; echo check.sh > helper/.gitignore; echo 'test -s a.txt' > helper/check.sh; echo a > a.txt"
ROOT = "echo helper > .gitignore; mkdir -p helper; echo exit > helper/check.sh; echo a > a.txt"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "one\n"})


def configure(project: Project, script: str, settings: str = "run: {max_attempts: 1}\n") -> None:
    place = project.folder.parent / "actor"
    place.write_text(f"{script}\nexit 0\n")
    binding = f"bindings:\n  b: {{adapter: command, argv: [sh, {json.dumps(str(place))}]}}\n"
    project.configure(f"builder: b\n{settings}{binding}")


def undeclared(project: Project) -> list[str]:
    (ended,) = project.events("1", "--kind", "attempt.finished")
    return [row["path"] for row in ended["payload"]["ledger"] if row["status"] == "undeclared"]


@pytest.mark.parametrize(
    "script", seed.one_on_a_push([HIDES, ROOT, f"{HIDES}; git add a.txt; git commit -qm x"], "hidden files")
)
def test_files_hidden_by_new_rules_are_undeclared_changes(project: Project, script: str) -> None:
    project.plan([task("T1-01", files="create `a.txt`", check="sh helper/check.sh")])
    configure(project, script)
    ended = run(project, "--no-verify")
    assert ended.code in {1, 5}, ended
    assert undeclared(project) == [".gitignore" if script == ROOT else "helper/.gitignore", "helper/check.sh"]
    assert [words for words in ended.object["warnings"] if "git ignores, because of" in words], ended
