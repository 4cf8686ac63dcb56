"""A broken invariant names the task that broke it (R-GATE-3)."""

from __future__ import annotations

from typing import Any

from idumb.domain.agent import AgentRequest
from idumb.domain.plans.plan import Invariant, Task
from tests.support.engine_run import EngineRun, task

INVARIANT = Invariant("INV-1", "it says hello", "grep -q hello README")


def planned(*tasks: Task, **fields: Any) -> EngineRun:
    """Tasks that write their names into their files."""

    def work(request: AgentRequest, files: dict[str, bytes]) -> None:
        files |= {path: request.subject.encode() for path in request.allowed_paths}

    fields = {"plan": {"invariants": (INVARIANT,)}, **fields}
    return EngineRun(*tasks, work=work, **fields)


def breaking(id: str, *needs: str, **fields: Any) -> Task:
    return task(id, *needs, files=["README"], verify=("true",), **fields)


def reason(run: EngineRun, id: str) -> str:
    run.run(max_attempts=1)
    assert run.status()[id] == "failed"
    return run.state.tasks[id].reason


def test_the_task_that_broke_it_is_named() -> None:
    run = planned(task("A"), breaking("B", "A"))
    words = "B broke it"
    assert reason(run, "B") == f"invariant INV-1 failed: {words}"
    assert run.status()["A"] == "completed"  # the invariant holds for honest work
    assert [e.payload["violation"] for e in run.events("evidence.recorded") if "violation" in e.payload] == [words]


def test_an_earlier_task_is_named_if_that_broke_it() -> None:
    """It does not check the invariant."""
    run = planned(task("A"), breaking("B", "A", invariants=()), task("C", "B"))
    assert reason(run, "C") == "invariant INV-1 failed: B broke it"


def test_what_failed_before_the_run_is_no_task_s_fault() -> None:
    """R-RUN-13."""
    gone = Invariant("INV-2", "it runs", "no-such-program")  # which says nothing about the work
    run = planned(task("A"), plan={"invariants": (INVARIANT, gone)})
    run.repository.files["README"] = b"bye"
    run.repository.commit_all("bye")
    words = reason(run, "A")
    assert "it did not hold before the run either" in words
    assert ("INV-2 errored" in words, "INV-2 failed" in words) == (True, False)
    explained = {e.payload["subject"] for e in run.events("evidence.recorded") if "violation" in e.payload}
    assert explained == {"invariant INV-1"}
