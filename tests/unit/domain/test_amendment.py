"""Which amendments are allowed during a run, and their effect on the state (R-LOCK-8)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from idumb.domain import amendment, outcome
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError
from idumb.domain.plans import new_task
from idumb.domain.plans.plan import FileClaim
from idumb.domain.runs import replay
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import COMPLETED, HALTED, LockedContract, RunState, TaskState, TaskWork, chained
from tests.support.cases import every
from tests.unit.domain.test_plan_diff import contract, task


def state(**statuses: str) -> RunState:
    """Two tasks, T1-01 completed and T1-02 pending unless said otherwise."""
    status_by_task = {"T1-01": outcome.COMPLETED, "T1-02": outcome.PENDING} | {
        name.replace("_", "-"): status for name, status in statuses.items()
    }
    run = RunState(id="r", phase="1", contract=LockedContract("a" * 64, chain="a" * 64))
    run.tasks = {t: TaskState(t, "d", status=s) for t, s in status_by_task.items()}
    run.attempted = {"T1-01": 1}
    return run


def refused(new: Contract, run: RunState) -> str | None:
    old = contract(task(1), task(2, 1))
    reasons = amendment.forbidden(amendment.compare(old, new), old, new, run)
    return None if reasons is None else reasons.code


def test_tasks_can_be_added_and_future_tasks_can_change() -> None:
    assert refused(contract(task(1), task(2, 1, title="Else"), task(3, 2), sha="b"), state()) is None
    assert refused(contract(task(1), sha="b"), state()) is None  # T1-02 was not begun


def test_completed_tasks_can_neither_change_nor_disappear_nor_wait() -> None:
    assert refused(contract(task(1, title="Else"), task(2, 1), sha="b"), state()) == "amend.done"
    assert refused(contract(task(2), sha="b"), state()) == "amend.done"
    assert refused(contract(task(1, title="Else"), task(2, 1), sha="b"), state(T1_01=outcome.ACCEPTED)) == "amend.done"
    half = state()
    half.tasks["T1-02"] = dataclasses.replace(half.tasks["T1-02"], intended=True)
    assert refused(contract(task(1), task(2, 1, title="Else"), sha="b"), half) == "amend.done"


@every("field", ["assumptions", "mode"])
def test_settings_that_cover_every_task_cannot_change(field: str) -> None:
    more: dict[str, Any] = {"assumptions": ("x",)} if field == "assumptions" else {"mode": "strict"}
    assert refused(contract(task(1), task(2, 1), sha="b", **more), state()) == f"amend.{field}"


def test_a_task_with_work_in_its_files_cannot_disappear() -> None:
    run = state(T1_02=outcome.FAILED)
    run.tasks["T1-02"] = dataclasses.replace(run.tasks["T1-02"], work=TaskWork(touched=("b.txt",)))
    assert refused(contract(task(1), sha="b"), run) == "amend.attempted"


@every("status", [outcome.FAILED, outcome.WAITING])
def test_a_stopped_task_can_be_retried_after_its_text_changed(status: str) -> None:
    old, new = contract(task(1), task(2, 1)), contract(task(1), task(2, 1, title="Else"), sha="b")
    diff = amendment.compare(old, new)
    assert amendment.tasks_to_reset(diff, state(T1_02=status)) == ("T1-02",)
    assert amendment.tasks_to_reset(diff, state()) == ()


@every(
    "text, claim",
    [
        ("modify src/x.py", FileClaim("modify", "src/x.py")),
        ("create `a file.md`", FileClaim("create", "a file.md")),
        ("move a.py to b.py", FileClaim("move", "a.py", "b.py")),
    ],
)
def test_a_claim_is_a_verb_and_a_path(text: str, claim: FileClaim) -> None:
    assert new_task.parse_claim(text) == claim


@every("text", ["", "src/x.py", "change src/x.py", "move a.py", "modify "])
def test_anything_else_is_not_a_claim(text: str) -> None:
    with pytest.raises(InputError):
        new_task.parse_claim(text)


def event(kind: str, **payload: Any) -> Event:
    return Event(7, "op", "r", None, None, kind, payload, 1, 1, "2026-01-01T00:00:00.000000Z", "0" * 64, "1" * 64)


def amended(**more: Any) -> Event:
    payload = {
        "version": 2,
        "from": "a" * 64,
        "to": "b" * 64,
        "chain": chained("a" * 64, "b" * 64),
        "plans": [["p", "s"]],
    }
    return event("contract.amended", **payload, tasks=None, answers=["q"], **more)


def test_the_next_version_is_chained_to_the_previous_one_and_keeps_completed_tasks() -> None:
    run = state()
    run.state = COMPLETED
    replay.apply(run, event("amendment.intended", to="b" * 64))
    replay.apply(run, amended())
    assert (run.contract.version, run.contract.hash, run.contract.chain) == (
        2,
        "b" * 64,
        chained("a" * 64, "b" * 64),
    )
    assert not run.contract.amending
    assert run.contract.appended == {"q"}
    assert run.state == COMPLETED
    assert run.tasks["T1-01"].status == outcome.COMPLETED


def test_an_amended_task_counts_as_changed_and_a_new_one_is_pending() -> None:
    run = state()
    replay.apply(run, event("run.completed", reason=""))
    replay.apply(run, event("verification.recorded", status="passed"))
    changed = dataclasses.replace(amended(), payload={**amended().payload, "tasks": [["T1-01", "d"], ["T1-03", "e"]]})
    replay.apply(run, changed)
    assert list(run.tasks) == ["T1-01", "T1-03"]
    assert run.tasks["T1-03"].status == outcome.PENDING
    assert run.state == HALTED
    assert not run.verified


def test_an_abandoned_amendment_keeps_the_contract() -> None:
    run = state()
    replay.apply(run, event("amendment.intended", to="b" * 64))
    replay.apply(run, event("amendment.abandoned", version=2, to="b" * 64))
    assert (run.contract.amending, run.contract.version, run.contract.hash) == (None, 1, "a" * 64)
