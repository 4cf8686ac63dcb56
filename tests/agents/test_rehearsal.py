"""A phase planned, built, judged and verified by a real agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents import installed, rehearsal
from tests.agents.installed import Ended
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]

ROLES = ("planner", "plan-checker", "verifier")


def beside(project: Project, *command: str) -> Ended:
    """Run a command beside the scripted model; fail if anything looks up another host."""
    ended = installed.alone(project, "claude", rehearsal.SCRIPT, *command, "--json")
    assert ended.unrouted == 0
    return ended


def consented(project: Project, *command: str) -> Ended:
    """The same, under consent to the agents that the refusal names."""
    refused = beside(project, *command)
    assert (refused.code, refused.answer["error"]["code"], refused.asked) == (5, "consent.missing", [])
    return beside(project, *command, "--approve", refused.answer["error"]["details"]["consent_hash"])


def approved(project: Project) -> None:
    assert project.json(*project.approving()).code == 0


def outside(home: Path) -> set[str]:
    """Return the files in the user's home outside idumb's own state and its checkouts."""
    written = {p.relative_to(home).as_posix() for p in home.rglob("*") if p.is_file()}
    return {name for name in written if not name.startswith(("state/idumb/", "state/idumb-checkouts/"))}


def test_claude_plans_builds_judges_and_verifies_a_phase(sandbox: GitSandbox, home: Path) -> None:
    """R-ADAPT-2, R-ADAPT-4, R-ADAPT-5."""
    installed.program("claude")
    before = outside(home)
    project = rehearsal.project(sandbox)
    roles = {role: {"binding": "real"} for role in ROLES}
    installed.configure(project, "claude", {"validator": "real", "roles": roles})
    plan_it(project)
    build_it(project)
    verify_it(project)
    assert outside(home) == before


def plan_it(project: Project) -> None:
    ended = consented(project, "plan-phase", "1")
    assert ended.code == 0, ended.out + ended.err
    assert project.read(rehearsal.PLAN) == rehearsal.plan()
    checked = project.json("check-plan", "1")
    assert (checked.code, list(project.statuses())) == (0, list(rehearsal.TASKS))
    events = project.events("--kind", "role.asked")
    assert [e["payload"]["role"] for e in events] == ["planner", "plan-checker"]
    assert rehearsal.used(events)[0] == rehearsal.tokens("The planner reads before it plans")
    project.commit_own()


def build_it(project: Project) -> None:
    approved(project)
    ended = beside(project, "execute-phase", "1")
    # The verifier has a consent of its own, which comes next.
    assert (ended.code, ended.answer["error"]["code"]) == (1, "verification.partial"), ended.out + ended.err
    assert ended.answer["data"]["outcome"] == "complete"
    assert project.trailers("Idumb-Task") == list(rehearsal.TASKS)
    assert {line[:2] for line in project.repo.status()} == {"??"}  # reports, committed when the run is over
    begun = project.events("1", "--kind", "attempt.started")
    version = installed.PACKAGES["claude"].rpartition("@")[2]
    ran = [(e["payload"]["envelope"]["adapter"], e["payload"]["envelope"]["adapter_version"]) for e in begun]
    assert ran == [("claude", f"1 {version}")] * 3
    assert reported_usage(project) == [rehearsal.tokens(task) for task in rehearsal.TASKS]
    finished = project.events("1", "--kind", "attempt.finished")
    assert {e["payload"]["verdict"] for e in finished} == {"PASS"}
    assert len(project.events("1", "--kind", "checkpoint.recorded")) == 3
    for task in rehearsal.TASKS:
        assert project.exists(f".idumb/brain/execution/1/checkpoint-{task}.md")
    assert project.json("audit", "verify").code == 0


def verify_it(project: Project) -> None:
    ended = consented(project, "verify-work", "1")
    assert (ended.code, ended.answer["data"]["status"]) == (0, "passed"), ended.out + ended.err
    [opinion] = ended.answer["data"]["judged_by"]
    assert (opinion["role"], opinion["verdict"]) == ("verifier", "PASS")
    assert [c["resolves"] for j in opinion["judgements"] for c in j["citations"]] == [True]
    report = project.read(".planning/phases/1/1-VERIFICATION.md")
    assert "\nstatus: passed\n" in report
    assert "[`tests/test_main.py:17`]" in report
    assert project.repo.status() == []


def reported_usage(project: Project) -> list[tuple[int, int]]:
    return rehearsal.used(project.events("1", "--kind", "attempt.finished"), "builder")
