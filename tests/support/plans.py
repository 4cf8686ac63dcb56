"""A run that halted in its second of three tasks, and how to end a command at one place."""

from __future__ import annotations

from typing import Any

from tests.support.answer import Answer
from tests.support.project import Project, making, shell, task

PLAN = ".planning/phases/1/01-PLAN.md"
FOURTH = making("T1-04", "e.txt", after="T1-03")


def halted(project: Project) -> Project:
    """T1-01 is done, T1-02 wrote a file that it does not declare, T1-03 was not begun."""
    both = [shell("echo b > b.txt; echo c > c.txt")]
    tasks = [
        making("T1-01", "a.txt"),
        task("T1-02", files="create `b.txt`", check="test -s b.txt", after="T1-01", steps=both),
        making("T1-03", "d.txt", after="T1-01, T1-02"),
    ]
    project.plan(tasks)
    assert run(project).code == 5
    return project


def run(project: Project, *flags: str) -> Answer:
    consent = project.quick("check-plan", "1", "--json").data["consent_hash"]
    return project.quick("execute-phase", "1", "--approve", consent, *flags, "--json")


def amend(project: Project, *flags: str) -> Answer:
    return project.quick("amend", "1", *flags, "--json")


def edit(project: Project, old: str, new: str) -> None:
    """Change the plan as a person does in an editor."""
    place = project.folder / PLAN
    text = place.read_text(encoding="utf-8")
    assert old in text
    place.write_text(text.replace(old, new, 1), encoding="utf-8")


def versions(project: Project) -> list[dict[str, Any]]:
    """Return the payloads of all amendments of the newest run."""
    return [e["payload"] for e in project.quick("log", "1", "--kind", "contract.amended", "--json").data["events"]]


def run_id(project: Project) -> str:
    return str(project.quick("check-plan", "1", "--diff", "--json").data["since"]["run"])
