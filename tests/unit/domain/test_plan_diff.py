"""The difference of two contracts in tasks and fields, independent of their lines."""

from __future__ import annotations

import dataclasses
import json

from hypothesis import given
from hypothesis import strategies as st

from idumb.domain import amendment
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import Criterion, FileClaim, Plan, Span, Task
from idumb.domain.settings import Settings

DONE = (Criterion("AC-1", "it holds", "check", "true"),)


def task(number: int, *needs: int, **more: object) -> Task:
    numbered = Task(f"T1-{number:02}", f"Task {number}", depends_on=tuple(f"T1-{n:02}" for n in needs), acceptance=DONE)
    return dataclasses.replace(numbered, **more)  # type: ignore[arg-type]


def contract(*tasks: Task, sha: str = "a", **more: object) -> Contract:
    plan = dataclasses.replace(Plan("01-PLAN.md", sha * 64, "1", "01", "T", "G", tasks=tasks), **more)  # type: ignore[arg-type]
    assembled, findings = contracts.assemble("1", "folder", [plan], Settings())
    assert assembled, findings
    return assembled


def test_equal_contracts_have_no_difference() -> None:
    one = contract(task(1), task(2, 1))
    assert amendment.compare(one, one).empty
    assert amendment.compare(one, one).lines() == ()


def test_added_removed_and_changed_tasks_are_listed_field_by_field() -> None:
    old = contract(task(1), task(2, 1, files=(FileClaim("create", "a.py"),)), task(3))
    new = contract(
        task(1), task(2, files=(FileClaim("create", "a.py"), FileClaim("modify", "b.py"))), task(4, 1), sha="b"
    )
    diff = amendment.compare(old, new)
    assert [t.id for t in diff.tasks_added] == ["T1-04"]
    assert [t.id for t in diff.tasks_removed] == ["T1-03"]
    assert [(c.id, list(c.fields)) for c in diff.tasks_changed] == [("T1-02", ["depends_on", "files"])]
    assert diff.lines() == (
        "task added: T1-04 Task 4",
        "task removed: T1-03 Task 3",
        "T1-02: depends on - T1-01",
        "T1-02: files + modify b.py",
    )


def test_changed_fields_of_the_plan_are_listed() -> None:
    old, new = contract(task(1), assumptions=("dry",)), contract(task(1), assumptions=("wet",), sha="b")
    diff = amendment.compare(old, new)
    assert [(p.id, list(p.fields)) for p in diff.plans_changed] == [("01-PLAN.md", ["assumptions"])]
    assert diff.lines() == ("01-PLAN.md: assumptions - dry", "01-PLAN.md: assumptions + wet")


def test_changes_without_meaning_are_distinguished() -> None:
    diff = amendment.compare(contract(task(1)), contract(task(1, span=Span(3, 9, 2), notation="list"), sha="b"))
    assert not diff.changes_tasks
    assert not diff.empty
    assert diff.lines() == ("01-PLAN.md: only its text differs",)


def test_a_different_order_of_the_same_tasks_is_reported() -> None:
    diff = amendment.compare(contract(task(1), task(2)), contract(task(2), task(1), sha="b"))
    assert diff.order == (("T1-01", "T1-02"), ("T1-02", "T1-01"))
    assert diff.lines() == ("order: T1-02 runs where T1-01 did",)


titles = st.lists(st.text(max_size=20), min_size=1, max_size=4)


@given(titles, titles)
def test_every_difference_is_json_and_names_the_same_tasks_in_both_directions(
    before: list[str], after: list[str]
) -> None:
    old = contract(*(task(n, title=text) for n, text in enumerate(before)))
    new = contract(*(task(n, title=text) for n, text in enumerate(after)), sha="b")
    forward, back = amendment.compare(old, new), amendment.compare(new, old)
    json.dumps(forward.as_dict())
    assert {t.id for t in forward.tasks_added} == {t.id for t in back.tasks_removed}
    assert {c.id for c in forward.tasks_changed} == {c.id for c in back.tasks_changed}
    assert forward.changes_tasks == (before != after)
