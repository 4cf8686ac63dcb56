"""`verify-work` calls verifier and skeptic, lists criteria of roadmap and context, and plans the gaps."""

from __future__ import annotations

import json

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.approvals import approve
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, task, write

AGENT = "cat > /dev/null; cat $IDUMB_ROLE.json\n"
ROLES = """\
bindings: {judge: {adapter: command, argv: [sh, agent.sh]}}
roles: {verifier: {binding: judge}, skeptic: {binding: judge}}
"""
CEILING = "ceilings: {run: {tokens: 12}}\n"
PLAN_HEAD = "success_criteria: ['A is there — check: `test -s a.txt && test ! -e broken`']\n"
ROADMAP = """\
# Roadmap

## Phase 1: First

Success criteria:
- A is there.
- It is <fast>

## Phase 2: Later

Done when: never
"""


def opinion(*judgements: tuple[str, bool, str, int], verdict: str = "PARTIAL") -> str:
    rows = [
        {"criterion": c, "holds": h, "why": "seen", "citations": [{"file": f, "line": n}]} for c, h, f, n in judgements
    ]
    return "I looked.\n" + json.dumps({"verdict": verdict, "judgements": rows})


def _passed(sandbox: GitSandbox) -> Project:
    """A phase that passed its checks; two roles are bound, whose answers lie in files of the project."""
    project = projects.create(sandbox)
    (project.folder / "agent.sh").write_text(AGENT, encoding="utf-8")
    for role in ("verifier", "skeptic"):
        (project.folder / f"{role}.json").write_text(opinion(verdict="PASS"), encoding="utf-8")
    project.repo.commit("agents")
    project.configure(ROLES + CEILING)
    (project.folder / ".planning/ROADMAP.md").write_text(ROADMAP, encoding="utf-8")
    project.plan([making("T1-01", "a.txt")], head=PLAN_HEAD)
    approve(project)  # of the phase alone
    answer = project.json("execute-phase", "1")
    assert (answer.code, answer.error["code"]) == (1, "verification.partial"), answer
    assert any("gave no opinion" in warning for warning in answer.object["warnings"])  # nobody consented to them
    return project


project = prepared_project(_passed)


def verify(project: Project, *flags: str) -> Answer:
    return project.quick("verify-work", "1", *flags, "--json")


def consented(project: Project) -> str:
    refused = verify(project)
    assert (refused.code, refused.error["code"]) == (5, "consent.missing")
    return str(refused.error["details"]["consent_hash"])


def test_criteria_of_the_roadmap_are_listed_and_an_unproven_one_is_a_gap(project: Project) -> None:
    """R-ADAPT-5."""
    (project.folder / ".planning/phases/1/1-CONTEXT.md").write_text(
        "# Context\n\n### Done when\n\n1. Nobody\n   waits\n2. it is <FAST>\n", encoding="utf-8"
    )
    answer = verify(project, "--checks-only")
    assert (answer.code, answer.data["status"]) == (0, "passed"), answer
    assert answer.data["reason"] == "every check passed; the verifier and the skeptic were not asked"
    results = {e["subject"]: (e["text"], e["result"]) for e in answer.data["evidence"]}
    assert results == {
        "AC-1": ("A is there", "passed"),
        "roadmap 2": ("It is <fast>", "unproven"),
        "context 1": ("Nobody waits", "unproven"),
        "T1-01 AC-1": ("it holds", "passed"),
    }
    assert "It is &lt;fast&gt;: unproven" in project.read(".planning/phases/1/1-VERIFICATION.md")


def test_verification_passed_is_only_said_if_nothing_is_open(project: Project) -> None:
    """R-RUN-13: a role that was not asked, an uncovered criterion, and silence that blocks nothing, are open."""
    text = project.quick("verify-work", "1", "--checks-only").out
    assert "Verification passed" not in text
    assert "Checks passed, not everything is verified: every check passed; the verifier and the skeptic were" in text
    assert "roadmap 2 has no proof" in text
    assert "**Open:** roadmap 2 has no proof" in project.read(".planning/phases/1/1-VERIFICATION.md")
    (project.folder / ".planning/ROADMAP.md").unlink()
    (project.folder / "skeptic.json").write_text("All is well.", encoding="utf-8")
    silent = project.quick("verify-work", "1", "--approve", consented(project))
    assert "Verification partial: the skeptic gave no opinion" in silent.out
    question(project)  # R-ADAPT-5: it is a cause until the role or a person answers
    (project.folder / "skeptic.json").write_text(opinion(verdict="PASS"), encoding="utf-8")
    assert "Verification passed: every check passed" in project.quick("verify-work", "1").out
    assert project.quick("decisions", "--json").data["decisions"] == []


def test_agents_are_called_with_consent_and_a_refutation_at_an_existing_line_makes_it_partial(
    project: Project,
) -> None:
    """R-ADAPT-5, R-ADAPT-1."""
    (project.folder / "verifier.json").write_text(opinion(("AC-1", True, "a.txt", 1)), encoding="utf-8")
    (project.folder / "skeptic.json").write_text(opinion(("AC-1", False, "./a.txt", 1)), encoding="utf-8")
    project.repo.git("commit", "-qam", "answers")
    answer = verify(project, "--approve", consented(project))
    assert (answer.code, answer.data["status"], answer.error["code"]) == (1, "partial", "verification.partial")
    assert answer.data["reason"] == "AC-1 is refuted at ./a.txt:1"
    assert [(o["role"], o["verdict"]) for o in answer.data["judged_by"]] == [
        ("verifier", "PARTIAL"),
        ("skeptic", "PARTIAL"),
    ]
    report = project.read(".planning/phases/1/1-VERIFICATION.md")
    assert "Refuted by the skeptic: AC-1 does not hold: seen [`./a.txt:1`]" in report
    assert "does not hold: seen\n      ./a.txt:1\n" in project.quick("verify-work", "1").out
    assert [e["payload"]["role"] for e in project.events("--kind", "role.asked")] == ["verifier", "skeptic"] * 2


def test_a_citation_of_a_missing_place_is_marked_and_refutes_nothing(project: Project) -> None:
    """R-ADAPT-5."""
    places = (("AC-1", False, "a.txt", 2), ("AC-1", False, "../a.txt", 1), ("AC-1", False, "b.txt", 1))
    (project.folder / "skeptic.json").write_text(opinion(*places), encoding="utf-8")
    (project.folder / "verifier.json").write_text("All is well.", encoding="utf-8")
    project.repo.git("commit", "-qam", "answers")
    answer = verify(project, "--approve", consented(project))
    silent = "the verifier gave no opinion: "
    assert (answer.code, answer.data["status"]) == (1, "partial"), answer
    assert answer.data["reason"].startswith(silent)
    assert [c["resolves"] for o in answer.data["judged_by"] for j in o["judgements"] for c in j["citations"]] == [
        False
    ] * 3
    assert "`a.txt:2` (does not exist)" in project.read(".planning/phases/1/1-VERIFICATION.md")
    assert any("verifier gave no opinion" in warning for warning in answer.object["warnings"])


def test_no_opinion_makes_a_failed_check_pass_and_gaps_become_a_plan(project: Project) -> None:
    """R-ADAPT-5."""
    (project.folder / "verifier.json").write_text(
        opinion(("AC-1", True, "README.md", 1), verdict="PASS"), encoding="utf-8"
    )
    (project.folder / "broken").touch()
    project.repo.commit("broken")
    answer = verify(project, "--gaps", "--approve", consented(project))
    assert (answer.code, answer.data["status"]) == (1, "failed"), answer
    assert answer.data["gap_plan"] == ".planning/phases/1/02-PLAN.md"
    checked = project.quick("check-plan", "1", "--json")
    assert checked.code == 0, checked
    tasks = project.quick("graph", "1", "--json").data["order"]
    assert tasks == ["T1-01", "T1-02", "T1-03"]
    text = project.read(".planning/phases/1/02-PLAN.md")
    assert '"check": "test -s a.txt && test ! -e broken"' in text
    assert '"text": "It is <fast>"' in text
    again = verify(project, "--gaps", "--checks-only")
    assert (again.code, again.error["code"]) == (4, "run.contract-changed")
    assert project.read(".planning/phases/1/02-PLAN.md") == text


OPINION = """\
success_criteria:
  - 'b is there — check: `test -s b.txt`'
  - 'It reads well — opinion'
"""
COVERED = "AC-2 is covered only by an opinion"


def _on_an_opinion(sandbox: GitSandbox) -> Project:
    """A phase whose checks pass, and one of whose two success criteria rests on an opinion."""
    project = projects.create(sandbox)
    project.plan([making("T1-01", "b.txt")], head=OPINION)
    ended = run(project)
    assert (ended.code, ended.error["code"]) == (1, "verification.partial")
    assert (ended.data["verification"]["status"], ended.data["verification"]["reason"]) == ("partial", COVERED)
    assert ended.data["next"][0] == "idumb decisions"
    return project


on_an_opinion = prepared_project(_on_an_opinion)


def question(project: Project) -> str:
    waiting = project.quick("decisions", "--json").data["decisions"]
    assert [(d["kind"], d["what"]) for d in waiting] == [("phase", "Phase 1: does it count as verified?")]
    return str(waiting[0]["id"])


def test_a_criterion_covered_only_by_an_opinion_waits_for_a_person(on_an_opinion: Project) -> None:
    """R-ADAPT-5: the yes verifies the phase, and the report names the person."""
    project = on_an_opinion
    decision = question(project)
    assert project.quick("status", "--json").data["next"]["command"] == "idumb decisions"
    again = verify(project)
    assert (again.code, again.data["status"], again.error["hint"]) == (1, "partial", "idumb decisions")
    assert (again.data["decision"], again.data["causes"]) == (decision, [COVERED])
    decided = project.quick("decide", decision, "yes")
    assert (decided.code, "- Verification of the phase: passed" in decided.out) == (0, True)
    row = project.quick("status", "--json").data["phases"][0]
    assert (row["state"], row["verification"], row["decisions"]) == ("verified", "passed", [])
    report = project.read(".planning/phases/1/1-VERIFICATION.md")
    assert f"passed ({COVERED}; " in report
    assert " accepted it as verified)" in report
    assert project.repo.git("status", "--porcelain", ".planning") == ""
    assert (verify(project).code, run(project).error["code"]) == (0, "phase.verified")


def test_answering_no_leaves_the_phase_partial_and_the_gap_can_be_planned(on_an_opinion: Project) -> None:
    """R-ADAPT-5."""
    project = on_an_opinion
    decision = question(project)
    assert project.quick("decide", decision, "no", "--json").data["verification"] == "partial"
    assert project.quick("decisions", "--json").data["decisions"] == []
    again = verify(project)
    assert (again.code, again.data["status"], again.data["decision"]) == (1, "partial", f"{decision}.2")
    assert verify(project, "--gaps").data["gap_plan"] == ".planning/phases/1/02-PLAN.md"
    assert "It reads well" in project.read(".planning/phases/1/02-PLAN.md")


def test_answering_yes_counts_only_for_the_judged_files(on_an_opinion: Project) -> None:
    """R-ADAPT-5."""
    project = on_an_opinion
    decision = question(project)
    (project.folder / "other.txt").write_text("mine\n", encoding="utf-8")
    decided = project.quick("decide", decision, "yes", "--json")
    assert (decided.code, decided.data["verification"], decided.data["next"]) == (0, "partial", ["idumb verify-work 1"])
    assert "The files have changed since the verification" in decided.object["warnings"][0]
    again = verify(project)
    assert (again.code, again.data["status"], again.data["decision"] != decision) == (1, "partial", True)


def _in_part(sandbox: GitSandbox) -> Project:
    """T1-01 is done, T1-02 failed and keeps T1-03 from running."""
    project = projects.create(sandbox)
    wrong = task("T1-02", files="create `b.txt`", check="test -s c.txt", steps=[write("b.txt", "b\n")])
    head = "success_criteria: ['a is there — check: `test -s a.txt`', 'It looks good — human']\n"
    project.plan([making("T1-01", "a.txt"), wrong, making("T1-03", "d.txt", after="T1-02")], head=head)
    ended = run(project, "--max-attempts", "1")
    assert (ended.code, ended.data["outcome"]) == (1, "partial")
    assert "idumb verify-work 1" in ended.data["next"]
    return project


in_part = prepared_project(_in_part)


def test_an_unfinished_run_is_verified_as_far_as_it_got(in_part: Project) -> None:
    """R-RUN-6: the commands that a partial run offers work; they never verify the phase."""
    project = in_part
    answer = verify(project)
    assert (answer.code, answer.data["status"], answer.error["code"]) == (1, "partial", "verification.partial")
    assert answer.data["unfinished"] == {"T1-02": "failed", "T1-03": "blocked"}
    assert answer.data["reason"].startswith("2 tasks are not done: T1-02 (failed), T1-03 (blocked); ")
    assert {e["subject"]: e["result"] for e in answer.data["evidence"]} == {"AC-1": "passed", "AC-2": "unproven"}
    assert "idumb resume 1 --retry-failed" in answer.data["next"]
    assert answer.error["hint"] == answer.data["next"][0]
    # Nobody is asked about work that is not there, but for what is to become of the failed task.
    assert [one["id"] for one in project.quick("decisions", "--json").data["decisions"]] == ["T1-02.exhausted.1"]
    report = project.read(".planning/phases/1/1-VERIFICATION.md")
    assert "status: partial" in report
    assert [line.split(" | ")[-1] for line in report.splitlines() if line.startswith("| T1-02 |")] == ["failed |"]
    assert "- T1-02 is not done: failed" in report
    assert project.quick("verify-work", "1").out.count("T1-03") == 1
    row = project.quick("status", "--json").data["phases"][0]
    assert (row["state"] == "verified", row["verification"]) == (False, "partial")
    # A plan more would be another contract, under which the run could not be resumed.
    answer = verify(project, "--gaps")
    assert (answer.code, answer.error["code"]) == (4, "verification.too-early")
    assert "idumb verify-work 1" in [way["command"] for way in answer.object["ways"]]
    assert not project.exists(".planning/phases/1/02-PLAN.md")
    (project.folder / "a.txt").unlink()
    project.repo.commit("a is gone", "a.txt")
    answer = verify(project)
    assert (answer.code, answer.data["status"], answer.error["code"]) == (1, "failed", "verification.failed")
    assert "AC-1 failed" in answer.data["reason"]
