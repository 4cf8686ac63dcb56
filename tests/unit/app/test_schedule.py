"""Which task comes next, and the status shown for the others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from idumb.app.core import questions, schedule
from idumb.app.core.schedule import blockers, ready, statuses, tries_again
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.plans import graph
from idumb.domain.plans.plan import GUIDED, Step, Task
from idumb.domain.runs.run import AttemptState, RunState, TaskProgress, TaskState
from tests.support.cases import every


def contract(dependencies: dict[str, tuple[str, ...]]) -> Contract:
    order = graph.topological_order(dependencies)
    return Contract("1", "f", (), {}, order, dependencies, "hash")


def state(**status: str) -> RunState:
    return RunState(tasks={task: TaskState(task, "d", status=s) for task, s in status.items()})


DIAMOND = {"A": (), "B": ("A",), "C": ("A",), "D": ("B", "C")}


def offered(now: RunState, *, complete: bool = False) -> list[str]:
    """Return the tasks that are offered, each of which is completed at once if `complete`."""
    taken = []
    for task in ready(contract(DIAMOND), now):
        taken.append(task)
        if complete:
            now.tasks[task] = TaskState(task, "d", status=outcome.COMPLETED)
    return taken


def test_tasks_are_offered_in_execution_order_after_their_dependencies() -> None:
    assert offered(state(**dict.fromkeys("ABCD", "pending")), complete=True) == ["A", "B", "C", "D"]


@given(st.sets(st.sampled_from("ABCD")))
def test_a_task_is_offered_exactly_when_all_its_dependencies_are_completed(done: set[str]) -> None:
    """R-LOG-6, R-RUN-5: once, and none of those that never become complete."""
    statuses = {t: outcome.COMPLETED if t in done else outcome.PENDING for t in DIAMOND}
    assert set(offered(state(**statuses))) == {t for t in DIAMOND if t not in done and set(DIAMOND[t]) <= done}


def test_pending_tasks_are_shown_as_ready_pending_or_blocked() -> None:
    shown = statuses(contract(DIAMOND), state(A="completed", B="failed", C="pending", D="pending"))
    assert shown == {"A": "completed", "B": "failed", "C": "ready", "D": "blocked"}
    assert blockers(contract(DIAMOND), shown, "D") == ("B", "C")
    shown = statuses(contract(DIAMOND), state(A="skipped", B="pending", C="pending", D="pending"))
    assert [shown[t] for t in "BCD"] == ["blocked"] * 3


def attempted(adapter: str = "steps", failed_step: int | None = 0) -> TaskState:
    return TaskState(
        "A",
        "d",
        attempt=AttemptState(outcome=outcome.FAILED, adapter=adapter, failed_step=failed_step),
        progress=TaskProgress(attempts=1),
    )


def with_steps(*tools: str, tolerated: bool = False) -> Task:
    steps = tuple(Step(i, tool, "do it", {}, continue_on_error=tolerated) for i, tool in enumerate(tools))
    return Task("A", "a task", steps=steps)


@every("repeated, retried", [(0, True), (1, False)])
def test_the_question_about_an_agent_that_failed_twice_in_the_same_way_says_so(*, repeated: int, retried: bool) -> None:
    """R-RUN-5: it has attempts left, so the number of its attempts explains nothing."""
    task_state = TaskState(
        "A",
        "d",
        attempt=AttemptState(outcome=outcome.FAILED, adapter="claude-code"),
        progress=TaskProgress(attempts=2, repeated=repeated),
    )
    why = questions.exhausted(Task("A", "a task"), task_state, repeats=schedule.repeats_itself(task_state)).why
    assert tries_again(Task("A", "a task"), GUIDED, task_state, 3) == retried
    assert why.startswith("It failed twice in the same way, so idumb does not retry it") != retried


@every("tool", ["write_file", "edit_file", "apply_patch", "move_file", "delete_file"])
def test_a_failed_step_is_not_repeated_on_unchanged_files(tool: str) -> None:
    """R-RUN-5: the same step on the same tree fails in the same way."""
    assert not tries_again(with_steps(tool), GUIDED, attempted(), 3)
    assert not tries_again(with_steps("write_file", tool), GUIDED, attempted(failed_step=1), 3)


def test_a_step_that_runs_a_program_may_succeed_the_next_time() -> None:
    assert tries_again(with_steps("run"), GUIDED, attempted(), 3)
    assert tries_again(with_steps("run", "edit_file"), GUIDED, attempted(failed_step=1), 3)


def test_steps_with_a_failed_check_are_retried() -> None:
    assert tries_again(with_steps("write_file"), GUIDED, attempted(failed_step=None), 3)
    assert tries_again(with_steps("edit_file", tolerated=True), GUIDED, attempted(), 3)


def test_tool_calls_of_an_agent_are_not_plan_steps() -> None:
    assert tries_again(with_steps(), GUIDED, attempted(adapter="model"), 3)
