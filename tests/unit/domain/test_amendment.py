"""Amendments: the difference of two contracts in tasks and fields, and which changes a run takes over (R-LOCK-8)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from idumb.domain import amendment, outcome, plan_diff
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError
from idumb.domain.plans import new_task
from idumb.domain.plans.plan import Criterion, FileClaim, Plan, Span, Task
from idumb.domain.runs import replay
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import COMPLETED, HALTED, LockedContract, RunState, TaskState, TaskWork, chained
from idumb.domain.settings import Settings
from tests.support.cases import every
from tests.support.intake import assembled


def state(**statuses: str) -> RunState:
    """Two tasks, T1-01 completed and T1-02 pending unless said otherwise."""
    status_by_task = {"T1-01": outcome.COMPLETED, "T1-02": outcome.PENDING} | {
        name.replace("_", "-"): status for name, status in statuses.items()
    }
    run = RunState(id="r", phase="1", contract=LockedContract("a" * 64, chain="a" * 64))
    run.tasks = {t: TaskState(t, "d", status=s) for t, s in status_by_task.items()}
    run.attempted = {"T1-01": 1}
    return run


def test_what_is_done_or_covers_every_task_cannot_change_and_what_is_not_begun_can() -> None:
    half, begun = state(), state(T1_02=outcome.FAILED)
    half.tasks["T1-02"] = replace(half.tasks["T1-02"], intended=True)
    begun.tasks["T1-02"] = replace(begun.tasks["T1-02"], work=TaskWork(touched=("b.txt",)))
    first, second, other = task(1), task(2, 1), task(2, 1, title="Else")
    old = contract(first, second)
    added = replace(old.plans[0], plan="02", path="02-PLAN.md", mode="strict", tasks=(task(3),))
    stricter = replace(contract(first, second, task(3)), plans=(*old.plans, added))
    for new, run, code in (
        (contract(first, other, task(3, 2), sha="b"), state(), None),
        (contract(first, sha="b"), state(), None),
        (contract(task(1, title="Else"), second, sha="b"), state(), "amend.done"),
        (contract(task(1, title="Else"), second, sha="b"), state(T1_01=outcome.ACCEPTED), "amend.done"),
        (contract(task(2), sha="b"), state(), "amend.done"),
        (contract(first, other, sha="b"), half, "amend.done"),
        (contract(first, sha="b"), begun, "amend.attempted"),
        (contract(first, second, sha="b", assumptions=("x",)), state(), "amend.assumptions"),
        (contract(first, second, sha="b", mode="strict"), state(), "amend.mode"),
        (stricter, state(), "amend.mode"),
        (replace(contract(first, second, sha="b"), dependencies={"T1-01": ("T1-02",)}), state(), "amend.done"),
    ):
        reasons = amendment.forbidden(plan_diff.compare(old, new), old, new, run)
        assert (None if reasons is None else reasons.code) == code


@every("status", [outcome.FAILED, outcome.WAITING])
def test_a_stopped_task_can_be_retried_after_its_text_changed(status: str) -> None:
    old, new = contract(task(1), task(2, 1)), contract(task(1), task(2, 1, title="Else"), sha="b")
    diff = plan_diff.compare(old, new)
    assert amendment.tasks_to_reset(diff, state(T1_02=status)) == ("T1-02",)
    assert amendment.tasks_to_reset(diff, state()) == ()


def test_a_claim_is_a_verb_and_a_path() -> None:
    assert new_task.parse_claim("create `a file.md`") == FileClaim("create", "a file.md")
    assert new_task.parse_claim("move a.py to b.py") == FileClaim("move", "a.py", "b.py")
    for wrong in ("", "src/x.py", "change src/x.py", "move a.py", "modify "):
        with pytest.raises(InputError):
            new_task.parse_claim(wrong)


def event(kind: str, **payload: Any) -> Event:
    return Event(7, "op", "r", None, None, kind, payload, 1, 1, "2026-01-01T00:00:00.000000Z", "0" * 64, "1" * 64)


def amended(**more: Any) -> Event:
    old, new = "a" * 64, "b" * 64
    payload = {"version": 2, "from": old, "to": new, "chain": chained(old, new), "plans": [["p", "s"]]}
    return event("contract.amended", **payload, tasks=None, answers=["q"], **more)


def test_the_next_version_is_chained_to_the_previous_one_and_keeps_completed_tasks() -> None:
    run = state()
    run.state = COMPLETED
    replay.apply(run, amended())
    assert (run.contract.version, run.contract.hash, run.contract.chain) == (2, "b" * 64, chained("a" * 64, "b" * 64))
    assert run.contract.appended == {"q"}
    assert run.state == COMPLETED
    assert run.tasks["T1-01"].status == outcome.COMPLETED


def test_an_amended_task_counts_as_changed_and_a_new_one_is_pending() -> None:
    run = state()
    replay.apply(run, event("run.completed", reason=""))
    replay.apply(run, event("verification.recorded", status="passed"))
    changed = replace(amended(), payload={**amended().payload, "tasks": [["T1-01", "d"], ["T1-03", "e"]]})
    replay.apply(run, changed)
    assert list(run.tasks) == ["T1-01", "T1-03"]
    assert run.tasks["T1-03"].status == outcome.PENDING
    assert run.state == HALTED
    assert not run.verified


DONE = (Criterion("AC-1", "it holds", "check", "true"),)


def task(number: int, *needs: int, **more: object) -> Task:
    numbered = Task(f"T1-{number:02}", f"Task {number}", depends_on=tuple(f"T1-{n:02}" for n in needs), acceptance=DONE)
    return replace(numbered, **more)


def contract(*tasks: Task, sha: str = "a", **more: object) -> Contract:
    plan = replace(Plan("01-PLAN.md", sha * 64, "1", "01", "T", "G", tasks=tasks), **more)
    return assembled(plan, settings=Settings())


def test_added_removed_and_changed_tasks_are_listed_field_by_field() -> None:
    old = contract(task(1), task(2, 1, files=(FileClaim("create", "a.py"),)), task(3))
    new = contract(
        task(1), task(2, files=(FileClaim("create", "a.py"), FileClaim("modify", "b.py"))), task(4, 1), sha="b"
    )
    diff = plan_diff.compare(old, new)
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
    diff = plan_diff.compare(old, new)
    assert [(p.id, list(p.fields)) for p in diff.plans_changed] == [("01-PLAN.md", ["assumptions"])]
    assert diff.lines() == ("01-PLAN.md: assumptions - dry", "01-PLAN.md: assumptions + wet")


def test_changes_without_meaning_are_distinguished() -> None:
    diff = plan_diff.compare(contract(task(1)), contract(task(1, span=Span(3, 9, 2), notation="list"), sha="b"))
    assert not diff.changes_tasks
    assert diff.lines() == ("01-PLAN.md: only its text differs",)


def test_a_different_order_of_the_same_tasks_is_reported() -> None:
    diff = plan_diff.compare(contract(task(1), task(2)), contract(task(2), task(1), sha="b"))
    assert diff.order == (("T1-01", "T1-02"), ("T1-02", "T1-01"))
    assert diff.lines() == ("order: T1-02 runs where T1-01 did",)


titles = st.lists(st.text(max_size=20), min_size=1, max_size=4)


@given(titles, titles)
def test_every_difference_is_json_and_names_the_same_tasks_in_both_directions(
    before: list[str], after: list[str]
) -> None:
    old = contract(*(task(n, title=text) for n, text in enumerate(before)))
    new = contract(*(task(n, title=text) for n, text in enumerate(after)), sha="b")
    forward, back = plan_diff.compare(old, new), plan_diff.compare(new, old)
    assert plan_diff.compare(old, old).lines() == ()
    json.dumps(forward.as_dict())
    assert {t.id for t in forward.tasks_added} == {t.id for t in back.tasks_removed}
    assert {c.id for c in forward.tasks_changed} == {c.id for c in back.tasks_changed}
    assert forward.changes_tasks == (before != after)
