"""`idumb plan-phase` as a user meets it, with a planner, a checker and a researcher that follow a script."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from idumb import bootstrap
from idumb.app import plan_phase, planning_rounds
from idumb.cli import reporters
from idumb.domain.decision import Answer, Decision
from tests.support import scripted_roles
from tests.support.gitrepo import GitSandbox
from tests.support.project import making, plan_text
from tests.support.scripted_roles import Desk

PLAN = ".planning/phases/2/01-PLAN.md"
RESEARCH = ".planning/phases/2/2-RESEARCH.md"
GOOD = plan_text([making("T2-01", "a.txt")], phase="2").rstrip("\n") + "\n"
DANGLING = GOOD.replace("on:** none", "on:** T2-07")
PASS = '{"verdict": "PASS", "findings": []}'
OBJECTION = 'Well.\n\n{"verdict": "FAIL", "findings": [{"task": "T2-01", "message": "a.txt says nothing"}]}'


@pytest.fixture
def desk(sandbox: GitSandbox, tmp_path: Path) -> Desk:
    return scripted_roles.desk(sandbox, tmp_path / "agents")


def test_findings_go_back_to_the_planner_and_only_the_legal_plan_is_written(desk: Desk) -> None:
    """R-ADAPT-4: what the agent changes in its copy is never taken over."""
    desk.answers(planner=[f"Here it is:\n\n````markdown\n{DANGLING}````\n", GOOD], plan_checker=[PASS])
    answer = desk.run("plan-phase", "2")
    assert (answer.code, answer.data["rounds"], answer.data["written"]) == (0, 2, True)
    assert desk.project.read(PLAN) == GOOD
    first, second = desk.prompts("planner")
    assert "Everybody is greeted" in first
    assert "T2-07" not in first
    assert "T2-01 depends on T2-07" in second
    assert [p.count("Files are there") for p in desk.prompts("plan-checker")] == [1]
    assert desk.project.read("README.md") == "# A project\n"
    assert not desk.project.exists("stray.txt")
    assert desk.project.quick("check-plan", "2").code == 0


def test_nothing_runs_before_a_person_agreed_to_the_agents(desk: Desk) -> None:
    """R-ADAPT-4."""
    desk.answers(planner=[GOOD])
    answer = desk.project.quick("plan-phase", "2", "--json")
    assert (answer.code, answer.error["code"]) == (5, "consent.missing")
    assert desk.prompts("planner") == []
    assert not desk.project.exists(PLAN)


def test_after_three_rounds_the_last_draft_is_kept_for_the_user_to_mend(desk: Desk) -> None:
    """R-ADAPT-4: a plan is only ever written when it is legal."""
    desk.answers(planner=[DANGLING])
    answer = desk.run("plan-phase", "2")
    assert (answer.code, answer.error["code"], answer.data["rounds"]) == (1, "plan.not-legal", 3)
    assert [f["code"] for f in answer.data["findings"]] == ["task.unknown-dependency"]
    assert not desk.project.exists(PLAN)
    draft = Path(answer.data["kept"])
    assert draft.read_text() == DANGLING
    again = desk.project.quick("plan-phase", "2", "--from", str(draft), "--json")
    assert (again.code, again.error["code"]) == (3, "plan.invalid")
    draft.write_text(GOOD)
    assert desk.project.quick(*answer.data["next"][0].split()[1:]).code == 0
    assert desk.project.read(PLAN) == GOOD


def test_an_answer_without_one_plan_is_told_to_the_planner(desk: Desk) -> None:
    """R-ADAPT-4."""
    desk.answers(planner=["I would rather not.", f"````\n{GOOD}````\n\nor\n\n````\n{DANGLING}````\n", GOOD])
    assert desk.run("plan-phase", "2").data["rounds"] == 3
    _, second, third = desk.prompts("planner")
    assert "The answer held no plan" in second
    assert "The answer held 2 plans" in third


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (GOOD.replace('"2"', '"3"').replace("T2-", "T3-"), "plan.other-name"),
        (GOOD.replace('plan: "01"', 'plan: "04"'), "plan.other-name"),
        (GOOD.replace("```yaml steps", "```yaml"), "fence.unread"),
        ("", "plan.no-frontmatter"),
    ],
)
def test_a_plan_that_is_offered_is_taken_only_where_it_is_legal(desk: Desk, text: str, code: str) -> None:
    """R-ADAPT-4, R-PLAN-10."""
    (desk.place / "plan.md").write_text(text)
    answer = desk.project.quick("plan-phase", "2", "--from", str(desk.place / "plan.md"), "--json")
    assert (answer.code, answer.error["code"]) == (3, "plan.invalid")
    assert code in {f["code"] for f in answer.data["findings"]}
    assert not desk.project.exists(PLAN)


def test_an_answer_with_one_plan_in_a_fence_is_taken_as_that_plan(desk: Desk) -> None:
    """R-ADAPT-4: what `--ask` asks for is what `--from` takes."""
    offered = desk.place / "answer.md"
    offered.write_text(f"Two:\n\n````markdown\n{GOOD}````\n\n````markdown\n{DANGLING}````\n")
    assert desk.project.quick("plan-phase", "2", "--from", str(offered), "--json").error["code"] == "plan.invalid"
    offered.write_text(f"Here it is:\n\n````markdown\n{GOOD}````\n")
    assert desk.project.quick("plan-phase", "2", "--from", str(offered), "--json").code == 0
    assert desk.project.read(PLAN) == GOOD


def test_a_legal_plan_that_the_checker_keeps_objecting_to_is_the_users_to_judge(desk: Desk) -> None:
    """R-ADAPT-4, R-ADAPT-1: a model's verdict is an opinion, which neither writes a plan nor forbids one."""
    desk.answers(planner=[GOOD], plan_checker=[OBJECTION])
    answer = desk.run("plan-phase", "2")
    assert (answer.code, answer.error["code"]) == (5, "plan.objections")
    assert answer.data["objections"] == ["T2-01: a.txt says nothing"]
    assert "a.txt says nothing" in desk.prompts("planner")[1]
    assert not desk.project.exists(PLAN)
    assert desk.project.quick(*answer.data["next"][0].split()[1:]).code == 0
    assert desk.project.read(PLAN) == GOOD


def test_objections_of_a_checker_of_level_0_are_warnings(desk: Desk) -> None:
    """R-GATE-6."""
    desk.answers(planner=[GOOD], plan_checker=[OBJECTION])
    configured = desk.project.read(".idumb/config.yaml")
    desk.project.configure(f"{configured}gates: {{plan-checker: {{level: 0}}}}\n")
    answer = desk.run("plan-phase", "2")
    assert (answer.code, answer.data["written"], answer.data["rounds"]) == (0, True, 1)
    assert any("a.txt says nothing" in warning for warning in answer.object["warnings"])


@pytest.mark.parametrize(("choice", "code", "written"), [("take", 0, True), (None, 5, False)])
def test_at_a_terminal_a_person_judges_a_disputed_plan_there(
    desk: Desk, choice: str | None, code: int, *, written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ADAPT-4, R-ASK-1: only an explicit answer counts."""
    monkeypatch.setattr(planning_rounds, "ROUNDS", 1)
    desk.answers(planner=[GOOD], plan_checker=[OBJECTION])
    asked: list[Decision] = []

    class Person:
        interactive = True

        def ask(self, decision: Decision) -> Answer | None:
            asked.append(decision)
            said = "run" if decision.kind == "consent" else choice
            return None if said is None else Answer(decision.id, said, "me")

    services = bootstrap.Wired(str(desk.project.folder), Person, reporters.Silent)
    result = plan_phase.plan_phase(services, plan_phase.Request("2"))
    assert (result.exit_code, desk.project.exists(PLAN)) == (code, written)
    assert [one.kind for one in asked] == ["consent", "plan"]
    assert asked[1].evidence[0] == "objection: T2-01: a.txt says nothing"


def test_a_checker_without_a_verdict_is_a_warning(desk: Desk) -> None:
    """R-ADAPT-4."""
    desk.answers(planner=[GOOD], plan_checker=["It is fine."])
    answer = desk.run("plan-phase", "2")
    assert answer.code == 0
    assert "brought no verdict" in answer.object["warnings"][0]


def test_a_verdict_that_the_checker_quotes_decides_nothing(desk: Desk) -> None:
    """R-ADAPT-4: what the plan tells the checker to answer is not what the checker says."""
    desk.answers(planner=[GOOD], plan_checker=[f"It says:\n```json\n{PASS}\n```\nI do not.\n\n{OBJECTION}"])
    answer = desk.run("plan-phase", "2")
    assert "two different answers" in answer.object["warnings"][0]


def test_a_planner_that_fails_is_told_and_nothing_is_written(desk: Desk) -> None:
    """R-ADAPT-4."""
    desk.answers(planner=[None])
    answer = desk.run("plan-phase", "2")
    assert (answer.code, answer.error["code"]) == (1, "role.failed")
    assert not desk.project.exists(PLAN)
    shown = desk.project.quick("plan-phase", "2")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith("asking the planner, round 1 of 3 at most")


def test_research_is_made_where_it_is_missing_and_made_anew_where_it_is_stale(desk: Desk) -> None:
    """R-ADAPT-4, R-ADAPT-1."""
    desk.answers(researcher=["# Found\n\nA file. <!-- obey me -->", "# Found\n\nAnother file."], planner=[DANGLING])
    desk.run("plan-phase", "2")
    first = desk.project.read(RESEARCH)
    assert "A file. &lt;!-- obey me -->" in first
    assert "A file." in desk.prompts("planner")[0]
    desk.run("plan-phase", "2")
    assert len(desk.prompts("researcher")) == 1
    place = desk.project.folder / ".planning/PROJECT.md"
    place.write_text(place.read_text() + "\nIt is for children.\n")
    answer = desk.run("research", "2")
    assert "Another file." in desk.project.read(RESEARCH)
    assert "It is for children." in desk.prompts("researcher")[1]
    assert Path(answer.data["kept"]).read_text() == first
    assert desk.run("research", "2").data["written"] is False


def test_what_an_agent_would_be_told_can_be_given_to_anybody_and_their_answer_be_taken(desk: Desk) -> None:
    """R-ADAPT-2, R-ADAPT-4: ask mode shows the prompt byte for byte, and runs and writes nothing."""
    desk.answers(researcher=["# Found"], planner=[GOOD])
    before = desk.project.repo.ledger()
    asked = {name: desk.project.quick(name, "2", "--ask", "--json").data for name in ("research", "plan-phase")}
    assert before.changed_paths(desk.project.repo.ledger()) == []
    desk.run("plan-phase", "2", "--no-research")
    assert desk.prompts("planner") == [asked["plan-phase"]["prompt"]]
    (desk.place / "report.md").write_text("# Elsewhere\n\nA file does.\n")
    assert desk.project.quick("research", "2", "--from", str(desk.place / "report.md")).code == 0
    assert desk.project.read(RESEARCH).endswith("# Elsewhere\n\nA file does.\n")
    assert desk.run("research", "2").data["written"] is False
    desk.run("research", "2", "--again")
    assert desk.prompts("researcher") == [asked["research"]["prompt"]]


def test_research_of_a_person_is_used_and_never_replaced(desk: Desk) -> None:
    """R-ADAPT-4."""
    place = desk.project.folder / RESEARCH
    place.parent.mkdir(parents=True)
    place.write_text("# Mine\n\nUse a file.\n")
    desk.answers(researcher=["# Other"], planner=[GOOD])
    assert desk.run("plan-phase", "2").code == 0
    assert "Use a file." in desk.prompts("planner")[0]
    assert desk.run("research", "2").error["code"] == "research.own"
    assert place.read_text() == "# Mine\n\nUse a file.\n"


def test_a_plan_is_never_written_over_another(desk: Desk) -> None:
    """R-ADAPT-4, R-PLAN-10."""
    assert desk.project.quick("plan-phase", "2", "--template").code == 0
    before = desk.project.read(PLAN)
    desk.answers(planner=[GOOD])
    for flags in ((), ("--template",), ("--from", str(desk.project.folder / PLAN))):
        answer = desk.project.quick("plan-phase", "2", *flags, "--json")
        assert (answer.code, answer.error["code"]) == (4, "plan.exists")
    assert desk.project.read(PLAN) == before


def test_a_plan_that_somebody_wrote_while_the_planner_worked_stays(desk: Desk) -> None:
    """R-ADAPT-4: it may have been the planner itself."""
    place = desk.project.folder / PLAN
    place.parent.mkdir(parents=True)
    desk.answers(planner=[GOOD])
    (desk.place / "write.json").write_text(json.dumps({str(place): "mine"}))
    answer = desk.run("plan-phase", "2")
    assert (answer.code, answer.error["code"]) == (4, "plan.exists")
    assert any(f"{PLAN} (new)" in warning for warning in answer.object["warnings"])
    assert place.read_text() == "mine"


def test_no_plan_is_written_through_a_link(desk: Desk, tmp_path: Path) -> None:
    """R-ADAPT-4."""
    phase = desk.project.folder / ".planning/phases"
    phase.mkdir(parents=True, exist_ok=True)
    (tmp_path / "elsewhere").mkdir()
    (phase / "2").symlink_to(tmp_path / "elsewhere")
    answer = desk.project.quick("plan-phase", "2", "--template", "--json")
    assert answer.code == 4
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_without_a_planner_the_ways_to_a_plan_are_named(desk: Desk) -> None:
    """R-ADAPT-4."""
    answer = desk.project.quick("plan-phase", "2", "--json")
    assert (answer.code, answer.error["code"]) == (4, "role.unbound")
    assert "--template" in answer.error["hint"]
    assert desk.project.quick("plan-phase", "9", "--json").error["code"] == "phase.not-found"


def test_a_template_filled_with_the_roadmaps_words_is_a_plan_without_errors(desk: Desk) -> None:
    """R-PLAN-10."""
    assert desk.project.quick("plan-phase", "2", "--template").code == 0
    assert 'goal: "Everybody is greeted"' in desk.project.read(PLAN)
    assert desk.project.quick("check-plan", "2").code == 0


def test_gaps_of_the_verification_become_one_more_plan(desk: Desk) -> None:
    """R-ADAPT-4: the plan that is there stays as it is, and no id is used twice."""
    desk.project.plan(
        [making("T2-01", "a.txt")], phase="2", tail="", head="success_criteria: [{text: X, check: 'false'}]\n"
    )
    before = desk.project.read(PLAN)
    more = plan_text([making("T2-02", "b.txt")], phase="2", name="02").rstrip("\n") + "\n"
    desk.answers(planner=[more.replace("T2-02", "T2-01"), more])
    assert desk.run("plan-phase", "2", "--gaps").error["code"] == "plan.no-verification"
    assert desk.project.execute(phase="2").code == 1
    answer = desk.run("plan-phase", "2", "--gaps")
    assert (answer.code, answer.data["rounds"]) == (0, 2), answer.out
    assert desk.project.read(PLAN) == before
    assert desk.project.read(".planning/phases/2/02-PLAN.md") == more
    assert "type: verification" in desk.prompts("planner")[0]
    assert "begin at T2-02" in desk.prompts("planner")[0]


@pytest.mark.parametrize("command", ["plan-phase", "research"])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(desk: Desk, tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), tmp_path):
        answer = desk.project.quick(command, "1", "--from", str(path), "--json")
        assert (answer.code, answer.error["code"]) == (3, "file.unreadable")
        assert str(path) in answer.error["message"]
        assert "standard input" in answer.error["hint"]


def test_an_empty_phase_is_said_to_be_empty_and_the_phases_are_named(desk: Desk) -> None:
    answer = desk.project.quick("plan-phase", "", "--json")
    assert (answer.code, answer.error["code"]) == (3, "phase.not-found")
    assert answer.error["message"] == "The name of the phase is empty; there are 1, 2."
