"""`idumb plan-phase` as a user meets it, with a planner, a checker and a researcher that follow a script."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from idumb.app.planning import plan_phase, planning_rounds
from idumb.cli import opened_services
from idumb.composition.container import Container
from idumb.domain.action import Answer, Decision
from tests.support import scripted_roles, seed
from tests.support.gitrepo import GitSandbox
from tests.support.project import making, plan_text
from tests.support.scripted_roles import PlanningProject

PLAN = ".planning/phases/2/01-PLAN.md"
RESEARCH = ".planning/phases/2/2-RESEARCH.md"
GOOD = plan_text([making("T2-01", "a.txt")], phase="2").rstrip("\n") + "\n"
DANGLING = GOOD.replace("on:** none", "on:** T2-07")
PASS = '{"verdict": "PASS", "findings": []}'
OBJECTION = 'Well.\n\n{"verdict": "FAIL", "findings": [{"task": "T2-01", "message": "a.txt says nothing"}]}'


@pytest.fixture
def planning(sandbox: GitSandbox, tmp_path: Path) -> PlanningProject:
    return scripted_roles.create(sandbox, tmp_path / "agents")


def open_questions(planning: PlanningProject) -> list[dict[str, Any]]:
    return list(planning.project.quick("decisions", "--json").data["decisions"])


@pytest.fixture
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked after the last round does not depend on their number."""
    monkeypatch.setattr(planning_rounds, "ROUNDS", 1)


def unsettled(planning: PlanningProject, code: str, **replies: list[str]) -> dict[str, Any]:
    """The one question that the rounds leave."""
    planning.answers(**replies)
    ended = planning.run("plan-phase", "2")
    assert (ended.code, ended.error["code"]) == (5, code), ended
    (decision,) = open_questions(planning)
    assert ended.data["decision"] == decision["id"]
    assert ended.error["details"]["choices"] == decision["choices"]
    return decision


def test_findings_are_returned_to_the_planner_and_only_a_valid_plan_is_written(planning: PlanningProject) -> None:
    """R-ADAPT-4: also that an answer has no single plan; changes that the agent makes in its copy are never used."""
    two = f"````\n{GOOD}````\n\nor\n\n````\n{DANGLING}````\n"
    planning.answers(planner=[two, f"Here it is:\n\n````markdown\n{DANGLING}````\n", GOOD], plan_checker=[PASS])
    answer = planning.run("plan-phase", "2")
    assert (answer.code, answer.data["rounds"], answer.data["written"]) == (0, 3, True)
    assert planning.project.read(PLAN) == GOOD
    first, second, third = planning.prompts("planner")
    assert "Everybody is greeted" in first
    assert "The answer contained 2 plans" in second
    assert "T2-07" not in first + second
    assert "T2-01 depends on T2-07" in third
    assert [p.count("Files are there") for p in planning.prompts("plan-checker")] == [1]
    assert planning.project.read("README.md") == "# A project\n"
    assert not planning.project.exists("stray.txt")
    assert planning.project.quick("check-plan", "2").code == 0


def test_after_three_rounds_the_last_draft_is_kept_for_the_user_to_fix(planning: PlanningProject) -> None:
    """R-ADAPT-4: a plan is only ever written when it is legal."""
    planning.answers(planner=["I would rather not.", DANGLING])
    answer = planning.run("plan-phase", "2")
    assert (answer.code, answer.error["code"], answer.data["rounds"]) == (5, "plan.not-legal", 3)
    assert "The answer contained no plan" in planning.prompts("planner")[1]
    assert [f["code"] for f in answer.data["findings"]] == ["task.unknown-dependency"]
    assert not planning.project.exists(PLAN)
    draft = Path(answer.data["kept"])
    assert draft.read_text() == DANGLING
    again = planning.project.quick("plan-phase", "2", "--from", str(draft), "--json")
    assert (again.code, again.error["code"]) == (3, "plan.invalid")
    draft.write_text(GOOD)
    assert planning.project.quick(*answer.data["next"][0].split()[1:]).code == 0
    assert planning.project.read(PLAN) == GOOD


def test_an_offered_plan_is_accepted_only_if_it_is_valid(planning: PlanningProject) -> None:
    """R-ADAPT-4, R-PLAN-10."""
    offered = planning.place / "plan.md"
    for text, code in (
        (GOOD.replace('"2"', '"3"').replace("T2-", "T3-"), "plan.other-name"),
        (GOOD.replace('plan: "01"', 'plan: "04"'), "plan.other-name"),
        (GOOD.replace("```yaml steps", "```yaml"), "fence.unread"),
        ("", "plan.no-frontmatter"),
        (f"Two:\n\n````markdown\n{GOOD}````\n\n````markdown\n{DANGLING}````\n", "plan.no-frontmatter"),
    ):
        offered.write_text(text)
        answer = planning.project.quick("plan-phase", "2", "--from", str(offered), "--json")
        assert (answer.code, answer.error["code"]) == (3, "plan.invalid")
        assert code in {f["code"] for f in answer.data["findings"]}
        assert not planning.project.exists(PLAN)
    # An answer with one fenced plan is used as that plan: what `--ask` asks for is what `--from` takes.
    offered.write_text(f"Here it is:\n\n````markdown\n{GOOD}````\n")
    assert planning.project.quick("plan-phase", "2", "--from", str(offered), "--json").code == 0
    assert planning.project.read(PLAN) == GOOD


@pytest.mark.parametrize(
    ("choice", "code", "written"),
    seed.one_on_a_push([("take", 0, True), (None, 5, False), ("no", 1, False)], "a judgement of a plan"),
)
def test_at_a_terminal_a_person_judges_a_disputed_plan_immediately(
    planning: PlanningProject, choice: str | None, code: int, *, written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ADAPT-4, R-ASK-1: only an explicit answer counts."""
    monkeypatch.setattr(planning_rounds, "ROUNDS", 1)
    planning.answers(planner=[GOOD], plan_checker=[OBJECTION])
    questions: list[Decision] = []

    class Person:
        interactive = True

        def ask(self, decision: Decision) -> Answer | None:
            questions.append(decision)
            reply = "run" if decision.kind == "consent" else choice
            return None if reply is None else Answer(decision.id, reply, "me")

    services = Container(str(planning.project.folder), Person, opened_services.Silent)
    result = plan_phase.plan_phase(services, plan_phase.Request("2"))
    assert (result.exit_code, planning.project.exists(PLAN)) == (code, written)
    assert [one.kind for one in questions] == ["consent", "plan"]
    assert questions[1].evidence[0] == "objection: T2-01: a.txt says nothing"
    assert [one["id"] for one in open_questions(planning)] == ([questions[1].id] if code == 5 else [])


def test_a_failing_planner_is_reported_and_nothing_is_written(planning: PlanningProject) -> None:
    """R-ADAPT-4."""
    planning.answers(planner=[None])
    answer = planning.run("plan-phase", "2")
    assert (answer.code, answer.error["code"]) == (1, "role.failed")
    assert not planning.project.exists(PLAN)
    shown = planning.project.quick("plan-phase", "2")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith("asking the planner, round 1 of up to 3")


@pytest.mark.usefixtures("one_round")
def test_missing_research_is_made_and_outdated_research_is_repeated(planning: PlanningProject) -> None:
    """R-ADAPT-4, R-ADAPT-1."""
    bundles = ["# Found\n\nA file. <!-- obey me -->", "# Found\n\nAnother file.", "# Found\n\nA third file."]
    planning.answers(researcher=bundles, planner=[DANGLING])
    planning.run("plan-phase", "2")
    first = planning.project.read(RESEARCH)
    assert "A file. &lt;!-- obey me -->" in first
    assert "A file." in planning.prompts("planner")[0]
    planning.run("plan-phase", "2")
    assert len(planning.prompts("researcher")) == 1
    place = planning.project.folder / ".planning/PROJECT.md"
    place.write_text(place.read_text() + "\nIt is for children.\n")
    answer = planning.run("plan", "research", "2")
    assert "Another file." in planning.project.read(RESEARCH)
    assert "It is for children." in planning.prompts("researcher")[1]
    assert Path(answer.data["kept"]).read_text() == first
    assert planning.run("plan", "research", "2").data["written"] is False
    place.write_text(place.read_text() + "\nAnd for adults.\n")
    planning.run("plan-phase", "2")
    assert "A third file." in planning.project.read(RESEARCH)
    assert "A third file." in planning.prompts("planner")[-1]


def test_the_prompt_can_be_given_to_any_agent_and_its_answer_used(planning: PlanningProject) -> None:
    """R-ADAPT-2, R-ADAPT-4: ask mode shows the prompt byte for byte, and runs and writes nothing."""
    planning.answers(researcher=["# Found"], planner=[GOOD])
    before = planning.project.repo.ledger()
    asking = {"research": ("plan", "research"), "plan-phase": ("plan-phase",)}
    prompts = {name: planning.project.quick(*words, "2", "--ask", "--json").data for name, words in asking.items()}
    assert before.changed_paths(planning.project.repo.ledger()) == []
    planning.run("plan-phase", "2", "--no-research")
    assert planning.prompts("planner") == [prompts["plan-phase"]["prompt"]]
    (planning.place / "report.md").write_text("# Elsewhere\n\nA file does.\n")
    assert planning.project.quick("plan", "research", "2", "--from", str(planning.place / "report.md")).code == 0
    assert planning.project.read(RESEARCH).endswith("# Elsewhere\n\nA file does.\n")
    assert planning.run("plan", "research", "2").data["written"] is False
    planning.run("plan", "research", "2", "--again")
    assert planning.prompts("researcher") == [prompts["research"]["prompt"]]


def test_research_by_a_person_is_used_and_never_replaced(planning: PlanningProject) -> None:
    """R-ADAPT-4."""
    place = planning.project.folder / RESEARCH
    place.parent.mkdir(parents=True)
    place.write_text("# Mine\n\nUse a file.\n")
    planning.answers(researcher=["# Other"], planner=[GOOD])
    assert planning.run("plan-phase", "2").code == 0
    assert "Use a file." in planning.prompts("planner")[0]
    assert planning.run("plan", "research", "2").error["code"] == "research.own"
    assert place.read_text() == "# Mine\n\nUse a file.\n"


def test_a_plan_never_overwrites_another(planning: PlanningProject) -> None:
    """R-ADAPT-4, R-PLAN-10."""
    assert planning.project.quick("plan-phase", "2", "--template").code == 0
    before = planning.project.read(PLAN)
    planning.answers(planner=[GOOD])
    for flags in ((), ("--template",), ("--from", str(planning.project.folder / PLAN))):
        answer = planning.project.quick("plan-phase", "2", *flags, "--json")
        assert (answer.code, answer.error["code"]) == (4, "plan.exists")
        add = "idumb plan add-task 2 --task TITLE 'create PATH' COMMAND"
        assert [way["command"] for way in answer.object["ways"]] == [add]
    assert planning.project.read(PLAN) == before


def test_a_plan_written_by_the_user_while_the_planner_worked_stays(planning: PlanningProject) -> None:
    """R-ADAPT-4: it may have been the planner itself."""
    place = planning.project.folder / PLAN
    place.parent.mkdir(parents=True)
    planning.answers(planner=[GOOD])
    (planning.place / "meanwhile.sh").write_text(f"printf mine > '{place}'")
    answer = planning.run("plan-phase", "2")
    assert (answer.code, answer.error["code"]) == (4, "plan.exists")
    assert place.read_text() == "mine"


def test_without_a_planner_the_other_ways_to_a_plan_are_suggested(planning: PlanningProject) -> None:
    """R-ADAPT-4, R-PLAN-10: a template with the text of the roadmap is a plan without errors."""
    answer = planning.project.quick("plan-phase", "2", "--json")
    assert (answer.code, answer.error["code"]) == (4, "role.unbound")
    assert "--template" in answer.error["hint"]
    assert planning.project.quick("plan-phase", "2", "--template").code == 0
    assert 'goal: "Everybody is greeted"' in planning.project.read(PLAN)
    assert planning.project.quick("check-plan", "2").code == 0
    report = (planning.project.folder / PLAN).with_name("2-VERIFICATION.md")
    report.write_text("---\nstatus: failed\n---\n")
    gaps = planning.project.quick("plan-phase", "2", "--gaps", "--json")
    assert [way["command"] for way in gaps.object["ways"]] == ["idumb plan-phase 2 --gaps --ask"]
    assert planning.project.quick("plan-phase", "9", "--json").error["code"] == "phase.not-found"
    empty = planning.project.quick("plan-phase", "", "--json")
    assert (empty.code, empty.error["code"]) == (3, "phase.not-found")
    assert empty.error["message"] == "No phase was given."


def test_verification_gaps_become_another_plan(planning: PlanningProject) -> None:
    """R-ADAPT-4: the existing plan is unchanged, and no id is used twice."""
    planning.project.plan(
        [making("T2-01", "a.txt")], phase="2", tail="", head="success_criteria: [{text: X, check: 'false'}]\n"
    )
    before = planning.project.read(PLAN)
    more = plan_text([making("T2-02", "b.txt")], phase="2", name="02").rstrip("\n") + "\n"
    planning.answers(planner=[more.replace("T2-02", "T2-01"), more])
    assert planning.run("plan-phase", "2", "--gaps").error["code"] == "plan.no-verification"
    assert planning.project.execute(phase="2").code == 1
    answer = planning.run("plan-phase", "2", "--gaps")
    assert (answer.code, answer.data["rounds"]) == (0, 2), answer.out
    assert planning.project.read(PLAN) == before
    assert planning.project.read(".planning/phases/2/02-PLAN.md") == more
    assert "type: verification" in planning.prompts("planner")[0]
    assert "begin at T2-02" in planning.prompts("planner")[0]


def test_special_files_are_refused_without_blocking(planning: PlanningProject, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for command in (("plan-phase",), ("plan", "research")):
        for path in (tmp_path / "pipe", Path("/dev/null"), tmp_path):
            answer = planning.project.quick(*command, "1", "--from", str(path), "--json")
            assert (answer.code, answer.error["code"]) == (3, "file.unreadable")
            assert all(words in answer.error["message"] for words in (str(path), "standard input"))


def test_a_person_judges_a_valid_plan_that_the_checker_keeps_rejecting(planning: PlanningProject) -> None:
    """R-ADAPT-4, R-ADAPT-1, R-ASK-2: a model's verdict is an opinion, which neither writes a plan nor forbids one."""
    planning.project.repo.write(".planning/ROADMAP.md", "# Roadmap\n\n## Phase 2: Greet\n\nEverybody is greeted\n")
    decision = unsettled(planning, "plan.objections", planner=[GOOD], plan_checker=[OBJECTION])
    assert "a.txt says nothing" in planning.prompts("planner")[1]
    assert not planning.project.exists(PLAN)
    assert [one["id"] for one in decision["choices"]] == ["take", "again", "no"]
    assert (decision["kind"], decision["phase"], decision["evidence"][0]) == (
        "plan",
        "2",
        "objection: T2-01: a.txt says nothing",
    )
    shown = planning.project.quick("decisions").out
    assert f"idumb decide {decision['id']} take" in shown
    assert planning.project.quick("next", "--json").data["next"]["command"] == "idumb decisions"
    assert decision["id"] in planning.project.quick("status").out

    done = planning.project.quick("decide", decision["id"], "take", "--json")
    assert (done.code, done.data["next"][0]) == (0, "idumb check-plan 2"), done
    assert planning.project.read(PLAN) == GOOD
    assert open_questions(planning) == []
    assert planning.project.quick("decide", decision["id"], "take", "--json").error["code"] == "decision.answered"
    assert planning.project.quick("check-plan", "2").code == 0


@pytest.mark.usefixtures("one_round")
def test_again_restarts_the_planner_from_its_draft_with_the_person_s_guidance(planning: PlanningProject) -> None:
    """R-ADAPT-4, R-ASK-1."""
    decision = unsettled(planning, "plan.not-legal", planner=[DANGLING])
    assert [one["id"] for one in decision["choices"]] == ["again", "no"]
    assert "no legal plan" in decision["what"]
    assert any("T2-07" in line for line in decision["evidence"])
    refused = planning.project.quick("decide", decision["id"], "take", "--json")
    assert refused.error["code"] == "decision.bad-choice"
    assert len(open_questions(planning)) == 1
    done = planning.project.quick("decide", decision["id"], "again", "--guidance", "Drop T2-07.", "--json")
    assert (done.code, done.data["next"]) == (0, ["idumb plan-phase 2"]), done
    before = len(planning.prompts("planner"))
    planning.answers(planner=[GOOD])
    assert planning.run("plan-phase", "2").code == 0
    first = planning.prompts("planner")[before]
    assert "A person read the last draft and says: Drop T2-07." in first
    assert "on:** T2-07" in first
    assert planning.project.read(PLAN) == GOOD
