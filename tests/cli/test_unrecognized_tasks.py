"""R-PLAN-5: a task that is not recognized is an error, which stops no plan approved before that rule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from idumb.markdown.plans import plan_parser
from tests.support.plans import PLAN, edit
from tests.support.project import Project, making, task

LOST = "### Add the thing\n\n- **Depends on:** none\n- **Files:** create `x.txt`\n- **Verify:** `false`\n\n"
CHOICE = "- **Kind:** decision\n- **Options:**\n  - one: the first\n  - two: the second\n"


def plan(project: Project, *tasks: str) -> None:
    project.plan(list(tasks))
    edit(project, "### T1-", LOST + "### T1-")


@pytest.fixture
def earlier_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The rules that came before read such headings as text; they end with `undo`."""
    whole = plan_parser.parse

    def as_agreed(data: bytes, path: str, *others: Any, **flags: Any) -> Any:
        return whole(data, path, *others, **flags).as_agreed

    with monkeypatch.context() as rules:
        rules.setattr(plan_parser, "parse", as_agreed)
        yield rules


def test_a_heading_with_fields_and_no_id_stops_the_plan_at_its_line(project: Project) -> None:
    plan(project, making("T1-02", "a.txt"))
    line = (project.folder / PLAN).read_text(encoding="utf-8").split("\n").index("### Add the thing") + 1
    for command in ("check-plan", "execute-phase"):
        answer = project.quick(command, "1", "--json")
        assert (answer.code, answer.error["code"]) == (3, "plan.invalid")
        findings = answer.data["findings"] if command == "check-plan" else answer.error["details"]["findings"]
        wrong = [(f["code"], f["line"]) for f in findings if f["severity"] == "error"]
        assert wrong == [("task.heading-without-id", line)]
        text_answer = project.quick(command, "1")
        assert f"{PLAN}:{line}" in text_answer.out + text_answer.err


def test_a_started_plan_continues_under_the_rules_of_its_lock(
    project: Project, earlier_rules: pytest.MonkeyPatch
) -> None:
    """Questions, answers, amendment and resume, each under the approved contract."""
    plan(project, making("T1-01", "a.txt"), task("T1-02", after="T1-01", fields=CHOICE))
    hash = project.approval()
    begun = project.quick("execute-phase", "1", "--approve", hash, "--json")
    assert begun.code == 5, begun
    earlier_rules.undo()
    assert project.quick("status").code == 0
    assert project.quick("next").code == 0
    checked = project.quick("check-plan", "1", "--json")
    assert (checked.code, checked.data["contract_hash"]) == (0, hash)
    assert [f["code"] for f in checked.data["findings"] if "no task id" in f["message"]] == ["task.heading-without-id"]
    waiting = project.quick("decisions", "--json").data["decisions"]
    assert waiting
    assert project.quick("amend", "1", "--decision", "all the same", "--yes", "--json").code == 0
    assert project.quick("decide", waiting[0]["id"], "one", "--json").code == 0
    ended = project.quick("resume", "1", "--json")
    assert ended.code == 0, ended
    assert Path(project.folder, "a.txt").is_file()
