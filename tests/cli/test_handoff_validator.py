"""A validator that works elsewhere: the work waits for its verdict across commands (R-ADAPT-2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.plans import run
from tests.support.project import Project, task

BUILDS = 'printf x >> "$IDUMB_REPOSITORY/../called"; printf done >> a.txt'


def configure(project: Project, *, options: str = "", more: str = "", builder: str = "builder: builds\n") -> None:
    argv = json.dumps(["sh", "-c", BUILDS])
    bindings = f"bindings:\n  builds: {{adapter: command, argv: {argv}}}\n  away: {{adapter: handoff{options}}}\n"
    project.configure(f"{builder}validator: away\n{more}{bindings}")


def request_files(project: Project) -> list[Path]:
    folder = project.folder / ".git/idumb/worktrees/main/handoffs"
    return sorted(p for p in folder.glob("T1-01-validator-*.md") if not p.name.endswith(".answer.md"))


def answer(place: Path, verdict: str) -> None:
    verdict_text = json.dumps({"verdict": verdict, "findings": []})
    text = f"---\nhandoff: {place.stem}\noutcome: done\n---\n```json\n{verdict_text}\n```\nEND OF ANSWER\n"
    place.with_name(f"{place.stem}.answer.md").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("builder", seed.one_on_a_push(["builder: builds\n", ""], "builder"))
def test_the_work_waits_and_is_not_repeated(project: Project, builder: str) -> None:
    """R-ADAPT-2: nor is asked whether an effect may be had twice, or what had to hold before the work."""
    before = "- **Preconditions:** file absent a.txt\n- **Rollback:** compensatable\n  - `true`\n"
    fields = before if builder else ""
    steps = [] if builder else [projects.write("a.txt", "done")]
    project.plan([task("T1-01", files="create `a.txt`", check="grep -qx done a.txt", fields=fields, steps=steps)])
    configure(project, builder=builder)
    waits = run(project)
    assert waits.code == 5, waits
    assert waits.data["tasks"][0]["status"] == "waiting"
    (place,) = request_files(project)
    assert str(place) in waits.data["tasks"][0]["reason"]
    (event,) = project.events("--kind", "handoff.asked")
    question, _, ticket = place.stem.rpartition("-")  # the request may be predictable; its name is not
    assert (event["payload"]["question"], event["payload"]["ticket"], len(ticket)) == (question, ticket, 16)
    again = project.quick("resume", "1", "--json")
    assert (again.code, request_files(project)) == (5, [place])
    assert len(project.events("--kind", "handoff.asked")) == 1
    answer(place, "PASS")
    assert project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert project.statuses() == {"T1-01": "completed"}
    assert project.read("a.txt") == "done"
    if builder:
        assert (project.folder.parent / "called").read_text(encoding="utf-8") == "x"
