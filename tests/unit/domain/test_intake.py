"""Checks of a legal plan: coverage, completeness, modes and the self-check (R-LOCK-1, R-LOCK-6)."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from idumb.domain import catalog
from idumb.domain.finding import ERROR, SILENT
from idumb.domain.intake import registry, rule, self_check
from idumb.domain.plans.plan import (
    STRICT,
    Criterion,
    FileClaim,
    Interface,
    Invariant,
    Limits,
    Plan,
    RollbackClass,
    Span,
    Task,
)
from idumb.domain.proof.gate import Deadline, OutOfTimeError
from tests.support.intake import ABSENT, CHECKED, HERE, SETTINGS, assembled, codes, findings_of, plan, step, task


def test_a_plain_task_has_no_finding() -> None:
    """R-LOCK-1."""
    assert findings_of(plan()) == []


def test_requirements_and_tasks_are_matched_across_all_plans_of_the_phase() -> None:
    """R-LOCK-6, R-GATE-2."""
    one = plan(task(requirements=("REQ-1",)), requirements={"REQ-1": "a", "REQ-2": "b"})
    two = plan(task("T1-02", requirements=("REQ-2",)), requirements={"REQ-2": ""}, path="02-PLAN.md", plan="02")
    assert codes(one, two) == set()
    assert [(f.code, f.found) for f in findings_of(one)] == [("requirement.no-task", "REQ-2: b")]
    assert codes(plan(task(), requirements={"REQ-1": "a"})) == {"requirement.no-task", "task.no-requirement"}
    assert codes(plan(task())) == set()


def test_a_task_that_only_a_model_judges_is_named_and_needs_an_artifact() -> None:
    """R-LOCK-6, R-PLAN-10."""
    opinion = (Criterion("AC-1", "it reads well", "opinion"),)
    bare = task(acceptance=opinion, validator="critic", files=None)
    assert codes(plan(bare)) == {"task.no-artifact"}
    assert codes(plan(replace(bare, files=(FileClaim("create", "a"),)))) == {"task.no-check"}
    assert codes(plan(replace(bare, verify=("make test",)))) == set()
    assert codes(plan(replace(bare, files=(FileClaim("read", "a"),)))) == {"task.no-artifact"}
    by_person = (Criterion("AC-1", "it reads well", "human"),)
    assert codes(plan(task(acceptance=by_person, files=None))) == set()


def test_strict_mode_requires_non_goals_change_classes_invariants_and_complete_interfaces() -> None:
    """R-LOCK-6, R-GATE-2."""
    half = Interface("greet", {"inputs": "a name"})
    bare = plan(task(interfaces=(half,)))
    expected = {*ABSENT, "plan.no-invariants", "task.no-change-class", "interface.incomplete"}
    assert codes(bare) == set()
    assert codes(bare, mode=STRICT) == expected
    whole = Interface("greet", dict.fromkeys(("inputs", "outputs", "errors", "side effects"), "none"))
    complete = plan(
        task(interfaces=(whole,), change="extending"),
        invariants=(Invariant("INV-1", "it imports", "make imports"),),
        success_criteria=CHECKED,
        spans={"requirements": HERE, "non_goals": HERE, "invariants": HERE},
    )
    assert codes(complete, mode=STRICT) == set()


def test_a_plan_without_change_classes_gets_one_finding() -> None:
    """R-LOCK-6."""
    silent = [task(f"T1-0{n}", span=Span(0, 1, n)) for n in range(1, 5)]

    def unclassified(*tasks: Task) -> list[tuple[int, str]]:
        return [(f.line, f.found) for f in findings_of(plan(*tasks), mode=STRICT) if f.code == "task.no-change-class"]

    assert unclassified(*silent) == [(1, "T1-01, T1-02, T1-03, T1-04")]
    assert unclassified(replace(silent[0], change="extending"), *silent[1:]) == [(2, "T1-02, T1-03, T1-04")]


def test_each_unproven_criterion_is_reported_at_its_line_by_the_selected_mode() -> None:
    """R-LOCK-1, R-LOCK-6."""
    loose = tuple(Criterion(f"AC-{n}", f"it is {n}", "unproven", span=Span(0, 1, 20 + n)) for n in (2, 3))
    one = plan(task(acceptance=(*CHECKED, *loose)), success_criteria=(loose[0],))
    for mode, severity in ((None, "warning"), (STRICT, ERROR)):
        unproven = [f for f in findings_of(one, mode=mode) if f.code == "criterion.unproven"]
        assert [(f.line, f.found, f.severity) for f in unproven] == [
            (22, "it is 2", severity),
            (23, "it is 3", severity),
            (22, "it is 2", severity),
        ]


def test_a_task_with_a_verify_that_proves_nothing_gets_a_suggestion() -> None:
    """R-LOCK-1."""
    mixed = (Criterion("AC-1", "reads well", "opinion"), Criterion("AC-2", "it counts", "unproven"))
    for one in (
        task(acceptance=mixed, verify=("make test",)),
        task(acceptance=(*CHECKED, *mixed), verify=("make test",)),
    ):
        assert [f.fix for f in findings_of(plan(one)) if "— verify" in f.fix]
    assert not [f for f in findings_of(plan(task(acceptance=(*CHECKED, *mixed)))) if "— verify" in f.fix]


def test_a_file_of_plain_steps_has_no_place_for_declarations() -> None:
    """R-LOCK-6."""
    bare = plan(task(steps=(step(command="true"),)), path="greet.yaml", mode=STRICT)
    assert codes(bare) == set()


def test_a_plain_step_s_intent_is_judged_once_though_it_is_the_title_too() -> None:
    """R-LOCK-7."""
    vague = "clear the caches as needed"
    bare = plan(task(title=vague, steps=(step(intent=vague, command="true"),)), path="greet.yaml", mode=STRICT)
    assert [(f.code, f.line) for f in findings_of(bare)] == [("text.conditional", 20)]


def test_no_mode_option_makes_a_strict_plan_guided() -> None:
    """R-LOCK-6."""
    strict = plan(mode=STRICT)
    assert codes(strict, mode="guided") == codes(strict) == {*ABSENT, "task.no-change-class"}


def test_one_strict_plan_makes_the_whole_phase_strict() -> None:
    """R-LOCK-6."""
    guided = plan(task(title="Fix it as needed"))
    strict = plan(task("T1-02", change="extending"), path="02-PLAN.md", plan="02", mode=STRICT)
    assert {f.code: f.severity for f in findings_of(guided, strict)}["text.conditional"] == ERROR


def answered(*plans: Plan, mode: str | None = None) -> dict[str, self_check.Answer]:
    case = rule.Case(assembled(*plans), SETTINGS, mode=mode)
    return {a.id: a for a in self_check.answers(case, registry.findings(case))}


def test_every_negative_self_check_answer_is_an_error_in_strict_mode() -> None:
    """R-LOCK-6."""
    strict = {code: catalog.ROWS[code].strict for code in registry.CODES}
    for question in self_check.QUESTIONS:
        assert {strict[code] for code in question.codes} <= {ERROR}


def test_ten_questions_are_answered_with_evidence() -> None:
    """R-LOCK-6."""
    rollback = RollbackClass("compensatable", ("true",))
    candidate = plan(
        task(requirements=("REQ-1",), change="breaking", rollback=rollback, limits=Limits(1)),
        requirements={"REQ-1": "a"},
        spans={"non_goals": HERE},
    )
    answers = answered(candidate)
    assert len(answers) == 10
    assert answers["requirements"] == self_check.Answer(
        "requirements", answers["requirements"].question, "yes", ("REQ-1",)
    )
    assert answers["rollback"].evidence == ("T1-01 by its own commands", "every other task by snapshot")
    assert answers["change-classes"].evidence == ("T1-01 breaking",)
    assert answers["non-goals"].evidence == ("declared: none",)
    assert answers["agents"].evidence == ("agent",)
    assert answers["design"].answer == "not judged"


def test_a_negative_answer_names_its_cause_even_without_a_finding() -> None:
    """R-LOCK-6."""
    answers = answered(plan(*(task(f"T1-{n:02}", files=(FileClaim("create", f"{n}.txt"),)) for n in range(1, 31))))
    assert answers["change-classes"].answer == "no"
    assert answers["change-classes"].evidence[0] == "01-PLAN.md:9 task.no-change-class"
    assert catalog.ROWS["task.no-change-class"].guided == SILENT


def test_a_plan_that_was_not_checked_in_time_is_refused() -> None:
    """R-GATE-1: the gate `plan` has a limited time, and a plan without a result is neither approved nor run."""
    times = itertools.count(0.0, 40.0)
    with pytest.raises(OutOfTimeError, match="not checked within 60s"):
        registry.findings(rule.Case(assembled(plan()), SETTINGS), Deadline.after(60, lambda: next(times)))
