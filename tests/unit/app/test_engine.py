"""The engine on fakes: order of tasks, attempts, checks, gates, interruption (R-RUN-3, R-RUN-5, R-GIT-6)."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from idumb.app.core import actions, schedule
from idumb.app.engine import runner
from idumb.domain import outcome
from idumb.domain.agent import AgentRequest, AgentResult
from idumb.domain.contract import Contract
from idumb.domain.errors import Interrupted
from idumb.domain.plans.plan import GUIDED, HUMAN, STRICT, Condition, Criterion, FileClaim, SymbolClaim, TestIntent
from idumb.domain.proof import gate_table
from idumb.domain.settings import Ceiling, GateSettings
from tests.support.cases import every
from tests.support.engine_run import EngineRun, Files, also, break_gate, make_own_files, task
from tests.support.errors import refusing
from tests.support.growth import assert_linear
from tests.support.memory_ownership import MemoryOwnership


def fails(*broken: str, until: int = 99) -> EngineRun:
    """A diamond whose builder leaves out the work of some tasks, until an attempt."""

    def work(request: AgentRequest, files: Files) -> None:
        if request.subject not in broken or request.attempt >= until:
            make_own_files(request, files)

    return EngineRun(task("A"), task("B", "A"), task("C", "A"), task("D", "B", "C"), task("E"), work=work)


# Order


def test_tasks_run_in_order_and_each_is_committed_once() -> None:
    run = fails()
    assert run.run().kind == "done"
    assert run.commits() == [id for id, _ in run.calls] == list(run.contract.order)
    assert set(run.status().values()) == {outcome.COMPLETED}


def test_a_failed_task_holds_back_what_depends_on_it_and_nothing_else() -> None:
    run = fails("B")
    assert run.run().kind == "done"
    assert run.status() == {"A": "completed", "B": "failed", "C": "completed", "D": "pending", "E": "completed"}
    calls = list(run.calls)
    assert "D" not in [id for id, _ in calls]
    run.run()
    assert (run.calls, run.commits()) == (calls, ["A", "C", "E"]), "the next process builds nothing again"


def test_after_as_many_failed_tasks_in_a_row_as_configured_the_run_ends() -> None:
    run = EngineRun(*(task(id) for id in "ABCDE"), work=lambda _, files: None)
    ending = run.run(max_attempts=1)
    assert (ending.kind, ending.words.partition(";")[0]) == ("halted", "3 tasks failed in a row")
    assert [id for id, _ in run.calls] == ["A", "B", "C"]


def test_a_strict_plan_offers_no_amendment_that_unblocks_a_task() -> None:
    """R-ASK-1: it would be refused."""
    for mode, offered in ((GUIDED, True), (STRICT, False)):
        run = EngineRun(task("A", verify=("false",)), task("B", "A"), mode=mode)
        run.run(max_attempts=1)
        shown = schedule.statuses(run.contract, run.state)
        ways = [str(way) for way in actions.unblocking(run.contract, run.state, shown, "B")]
        assert ways[:2] == ["idumb resume 1 --retry-failed", "idumb accept A --why REASON"]
        assert any("amend" in way for way in ways) == offered


def test_what_blocks_each_task_of_a_long_chain_is_found_in_linear_time() -> None:
    def chain(count: int) -> Contract:
        return EngineRun(*(task(f"T{n}", *[f"T{n - 1}"][:n]) for n in range(count))).contract

    def find(contract: Contract) -> None:
        statuses = {**dict.fromkeys(contract.order, outcome.BLOCKED), "T0": outcome.FAILED}
        later = contract.order[1:]
        for _ in range(16):  # so that a few tasks take long enough
            assert schedule.root_causes(contract, statuses, later) == dict.fromkeys(later, ("T0",))

    assert_linear(find, chain)


# Attempts


def test_the_next_attempt_receives_what_was_wrong_with_the_last_one() -> None:
    run = fails("A", until=2)
    run.run()
    first, second = (request for request in run.builder.requests if request.subject == "A")
    assert first.feedback == ""
    assert "test -f A" in second.feedback
    assert run.status()["A"] == outcome.COMPLETED


def test_each_attempt_starts_from_the_files_before_the_first_one() -> None:
    seen = []

    def work(request: AgentRequest, files: Files) -> AgentResult:
        seen.append(files["README"])
        files["README"] = b"attempt %d" % request.attempt
        return AgentResult(outcome.FAILED, f"no {request.attempt}")

    run = EngineRun(task("A", files=["README"]), work=work)
    run.run()
    assert seen == [b"hello"] * 3


def test_a_transient_failure_of_the_agent_is_retried_within_the_attempt() -> None:
    answers = [AgentResult(outcome.ERRORED, "no route", failure="network"), None]

    def work(request: AgentRequest, files: Files) -> AgentResult | None:
        if len(answers) == 1:
            make_own_files(request, files)
        return answers.pop(0)

    run = EngineRun(task("A"), work=work)
    run.run()
    assert run.calls == [("A", 1), ("A", 1)]
    assert run.status() == {"A": "completed"}
    assert len(run.events("call.retried")) == 1


def test_a_transient_failure_after_a_change_is_not_retried_within_the_attempt() -> None:
    """R-ADAPT-3."""
    fails = AgentResult(outcome.ERRORED, "no route", failure="network")
    run = EngineRun(task("A"), work=also(lambda request, _: fails if request.attempt == 1 else None))
    assert run.run().kind == "halted"
    assert run.calls == [("A", 1)]
    assert not run.events("call.retried")


def test_an_agent_that_reports_a_failure_has_not_completed_its_work() -> None:
    run = EngineRun(task("A"), work=also(lambda *_: AgentResult(outcome.COMPLETED, "done", failure="declined")))
    run.run(max_attempts=1)
    assert run.commits() == []


@pytest.mark.parametrize(("severity", "calls", "asked"), [("block", 1, []), ("retry", 3, ["exhausted"])])
def test_the_severity_of_a_task_decides_how_often_it_is_tried(severity: str, calls: int, asked: list[str]) -> None:
    """R-PLAN-3."""
    run = EngineRun(
        task("A", on_failure=severity), work=lambda request, _: AgentResult(outcome.FAILED, f"no {request.attempt}")
    )
    run.run()
    assert (run.status(), len(run.calls)) == ({"A": "failed"}, calls)
    assert [event.payload["subject"] for event in run.events("decision.asked")] == asked


def test_a_task_of_a_plan_that_is_skipped_after_a_timeout_blocks_what_needs_it() -> None:
    run = EngineRun(task("A", on_timeout="skip"), task("B", "A"), work=lambda *_: AgentResult(outcome.TIMED_OUT, "no"))
    assert run.run(max_attempts=1).kind == "done"
    assert (run.status(), len(run.calls)) == ({"A": "skipped", "B": "pending"}, 1)


def test_a_raised_ceiling_allows_no_more_attempts_than_the_task_has() -> None:
    chosen = replace(EngineRun(task("A")).settings, ceilings={"task": Ceiling(attempts=1)})
    run = EngineRun(task("A"), work=lambda *_: None, settings=chosen, answers={"limit": "raise"})
    run.run_until_killed(100)  # without an end it is killed
    assert (run.status(), len(run.calls)) == ({"A": "failed"}, 3)


def test_a_ceiling_that_cannot_hold_because_agents_report_no_use_is_named_once() -> None:
    chosen = replace(EngineRun(task("A")).settings, ceilings={"run": Ceiling(tokens=9)})
    run = EngineRun(task("A"), task("B"), task("C"), settings=chosen)
    assert run.run().kind == "done"
    assert sum("ceiling of the run" in note and "may be exceeded" in note for note in run.notes) == 1


# Proof


rewriting = also(lambda _, files: files.update(README=b"rewritten"))
"""It makes also an undeclared change."""


def test_an_undeclared_change_halts_the_run_and_is_not_delivered() -> None:
    run = EngineRun(task("A"), task("B"), work=rewriting)
    ending = run.run(on_deviation="stop")
    assert ending.kind == "halted"
    assert "README" in ending.words
    assert run.calls == [("A", 1)]
    assert run.commits() == []
    assert run.repository.files["README"] == b"hello"


def test_an_accepted_undeclared_change_is_part_of_the_work() -> None:
    run = EngineRun(task("A"), work=rewriting)
    assert run.run(on_deviation="keep").kind == "done"
    (recorded,) = run.events("checkpoint.recorded")
    assert recorded.payload["files"] == ["A", "README"]


@pytest.mark.parametrize("policy", [None, "leave-out"])
def test_undeclared_changes_that_are_left_out_are_not_there_when_the_rest_is_proven(policy: str | None) -> None:
    def work(request: AgentRequest, files: Files) -> None:
        rewriting(request, files)
        del files["B"]

    declared = task("A", verify=("grep -q hello README", "test -f B"))
    run = EngineRun(declared, work=work, answers={"undeclared": "leave-out"})
    run.repository.files["B"] = b""
    run.repository.commit_all()
    assert run.run(on_deviation=policy).kind == "done"
    recorded = run.events("checkpoint.recorded")[-1]
    assert (recorded.payload["files"], run.calls) == (["A"], [("A", 1)])
    assert run.repository.files == {"README": b"hello", "A": run.repository.files["A"], "B": b""}


def test_a_protected_file_can_be_left_out_but_not_kept() -> None:
    run = EngineRun(task("A"), work=also(lambda _, files: files.update({".planning/PLAN.md": b"mine"})))
    assert run.run().kind == "waiting"
    (question,) = run.events("decision.asked")
    assert [choice["id"] for choice in question.payload["choices"]] == ["leave-out", "stop"]


def test_a_file_that_a_check_creates_is_not_committed_with_the_work() -> None:
    run = EngineRun(task("A", verify=("touch cache", "test -f A")))
    run.run()
    (recorded,) = run.events("checkpoint.recorded")
    assert recorded.payload["files"] == ["A"]
    assert "cache" not in run.repository.files


MISSING = (Condition("file-exists", "missing"),)


def test_without_its_precondition_a_task_asks_a_person_and_its_builder_is_not_asked() -> None:
    """R-RUN-14: nothing is built, the task waits for an answer, and independent tasks run."""
    run = EngineRun(task("A", preconditions=MISSING), task("B"), task("C", "A"))
    ending = run.run()
    assert (ending.kind, ending.words) == ("waiting", "A: precondition 1: file exists missing (failed)")
    assert run.calls == [("B", 1)]
    assert run.status() == {"A": "waiting", "B": "completed", "C": "pending"}
    assert run.events("attempt.finished")[0].payload["outcome"] == outcome.REFUSED
    (question,) = run.state.decisions.values()
    assert (question["id"], question["kind"]) == ("A.precondition.1", "stopped")
    assert [choice["id"] for choice in question["choices"]] == ["retry", "skip", "fail"]
    assert "missing" in question["evidence"][0]


def test_a_person_is_asked_only_about_work_whose_files_passed() -> None:
    """R-ASK-2, R-RUN-3, R-GIT-5: a yes that could not count is never asked for."""
    pretty = (Criterion("AC-1", "it is pretty", HUMAN),)

    def work(request: AgentRequest, files: Files) -> None:
        files[request.subject] = b"work"

    wrong, failing = task("A", acceptance=pretty), task("B", acceptance=pretty, verify=("test -f C",))
    run = EngineRun(wrong, failing, work=work, answers={"judge": "yes"})
    run.repository.files["A"] = b"there before"
    run.repository.commit_all("there before")
    run.run(max_attempts=1)
    assert run.status() == {"A": "failed", "B": "failed"}
    assert [question.kind for question in run.asker.asked] == []
    reasons = {event.payload["reason"] for event in run.events("attempt.finished")}
    assert reasons == {"A was modified, declared create", "verify 1 failed"}


@every("command", ["test -f README", "no-such-program"])
def test_a_test_that_passes_or_cannot_run_before_the_work_proves_nothing_and_refuses_it(command: str) -> None:
    """R-GATE-3."""
    run = EngineRun(task("A", tests=(TestIntent(command, "fails", "passes"),)))
    run.run()
    assert run.calls == []
    assert run.status() == {"A": "failed"}


# Interruption and takeover


def test_an_interruption_between_two_stages_is_recorded_and_does_not_count_as_an_attempt() -> None:
    run = EngineRun(task("A"), work=also(lambda *_: setattr(run.interrupts, "received", 2)))
    with pytest.raises(Interrupted):
        run.run()
    (interrupted,) = run.events("attempt.interrupted")
    assert interrupted.payload["reason"] == "stopped by SIGINT"
    assert run.repository.trees[interrupted.payload["left"]]["A"] == run.repository.store(b"A")
    assert run.commits() == []
    run.interrupts.received, run.work = None, make_own_files
    assert run.run(max_attempts=1).kind == "done"
    assert run.calls == [("A", 1), ("A", 2)]
    assert run.status() == {"A": "completed"}


def test_an_owner_that_was_overtaken_during_the_work_records_and_commits_nothing_more() -> None:
    def work(request: AgentRequest, files: Files) -> None:
        make_own_files(request, files)
        run.worktree.elsewhere = True
        MemoryOwnership(run.worktree).acquire("other", force=True)

    run = EngineRun(task("A"), work=work)
    with refusing("lock.lost"):
        run.run()
    assert run.effects[-1] == "log attempt.started"
    assert run.commits() == []


def test_a_commit_that_is_refused_ends_the_run_and_the_next_process_commits_without_building_again() -> None:
    run = EngineRun(task("A"))
    run.repository.refusing = "a hook said no"
    ending = run.run()
    assert (ending.kind, ending.words) == ("commit-refused", "a hook said no")
    assert run.commits() == []
    run.repository.refusing = ""
    assert run.run().kind == "done"
    assert run.calls == [("A", 1)]
    assert run.commits() == ["A"]


# Gates


def test_an_error_in_a_gate_stops_the_run_and_the_next_one_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-GATE-1: it is a value that names gate and file, and no further attempt is paid for."""
    settings = EngineRun(task("a.py")).settings
    strict = replace(settings, gates={gate_table.SYNTAX: GateSettings(level=1)})
    run = EngineRun(task("a.py"), task("b.py"), settings=strict)
    break_gate(monkeypatch, gate_table.SYNTAX)
    ending = run.run()
    assert (ending.kind, ending.task, run.calls) == ("halted", "a.py", [("a.py", 1)])
    assert "a.py: gate syntax could not run: an error in the gate, not in the work, when it judged a.py" in ending.words
    assert ending.fields == {"task": "a.py", "failure": "gate-error"}
    monkeypatch.undo()
    assert run.run().kind == "done"
    assert run.commits() == ["a.py", "b.py"]


def test_at_level_0_an_error_in_a_gate_is_reported_and_blocks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = EngineRun(task("a.json"))
    break_gate(monkeypatch, gate_table.SYNTAX)
    assert run.run().kind == "done"
    (found,) = [e.payload for e in run.events("evidence.recorded") if e.payload["subject"] == "gate syntax"]
    assert (found["result"], found["level"]) == ("errored", 0)


def test_the_ledger_has_a_limited_time_and_then_judges_no_symbol() -> None:
    """R-GATE-1: declared symbols that nobody looked at are no pass."""
    run = EngineRun(task("a.py", files=("a.py", "b.py"), symbols=(SymbolClaim("add", "load"),)))
    process = run.process(max_attempts=1)
    ticking = itertools.count(0.0, 200.0)
    process.services.clock.monotonic = lambda: next(ticking)  # type: ignore[method-assign]
    runner.run_tasks(process)
    assert run.status() == {"a.py": "failed"}
    assert run.state.tasks["a.py"].reason == "the symbols of a.py, b.py were not judged in the time of the gate ledger"


@pytest.mark.parametrize(("mode", "status"), [(GUIDED, "completed"), (STRICT, "failed")])
def test_a_higher_class_than_approved_blocks_a_strict_task_and_is_reported_otherwise(mode: str, status: str) -> None:
    """R-GATE-4: a strict plan must declare the class, and its approval covers no other one."""

    def work(request: AgentRequest, files: Files) -> None:
        files["a.py"] = b"def load():\n    return 1\n"

    run = EngineRun(task("a.py", change="preserving"), work=work, mode=mode)
    run.run()
    assert run.status() == {"a.py": status}
    (found,) = [e.payload for e in run.events("evidence.recorded") if e.payload["subject"] == "gate change-class"]
    assert found["result"] == "failed"


# Files


def doing(**instead: bytes | None) -> EngineRun:
    """A task that declares to create A and B, to modify C and to delete D. It leaves some as `instead` says."""
    claims = *(FileClaim("create", path) for path in "AB"), FileClaim("modify", "C"), FileClaim("delete", "D")

    def work(_: AgentRequest, files: Files) -> None:
        wanted = {"A": b"a", "B": b"b", "C": b"changed", "D": None, **instead}
        files |= {path: content for path, content in wanted.items() if content is not None}
        for path in (path for path, content in wanted.items() if content is None):
            files.pop(path, None)

    run = EngineRun(replace(task("T"), files=claims, verify=("true",)), work=work)
    run.repository.files |= {"C": b"c", "D": b"d"}
    run.repository.commit_all("files")
    return run


@every("instead", [{}, {"B": None}, {"C": None}, {"C": b"c"}, {"D": b"d"}, {"D": b"changed"}])
def test_another_change_than_declared_completes_nothing(instead: dict[str, bytes | None]) -> None:
    """R-GIT-5: missing is a failure as extra is."""
    run, named = doing(**instead), next(iter(instead), None)
    run.run(max_attempts=1)
    assert run.status() == {"T": "failed" if named else "completed"}
    assert named is None or named in run.state.tasks["T"].reason
    assert run.commits() == ([] if named else ["T"])


def test_a_later_task_does_not_build_on_what_a_failed_one_left_in_its_file() -> None:
    def work(request: AgentRequest, files: Files) -> None:
        files["README"] += request.subject.encode()

    tasks = (task(id, files=["README"], verify=("grep -q B README",)) for id in "AB")
    run = EngineRun(*tasks, work=work)
    assert run.run(max_attempts=1).kind == "done"
    assert (run.status(), run.commits()) == ({"A": "failed", "B": "completed"}, ["B"])
    assert run.repository.files["README"] == b"helloB"
