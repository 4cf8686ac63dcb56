"""Files that tools leave, in a project that does not ignore them: in no commit, no failure. R-GIT-5."""

from __future__ import annotations

import json

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, task

LEAVES = (
    "mkdir -p __pycache__ .venv/src; echo $$ > __pycache__/a.pyc; test -e .venv/pipe || mkfifo .venv/pipe;"
    " git init -q .venv/src/pkg; echo > .venv/src/pkg/x"
)


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "one\n"})


def configure(project: Project, script: str) -> None:
    place = project.folder.parent / "actor"
    place.write_text(f"{script}\nexit 0\n")
    binding = f"bindings:\n  b: {{adapter: command, argv: [sh, {json.dumps(str(place))}]}}\n"
    project.configure(f"builder: b\nrun: {{max_attempts: 1}}\n{binding}")


@pytest.mark.parametrize("commits", seed.one_on_a_push([":", "git add -- *.py; git commit -qm work"], "tool files"))
def test_builders_and_checks_leave_them_and_the_run_ends_well(project: Project, commits: str) -> None:
    check = "mkdir -p __pycache__; date +%N > __pycache__/a.pyc; touch .coverage; test -s {}"
    project.plan(
        [
            task("T1-01", files="create `a.py`", check=check.format("a.py")),
            task("T1-02", files="create `b.py`", check=check.format("b.py"), after="T1-01"),
        ],
        tail=f"\n## Success criteria\n\n- [ ] it works — check: `{check.format('b.py')}`\n",
    )
    configure(project, f"{LEAVES}; test -e a.py && echo b > b.py; echo a > a.py; {commits}")
    ended = run(project)
    assert ended.code == 0, ended
    assert ended.object["warnings"] == []
    tracked = project.repo.git("ls-files").split()
    assert {"a.py", "b.py"} <= set(tracked)
    assert not [path for path in tracked if path.startswith(("__pycache__", ".venv", ".coverage"))]
    assert not project.exists("__pycache__")
