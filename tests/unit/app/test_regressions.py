"""What an earlier task was proven by must stay true: the engine looks before it builds on the work (R-RUN-13)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from idumb.app.engine import regressions
from idumb.domain.agent import AgentRequest
from idumb.domain.decision import Answer
from idumb.domain.plans.plan import Task
from idumb.domain.settings import CheckSettings, GitSettings
from tests.support.engine_run import EngineRun, make_own_files, task
from tests.support.memory_checks import MemoryChecks

FIRST = task("A", verify=("grep -q A A",))
BREAKS = task("B", "A", files=["A"], verify=("grep -q B A",))
"""It replaces what the first task wrote."""


def planned(*tasks: Task, **fields: Any) -> EngineRun:
    return EngineRun(*tasks, **fields)


def broken() -> EngineRun:
    """B broke the work of A, and the run waits."""
    run = planned(FIRST, BREAKS, task("C", "B"))
    ending = run.run()
    assert (ending.kind, ending.words) == ("waiting", "B broke the work of A: A verify 1 fails")
    return run


def questions(run: EngineRun) -> list[str]:
    return [str(one["what"]) for one in run.state.decisions.values() if one["kind"] == "regression"]


def killed_before_attempt_of(run: EngineRun, id: str) -> EngineRun:
    """Kill the run before it announces the first attempt of a task."""
    rehearsal = planned(*run.contract.tasks.values(), work=run.work)
    rehearsal.run()
    place = [task for task, _ in rehearsal.calls].index(id)
    starts = [number for number, name in enumerate(rehearsal.effects, 1) if name == "log attempt.started"]
    assert run.run_until_killed(starts[place])
    return run


def test_nothing_is_built_on_a_break_until_a_person_accepts_it() -> None:
    run = broken()
    assert run.status() == {"A": "completed", "B": "completed", "C": "pending"}
    assert run.run().kind == "waiting"
    (asked,) = run.state.decisions.values()
    assert (asked["kind"], [choice["id"] for choice in asked["choices"]]) == ("regression", ["roll-back", "accept"])
    journal = run.process().journal
    journal.write(journal.answer_event(Answer(asked["id"], "accept", "Pat"), "B", None))
    assert run.run().kind == "done"
    assert run.commits() == ["A", "B", "C"]


def test_a_repair_by_hand_withdraws_the_question() -> None:
    run = broken()
    run.repository.files["A"] = b"A and B"
    run.repository.commit_all("repair")
    assert run.run().kind == "done"
    assert len(run.events("decision.withdrawn")) == 1


@pytest.mark.parametrize("id", ["B", "C"])
def test_what_was_committed_between_the_tasks_is_no_task_s_fault(id: str) -> None:
    """Before C, another task was completed since the checks passed last."""
    run = killed_before_attempt_of(planned(FIRST, task("B", "A"), task("C", "B")), id)
    run.repository.files["A"] = b"mine"
    run.repository.commit_all("mine")
    assert run.run().kind == "done"
    words = "A verify 1 passed when the task was done and now fails, because of what was committed outside"
    assert [note.startswith(words) for note in run.notes].count(True) == 1
    assert questions(run) == []


def test_a_commit_that_is_gone_only_means_that_the_checks_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user may squash it away, and git then removes it."""
    run = killed_before_attempt_of(planned(FIRST, task("B", "A")), "B")
    monkeypatch.setattr(regressions, "_tree_after", lambda *_: "")
    assert run.run().kind == "done"
    assert run.checks.ran.count("grep -q A A") == 1


def test_the_task_that_broke_it_is_found_among_several(monkeypatch: pytest.MonkeyPatch) -> None:
    breaks = task("C", "B", files=["A"], verify=("grep -q C A",))
    run = planned(FIRST, task("B", "A"), breaks, task("D", "C"), task("E", "D"))
    with monkeypatch.context() as earlier:  # as if the run was killed each time before the checks ran again
        earlier.setattr(regressions, "find", lambda _: None)
        killed_before_attempt_of(run, "E")
    assert run.run().kind == "waiting"
    assert questions(run) == ["C broke the work of A: A verify 1 fails"]


def always(id: str, *needs: str) -> Task:
    """A task whose check does not show what it reads."""
    return task(id, *needs, verify=(f"touch {id}.checked",))


def test_what_takes_too_long_between_tasks_waits_the_longest_waiting_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regressions, "_allowance", lambda _: -1.0)
    run = planned(*map(always, "ABCD"))
    assert run.run().kind == "done"
    assert [command.removeprefix("touch ")[0] for command in run.checks.ran] == list("ABACBD")
    assert len([note for note in run.notes if "no time to repeat the checks" in note]) == 1


@pytest.mark.parametrize(
    ("checks", "count"),
    [(None, 2), (CheckSettings(regression="end"), 1)],
)
def test_a_check_runs_again_only_after_a_change(checks: CheckSettings | None, count: int) -> None:
    """With its task and after B, but not after N, which changes nothing."""

    def work(request: AgentRequest, files: dict[str, bytes]) -> None:
        if request.subject != "N":
            make_own_files(request, files)

    tasks = always("A"), task("B", "A"), task("N", "B", files=[], verify=("true",)), task("D", "N")
    run = planned(*tasks, work=work)
    run.settings = dataclasses.replace(run.settings, checks=checks)
    assert run.run().kind == "done"
    assert run.checks.ran.count("touch A.checked") == count


def test_without_commits_the_files_are_compared_only_after_a_change_of_what_a_check_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before B, because nothing is known yet, and before D, because C changed what the check of A reads."""
    breaks = task("C", "B", files=["A"], verify=("grep -q C A",))
    run = planned(FIRST, task("B", "A"), breaks, task("D", "C"))
    run.settings = dataclasses.replace(run.settings, git=GitSettings(commit="none"))
    compared, present_tree = list[str](), regressions._present_tree

    def present(context: Any) -> str:
        compared.append(present_tree(context))
        return compared[-1]

    monkeypatch.setattr(regressions, "_present_tree", present)
    assert run.run().kind == "waiting"
    assert questions(run) == ["C broke the work of A: A verify 1 fails"]
    assert len(compared) == 2


def test_a_check_that_fails_only_once_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run, inner = planned(always("A"), task("B", "A"), task("C", "B")), MemoryChecks._exit_code

    def flaky(checks: MemoryChecks, argv: list[str], files: dict[str, bytes]) -> int:
        return 1 if checks.ran.count("touch A.checked") == 2 and argv[0] == "touch" else inner(checks, argv, files)

    monkeypatch.setattr(MemoryChecks, "_exit_code", flaky)
    assert run.run().kind == "done"
    assert "A verify 1 failed once, then passed on the same files" in run.notes
