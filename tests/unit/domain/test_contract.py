"""The contract of a phase: cross-plan checks, readiness, hashes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from msgspec.structs import replace

from idumb.domain import contract
from idumb.domain.plans.plan import Criterion, FileClaim, Plan, Scope, Span, Task
from idumb.domain.settings import Binding, Settings
from tests.support.cases import every
from tests.support.growth import assert_linear
from tests.support.intake import assembled, findings_of

if TYPE_CHECKING:
    import pytest

AGENT = Settings(builder="agent", bindings={"agent": Binding("agent", "command", ("true",))})


def task(task_id: str, *needs: str, **more: object) -> Task:
    line = Span(0, 1, int(task_id[-2:]))
    fields: dict[str, object] = {
        "acceptance": (Criterion("AC-1", "it holds", "check", f"make {task_id}"),),
        "span": line,
        "spans": {"depends_on": line},
    }
    return replace(Task(task_id, f"Title of {task_id}", depends_on=needs), **(fields | more))


def plan(number: str, *tasks: Task, **more: object) -> Plan:
    plan_of_tasks = Plan(f"{number}-PLAN.md", number * 32, "1", number, "T", "G", tasks=tasks)
    return replace(plan_of_tasks, **more)


def codes(*plans: Plan) -> list[str]:
    return [f.code for f in contract.assemble("1", "folder", plans, AGENT)[1]]


def test_tasks_of_all_plans_have_one_order() -> None:
    """R-PLAN-1."""
    assert assembled(plan("01", task("T1-01", "T1-02")), plan("02", task("T1-02"))).order == ("T1-02", "T1-01")


def test_a_plan_waits_for_all_tasks_of_the_plans_it_depends_on() -> None:
    waiting, first = plan("01", task("T1-01"), depends_on=("02",)), plan("02", task("T1-02"), task("T1-03"))
    assert assembled(waiting, first).dependencies["T1-01"] == ("T1-02", "T1-03")


def test_a_plan_waits_for_lower_waves_and_one_without_a_wave_for_none() -> None:
    plans = contract.in_waves((plan("01", wave=2), plan("02", wave=1), plan("03")))
    assert [each.depends_on for each in plans] == [("02",), (), ()]


@every(
    "plans, code",
    [
        ((plan("01", task("T1-01", "T1-09")),), "task.unknown-dependency"),
        ((plan("01", task("T1-01", "T1-01")),), "task.self-dependency"),
        ((plan("01", task("T1-01")), plan("02", task("T1-01"))), "task.duplicate-id"),
        ((plan("01", task("T1-01")), plan("01", task("T1-02"))), "plan.duplicate-id"),
        ((plan("01", task("T1-01"), depends_on=("07",)),), "plan.unknown-dependency"),
    ],
)
def test_errors_across_plans_are_found(plans: tuple[Plan, ...], code: str) -> None:
    assert codes(*plans) == [code]


def test_every_cycle_unknown_id_and_dependent_task_is_reported_at_once() -> None:
    """R-PLAN-5, R-PLAN-6."""
    first = plan("01", task("T1-01", "T1-02"), task("T1-02", "T1-01"), task("T1-03", "T1-04"), task("T1-04", "T1-03"))
    second = plan("02", task("T1-05", "T1-99"), task("T1-06", "T1-05"), task("T1-07", "T1-01"), task("T1-08"))
    _, findings = contract.assemble("1", "f", [first, second], AGENT)
    assert sorted((f.code, f.found) for f in findings) == [
        ("plan.cycle", "T1-01 → T1-02 → T1-01"),
        ("plan.cycle", "T1-03 → T1-04 → T1-03"),
        ("task.unknown-dependency", "T1-99"),
        ("task.unreachable", "T1-01"),
        ("task.unreachable", "T1-05"),
    ]


def test_a_cycle_between_plans_is_reported_as_one() -> None:
    """R-PLAN-6."""
    plans = [
        plan("01", task("T1-01"), task("T1-02"), depends_on=("02",)),
        plan("02", task("T1-03"), task("T1-04"), depends_on=("01",)),
        plan("03", task("T1-05"), depends_on=("01",)),
    ]
    _, findings = contract.assemble("1", "f", plans, AGENT)
    assert [(f.code, f.found) for f in findings] == [("plan.cycle", "01 → 02 → 01"), ("task.unreachable", "T1-01")]


def test_the_suggested_id_for_an_unknown_dependency_is_never_the_task_itself() -> None:
    """R-PLAN-6."""
    _, findings = contract.assemble("1", "f", [plan("01", task("T1-11", "T1-111"), task("T1-31"))], AGENT)
    assert (findings[0].code, findings[0].accepted) == ("task.unknown-dependency", "T1-31")


def test_a_phase_has_a_limited_number_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "MAX_TASKS", 2)
    first, second = plan("01", task("T1-01"), task("T1-02")), plan("02", task("T1-03"))
    assert (codes(first), codes(first, second)) == ([], ["phase.too-many-tasks"])


def test_of_many_unknown_dependencies_the_first_hundred_are_reported_in_linear_time() -> None:
    def given(count: int) -> Plan:
        return plan("01", *(task(f"T1-{number:05}", f"T1-{number:05}x") for number in range(count)))

    found = [f.message for f in contract.assemble("1", "f", [given(140)], AGENT)[1] if f.found.endswith("x")]
    assert (len(found), found[-1][-40:]) == (100, "(and 40 more of task.unknown-dependency)")
    assert_linear(codes, given)


def test_what_finished_tasks_replace_is_left_out_of_the_others_in_linear_time() -> None:
    def given(count: int) -> contract.Contract:
        ids = [f"T1-{number:05}" for number in range(count)]
        tasks = {id: task(id, replaces=(f"{before}/AC-1",)) for before, id in itertools.pairwise(["T1-x", *ids])}
        return replace(whole, tasks=tasks, order=tuple(tasks))

    whole = assembled(plan("01", task("T1-01")), settings=AGENT)
    few = given(3)
    assert [len(one.acceptance) for one in contract.without_replaced(few, few.order, few.order)] == [0, 0, 1]
    assert_linear(lambda made: contract.without_replaced(made, made.order, made.order), given)


def test_the_hash_changes_with_every_plan_byte_and_a_setting() -> None:
    base = [plan("01", task("T1-01"))]
    hashes = {
        contract.contract_hash(base, AGENT),
        contract.contract_hash([replace(base[0], sha256="f" * 64)], AGENT),
        contract.contract_hash([replace(base[0], path="other")], AGENT),
        contract.contract_hash(base, replace(AGENT, builder=None)),
    }
    assert len(hashes) == 4


def test_the_digest_of_a_task_has_all_of_it_but_its_place() -> None:
    criterion = Criterion("AC-1", "a", "check", "make test")
    one = Task("T1-01", "t", acceptance=(criterion,))
    others = [replace(one, on_timeout=action) for action in ("fail", "retry")]
    others += [replace(one, title="Other"), replace(one, acceptance=(replace(criterion, keeps=True),))]
    assert len({contract.task_digest(each) for each in (one, *others)}) == 5
    assert contract.task_digest(one) == contract.task_digest(replace(one, span=Span(9, 10, 99)))


def test_an_unproven_task_is_not_ready() -> None:
    """R-RUN-3."""
    bare = (Criterion("AC-1", "it is better", "unproven"),)
    assert [f.code for f in findings_of(plan("01", task("T1-01", acceptance=bare)))] == ["task.no-proof"]
    opinion = (Criterion("AC-1", "reads well", "opinion"),)
    assert [f.code for f in findings_of(plan("01", task("T1-01", acceptance=opinion)))] == ["task.no-proof"]


def test_verify_covers_all_criteria_only_if_none_has_a_mark() -> None:
    bare = (Criterion("AC-1", "a", "unproven"), Criterion("AC-2", "b", "unproven"))
    assert set(contract.proofs(task("T1-01", acceptance=bare, verify=("make test",))).values()) == {"verify"}
    mixed = (Criterion("AC-1", "a", "unproven"), Criterion("AC-2", "b", "verify"))
    assert contract.proofs(task("T1-01", acceptance=mixed, verify=("make test",))) == {
        "AC-1": "unproven",
        "AC-2": "verify",
    }


def test_a_plan_with_a_root_writes_below_it_only() -> None:
    """R-PLAN-4."""
    files = (FileClaim("create", "app/x"), FileClaim("modify", "lib/y"))
    scoped = plan("01", task("T1-01", files=files), scope=Scope("./app"))
    assert [(f.code, f.found) for f in findings_of(scoped)] == [("path.outside-scope", "lib/y")]


@every(
    "one, limits",
    [
        (task("T1-01", estimate=600), (1200.0, 900.0)),
        (task("T1-01"), (3600.0, 2700.0)),
        (task("T1-01", estimate=600, timeout=60), (60.0, 60.0)),
        (task("T1-01", kind="human-action"), (None, None)),
    ],
)
def test_a_task_s_timeout_is_twice_its_estimate_and_on_a_retry_one_and_a_half_times_that(
    one: Task, limits: tuple[float | None, float | None]
) -> None:
    """R-RUN-4."""
    assert (one.time_limit(1), one.time_limit(2)) == limits
