"""Tasks that a person builds: what happens to the files between the question and the answer.

`unit/app/test_work_by_hand.py` has which files are their work.
"""

from __future__ import annotations

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

TYPO, FIXED = "Teh fox\n", "The fox\n"
WORKS = {"modify": "README.md", "create": "new.txt"}


def _create(sandbox: GitSandbox) -> Project:
    made = projects.create(sandbox)
    made.repo.write("README.md", TYPO)
    made.repo.commit("a typo", "README.md")
    return made


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return _create(sandbox)


def by_hand(verb: str, path: str, check: str = "") -> str:
    fields = "- **Builder:** human\n"
    return task("T1-01", files=f"{verb} `{path}`", check=check or f"grep -q The {path}", fields=fields)


def asked(project: Project, *tasks: str, policy: str = "task") -> None:
    """Start a run of these tasks, the first of which waits for a person."""
    project.configure(f"git: {{commit: {policy}}}\n")
    project.plan(tasks)
    waits = project.execute()
    assert (waits.code, waits.error["code"]) == (5, "run.waiting"), waits.out


def answered(project: Project, *flags: str) -> Answer:
    decided = project.json("decide", "T1-01.work.1", "done")
    assert decided.code == 0, decided.out
    return project.resume(*flags)


def files_of(answer: Answer, number: int = 0) -> list[str]:
    return [str(path) for path in answer.data["tasks"][number]["files"]]


@pytest.mark.parametrize(
    ("verb", "policy"), seed.one_on_a_push([("modify", "none"), ("create", "task")], "a person's work")
)
def test_what_a_person_does_before_the_answer_is_the_work_of_the_task(project: Project, verb: str, policy: str) -> None:
    path = WORKS[verb]
    before = project.read(path) if project.exists(path) else None
    asked(project, by_hand(verb, path), policy=policy)
    project.repo.write(path, FIXED)
    project.repo.write("notes.txt", "mine\n")
    answer = answered(project)
    assert answer.code == 0, answer.out
    assert files_of(answer) == [path]
    assert (f"?? {path}" in project.repo.status() or f" M {path}" in project.repo.status()) == (policy == "none")
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    assert (project.read(path) if project.exists(path) else None) == before
    assert project.json(*project.undoing()).code == 0
    assert project.read(path) == FIXED
    assert project.read("notes.txt") == "mine\n"
