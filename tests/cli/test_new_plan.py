"""`idumb plan new`: from an empty repository to a plan that passes every check, and to a verified phase."""

from __future__ import annotations

import shlex

from idumb.app.planning import new_tasks
from idumb.app.planning.new_tasks import NewPlan
from idumb.app.planning.phase_context import PhaseLocation
from idumb.domain.plans.new_task import NewTask
from idumb.system import shipped
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

PLAN = ".planning/phases/1/01-PLAN.md"
GREET = ("--task", "Greet the reader", "create hello.txt", "grep -q hello hello.txt")
PART = ("--task", "Say `bye()` to <all> — check: `x`", "bye.txt, modify hello.txt", "grep -q `echo bye` bye.txt")
LOCATION = PhaseLocation("1", ".planning/phases/1", title="First")


def test_each_template_gives_a_plan_without_findings(project: Project) -> None:
    """R-PLAN-10: paths without a verb are modified if they exist or an earlier task creates them."""
    for template in new_tasks.NAMES:
        flags = ("--template", template, "--goal", "All greet")
        answer = project.quick("plan", "new", "1", *flags, *GREET, *PART, "--json")
        assert (answer.code, answer.data["tasks"], answer.data["findings"]) == (0, ["T1-01", "T1-02"], [])
        checked = project.quick("check-plan", "1", "--json").data
        assert (checked["tasks"], checked["findings"]) == (2, [])
        text = project.read(PLAN)
        assert "- **Files:** create `bye.txt`, modify `hello.txt`" in text
        assert "``grep -q `echo bye` bye.txt``" in text
        assert "- **Depends on:** T1-01" in text
        assert "### T1-02: Say `bye()` to <all>: check `x`\n" in text
        (project.folder / PLAN).unlink()


def test_a_stranger_reaches_a_verified_phase_in_five_commands(sandbox: GitSandbox) -> None:
    """R-PLAN-10: the first is `git init`; the work itself is an ordinary edit."""
    stranger = Project(sandbox, sandbox.root)
    assert stranger.quick("init").code == 0
    planned = stranger.quick("plan", "new", "1", "--builder", "editor", "--goal", "All greet", *GREET)
    assert planned.code == 0, planned.err
    refused = stranger.quick("start", "T1-01", "--json")
    offered = next(choice["command"] for choice in refused.error["details"]["choices"] if choice["id"] == "run")
    assert stranger.quick(*shlex.split(offered)[1:]).code == 0
    sandbox.write("hello.txt", "hello\n")
    submitted = stranger.json("submit", "T1-01")
    assert submitted.code == 0, submitted.out
    assert stranger.json("status").data["phases"][0]["verification"] == "passed"


def test_without_a_terminal_the_refusal_is_the_whole_command_line(project: Project) -> None:
    """R-PLAN-10."""
    refused = project.quick("plan", "new", "1", "--template", "docs", *GREET, "--json")
    assert (refused.code, refused.error["code"]) == (4, "plan.incomplete")
    assert not project.folder.joinpath(PLAN).exists()
    words = shlex.split(refused.error["hint"].replace("GOAL", "'All greet'"))
    assert words[:2] == ["idumb", "plan"]
    assert project.quick(*words[1:]).code == 0


def test_a_plan_is_never_overwritten(project: Project) -> None:
    """R-PLAN-10."""
    assert project.quick("plan", "new", "1", "--goal", "All greet", *GREET).code == 0
    before = project.read(PLAN)
    again = project.quick("plan", "new", "1", "--goal", "Other", *PART, "--json")
    assert (again.code, again.error["code"]) == (4, "plan.exists")
    assert [choice["id"] for choice in again.error["details"]["choices"]] == ["add"], "no verification found gaps"
    assert project.read(PLAN) == before


UNUSABLE: tuple[tuple[tuple[str, ...], str], ...] = (
    (("--task", "A", "create /etc/passwd", "true"), "plan.invalid"),
    (("--task", "A", "create", "true"), "amend.bad-claim"),
    (("--task", "A", "create a.txt,", "true"), "amend.bad-claim"),
    (("--task", "A", "none", "true\nfalse"), "plan.bad-task"),
    (("--task", " ", "none", "true"), "plan.bad-task"),
    (("--task", "A", "none", " "), "plan.bad-task"),
    (("--template", "../plan", *GREET), "template.unknown"),
)


def test_unusable_words_write_nothing(project: Project) -> None:
    """R-PLAN-10."""
    for flags, code in UNUSABLE:
        answer = project.quick("plan", "new", "1", "--goal", "G", *flags, "--json")
        assert (answer.code, answer.error["code"]) == (3, code), flags
        assert not project.folder.joinpath(PLAN).exists()


def test_a_template_of_the_repository_replaces_the_shipped_one(project: Project) -> None:
    """R-PLAN-10: what follows the tasks stays behind them, and other dollar signs are text."""
    text = shipped.template("plans/feature.md")
    own = text.replace("## Success", "Costs $5 and $more.\n\n## Success") + "\n## Notes\n\nAsk $phase first.\n"
    project.repo.write(f"{new_tasks.TEMPLATES}/feature.md", own)
    assert project.quick("plan", "new", "1", "--goal", "All greet", *GREET, *PART).code == 0
    text = project.read(PLAN)
    assert "Costs $5 and $more." in text
    assert text.endswith("\n\n## Notes\n\nAsk 1 first.\n")
    assert project.quick("check-plan", "1").code == 0


def asked(*typed: str | None, **given: object) -> NewPlan:
    lines = iter(typed)
    request = NewPlan("1", **given)  # type: ignore[arg-type]
    return new_tasks._completed(None, request, LOCATION, lambda *_: next(lines))  # type: ignore[arg-type]


def test_at_a_terminal_it_asks_for_what_the_flags_leave_out() -> None:
    """R-PLAN-10: an empty title ends the tasks."""
    request = asked("All greet", "", "Greet", "create a.txt", "true", "Part", "", "false", "")
    assert request.goal == "All greet"
    assert request.tasks == (NewTask("Greet", "create a.txt", "true"), NewTask("Part", "", "false"))
    assert asked("Part", "none", "true", "", goal="G").tasks == (NewTask("Part", "none", "true"),)
    assert asked(goal="G", tasks=(NewTask("A", "", "true"),)).goal == "G"
