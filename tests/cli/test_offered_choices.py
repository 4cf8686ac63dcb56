"""Every choice that a refusal or a failure offers is a command that can succeed in that state (R-ASK-1, R-RUN-7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import choices, seed
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, write

PLAN = ".planning/phases/1/01-PLAN.md"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "# A project\n", ".env": "A=1\n"})


def given(answer: Answer) -> list[dict[str, Any]]:
    return list(answer.error["details"]["choices"])


def offered(answer: Answer) -> list[str]:
    return [row["id"] for row in given(answer)]


@pytest.mark.parametrize(
    ("path", "ways"),
    seed.one_on_a_push(
        [
            (PLAN, ["look", "leave-out", "retry"]),
            (".env", ["look", "amend", "leave-out", "retry"]),
            ("stray.txt", ["look", "amend", "keep", "leave-out", "retry"]),
        ],
        "a changed path",
    ),
)
def test_after_a_task_changed_its_plan_or_a_protected_path(project: Project, path: str, ways: list[str]) -> None:
    """R-ASK-1, R-LOCK-5, R-RUN-7: no choice allows a forbidden write."""
    steps = [write("a.txt", "made\n"), shell(f"echo '# x' >> {path}")]
    project.plan([making("T1-01", "a.txt", steps=steps)])
    failed = project.execute("--on-deviation", "stop")
    assert (failed.code, failed.error["code"], offered(failed)) == (1, "run.halted", ways)
    assert project.json("decisions").data["decisions"] == []
    assert choices.refused(project, failed) == {}
    again = project.resume()
    assert given(again) == given(failed) or choices.refused(project, again) == {}
