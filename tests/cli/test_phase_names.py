"""Every command finds a phase under each of its names: `1`, `01`, the name of its folder."""

from __future__ import annotations

import shutil

import pytest

from tests.support.project import Project, making

COMMANDS = (
    *(("check-plan",), ("prove",), ("audit", "workspace"), ("audit", "bundle"), ("log",)),
    *(("next",), ("graph",), ("verify-work",)),
)
WITHOUT_PLAN = (("log",),)


def outcome_of(project: Project, *command: str) -> tuple[int, str]:
    answer = project.quick(*command, "--json")
    return answer.code, answer.error["code"] if answer.object["error"] else ""


@pytest.mark.nightly
def test_every_command_finds_the_run_under_each_name(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")], folder="01-first")
    assert project.execute("--no-verify").data["outcome"] == "complete"
    for command in COMMANDS:
        outcomes = {outcome_of(project, *command, name) for name in ("01", "01-first")}
        assert len(outcomes) == 1, (command, outcomes)
        assert outcomes <= {(0, "")}, (command, outcomes)
    assert project.events("01") == project.events("1") != []
    shutil.rmtree(project.folder / ".planning" / "phases")
    for command in WITHOUT_PLAN:
        assert outcome_of(project, *command, "01") == outcome_of(project, *command, "1")
    assert project.events("01") == project.events("1") != []
