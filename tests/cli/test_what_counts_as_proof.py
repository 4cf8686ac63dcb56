"""Nothing counts as proof by default: what nobody proved makes the end partial, and a person decides (R-RUN-3)."""

from __future__ import annotations

import json

import pytest

from tests.support import plans
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, create, making, task, write

BOXES = "  - [ ] it is there — check: `test -s a.txt`\n  - [ ] it is nice\n"


def made(*, criteria: str = BOXES, fields: str = "") -> str:
    return task("T1-01", files="create `a.txt`", criteria=criteria, fields=fields, steps=[write("a.txt", "made\n")])


def ended(answer: Answer, reason: str) -> str:
    """Return the id of the question whether the phase counts as verified."""
    assert (answer.code, answer.error["code"]) == (1, "verification.partial"), answer.out
    assert reason in answer.data["verification"]["reason"]
    return str(answer.data["verification"]["decision"])


def test_an_unproven_criterion_of_a_task_leaves_the_phase_partial_until_a_person_decides(sandbox: GitSandbox) -> None:
    project = create(sandbox)
    project.plan([made()])
    question = ended(plans.run(project), "T1-01 AC-2 has no proof")
    assert question in project.quick("decisions").out
    assert project.quick("decide", question, "yes").code == 0
    assert "Phase 1 The first step: verified" in " ".join(project.quick("status").out.split())


def test_a_requirement_that_no_task_serves_leaves_the_phase_partial(sandbox: GitSandbox) -> None:
    """R-RUN-13: a requirement is met by a task that is done."""
    project = create(sandbox)
    head = "requirements:\n  REQ-1: A\n  REQ-2: B\n"
    project.plan([making("T1-01", "a.txt", fields="- **Requirements:** REQ-1\n")], head=head)
    ended(plans.run(project), "REQ-2 is not met: no task names it")


IMPORTED = "- **x-source-done:** yes\n- **x-source-digest:** 00\n"


def test_a_task_imported_as_done_is_listed_as_done_before_idumb_and_leaves_nothing_partial(sandbox: GitSandbox) -> None:
    project = create(sandbox)
    old = task("T1-01", criteria="  - [ ] it was built\n", fields=f"- **Requirements:** REQ-1\n{IMPORTED}")
    new = making("T1-02", "b.txt", after="T1-01", fields="- **Requirements:** REQ-2\n")
    project.plan([old, new], head="requirements:\n  REQ-1: A\n  REQ-2: B\n")
    answer = plans.run(project)
    assert (answer.code, answer.data["verification"]["status"]) == (0, "passed")
    report = project.read(".planning/phases/1/1-VERIFICATION.md")
    assert "| T1-01 | AC-1: it was built | unproven | done before idumb |" in report
    assert "| REQ-1: A | yes | T1-01 (done before idumb)" in report
    assert "Gaps" not in report or "None" in report.partition("## Gaps")[2]
    assert "**Done before idumb:** 1" in project.read(".planning/phases/1/1-SUMMARY.md")
    assert "done before idumb" in project.quick("show", "T1-01").out


def controls(project: Project) -> dict[str, str]:
    (*_, last) = project.quick("show", "T1-01", "--json").data["attempts"]
    return {row["subject"]: row["control"] for row in last["evidence"] if "control" in row}


@pytest.mark.parametrize("builder", ["steps", "agent"])
def test_a_check_that_passed_before_the_work_is_named_for_the_fastest_builder(
    sandbox: GitSandbox, builder: str
) -> None:
    project = create(sandbox)
    steps = [write("a.txt", "made\n")] if builder == "steps" else []
    if not steps:
        script = json.dumps("echo made > a.txt")
        project.configure(f"builder: agent\nbindings:\n  agent: {{adapter: command, argv: [sh, -c, {script}]}}\n")
    boxes = "  - [ ] a — check: `test -s a.txt`\n  - [ ] readme — check: `test -s README.md`\n"
    project.plan([task("T1-01", files="create `a.txt`", criteria=boxes, steps=steps)])
    answer = project.quick("execute-phase", "1", "--approve", project.approval())
    assert (answer.code, controls(project)) == (0, {"AC-1": "failed", "AC-2": "passed"}), answer
    for text in (answer.err, project.quick("show", "T1-01").out):
        named = [line for line in text.splitlines() if "passed before the work too" in line]
        assert ["AC-2" in line for line in named] == [True], text
    summary = project.read(".planning/phases/1/1-SUMMARY.md")
    assert "Passed before the work, and so does not show that the work was done: AC-2" in summary
