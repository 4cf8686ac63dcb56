"""A strict plan, its approval, and the assertions that tests about approvals share."""

from __future__ import annotations

from typing import Any

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making

STRICT = (
    "mode: strict\nrequirements: {REQ-1: files}\nnon_goals: [{id: N-1, text: nothing else}]\n"
    "success_criteria: [{text: it is there, check: test -s a.txt}]\n"
)
FIELDS = "- **Requirements:** REQ-1\n- **Change:** extending\n"
CHECK = "tests/check.sh"


def strict_task(id: str, path: str, *, fields: str = "", **more: Any) -> str:
    return making(id, path, fields=FIELDS + fields, **more)


def create(sandbox: GitSandbox) -> Project:
    """Return a project with a strict plan of one task, whose check reads a file."""
    project = projects.create(
        sandbox, files={"README.md": "# A project\n", ".gitignore": "*.log\n", CHECK: "test -s a.txt\n"}
    )
    project.plan([strict_task("T1-01", "a.txt", criteria=f"  - [ ] it holds — check: `sh {CHECK}`\n")], head=STRICT)
    return project


def contract(project: Project) -> str:
    return project.contract_hash()


def approve(project: Project, *flags: str) -> Answer:
    answer = project.quick(*project.approving(), *flags, "--json")
    assert answer.code == 0, answer
    return answer


def run(project: Project, *flags: str) -> Answer:
    return project.quick("execute-phase", "1", *flags, "--json")


def strict(project: Project, *flags: str) -> Answer:
    """Approve the phase as it is, and run it in strict mode."""
    approve(project)
    return run(project, "--mode", "strict", *flags)


def may_start(project: Project) -> None:
    """Assert that a run has its consent: it stops only at a file of the user in the way of its first task."""
    project.repo.write("a.txt", "mine\n")
    refused(run(project), "task.dirty-path")
    (project.folder / "a.txt").unlink()


def refused(answer: Answer, code: str) -> dict[str, Any]:
    """The details of a refusal with this code; a question about consent waits for an answer, as the exit code says."""
    details = dict(answer.error["details"])
    assert (answer.code, answer.error["code"]) == (5 if "decision" in details else 4, code), answer
    return details
