"""R-PLAN-5: a task that is not recognized is an error."""

from __future__ import annotations

from tests.support.plans import PLAN, edit
from tests.support.project import Project, making

LOST = "### Add the thing\n\n- **Depends on:** none\n- **Files:** create `x.txt`\n- **Verify:** `false`\n\n"


def test_a_heading_with_fields_and_no_id_stops_the_plan_at_its_line(project: Project) -> None:
    project.plan([making("T1-02", "a.txt")])
    edit(project, "### T1-", LOST + "### T1-")
    line = (project.folder / PLAN).read_text(encoding="utf-8").split("\n").index("### Add the thing") + 1
    for command in ("check-plan", "execute-phase"):
        answer = project.quick(command, "1", "--json")
        assert (answer.code, answer.error["code"]) == (3, "plan.invalid")
        findings = answer.data["findings"] if command == "check-plan" else answer.error["details"]["findings"]
        wrong = [(f["code"], f["line"]) for f in findings if f["severity"] == "error"]
        assert wrong == [("task.heading-without-id", line)]
        text_answer = project.quick(command, "1")
        assert f"{PLAN}:{line}" in text_answer.out + text_answer.err
