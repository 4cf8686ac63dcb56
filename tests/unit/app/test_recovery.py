"""What recovery decides, for each point at which a run can stop: the events so far, and what follows (R-LOG-6)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from idumb.app.engine import moves, unfinished_attempts
from idumb.domain.agent import AgentRequest, AgentResult, Usage
from idumb.domain.plans.plan import HUMAN, Criterion, RollbackClass
from idumb.domain.proof import gate_table
from idumb.domain.settings import Binding, GateSettings, Settings
from tests.support.cases import every
from tests.support.engine_run import EngineRun, Files, Killed, also, break_gate, make_own_files, task


def one_task() -> EngineRun:
    return EngineRun(task("A"))


def make_both(_: AgentRequest, files: Files) -> None:
    files |= {"A": b"A", "B": b"B"}


def stopped_before(effect: str, run: EngineRun, number: int = 1) -> EngineRun:
    """Kill the run before the n-th effect of that name."""
    rehearsal = EngineRun(*run.contract.tasks.values(), work=run.work)
    rehearsal.run()
    places = [place for place, name in enumerate(rehearsal.effects, 1) if name == effect]
    assert run.run_until_killed(places[number - 1])
    return run


def recovered(run: EngineRun) -> list[str]:
    """Recover in a new process; return the kinds of the events that recovery recorded."""
    last = run.log.head()[0]
    moves.recover(run.process())
    return [event.kind for event in run.log.events(after=last)]


def test_an_announced_attempt_is_recorded_as_interrupted_and_its_files_are_kept() -> None:
    run = stopped_before("log checkpoint.intended", one_task())
    assert recovered(run) == ["attempt.interrupted", "checkpoint.recorded"]
    kept = run.kept("A")
    assert (kept.status, kept.files, kept.error) == ("interrupted", ("A",), "idumb was killed during the attempt")
    assert run.state.tasks["A"].work.touched == ()  # the files of the user
    assert run.repository.trees[kept.tree]["A"] == run.repository.store(b"A")


def test_an_attempt_that_ended_with_its_run_has_the_reason_of_that_end_and_no_earlier_one() -> None:
    def killed(*_: object) -> None:
        raise Killed

    run = EngineRun(task("A"), work=killed)
    for reasons in ([], ["the disk is full", "another end"], []):
        with pytest.raises(Killed):
            run.run()
        journal = run.process().journal
        journal.write(*(journal.event("run.halted", reason=reason) for reason in reasons))
        recovered(run)
    killed_words = "idumb was killed during the attempt"
    reasons = [event.payload["reason"] for event in run.events("attempt.interrupted")]
    assert reasons == [killed_words, "the disk is full", killed_words]


def test_what_the_user_committed_of_an_interrupted_attempt_is_not_listed_as_left_by_it() -> None:
    run = stopped_before("log checkpoint.intended", EngineRun(task("A", files=["A", "B"]), work=make_both))
    run.repository.files["A"] = b"A"
    run.repository.commit_all()
    recovered(run)
    kept = run.kept("A")
    assert kept.files == ("B",)


def test_only_an_attempt_that_has_begun_and_not_ended_is_interrupted() -> None:
    run = one_task()
    for _ in range(2):
        last = run.log.head()[0]
        unfinished_attempts.record_interruption(run.process(), run.contract.tasks["A"])
        assert [event.kind for event in run.log.events(after=last) if event.kind != "run.started"] == []
        run.run()


@every("effect", ["log checkpoint.intended", "commit"])
def test_the_duration_of_a_killed_attempt_is_that_of_its_record_or_unknown(effect: str) -> None:
    """R-GIT-2: nobody knows how long a builder worked that was killed; an intended checkpoint says it."""
    run = EngineRun(task("A", files=["README"]), work=also(lambda *_: run.clock.pause(90)))
    stopped_before(effect, run)
    run.repository.files["README"] = b"mine"
    run.repository.commit_all("mine")
    run.clock.pause(5000)
    recovered(run)
    seconds = run.kept("A").seconds
    assert seconds is None if effect != "commit" else seconds and 90 <= seconds < 180


def test_the_duration_of_a_killed_attempt_is_not_that_of_the_one_before() -> None:
    def work(request: AgentRequest, files: Files) -> None:
        if request.attempt > 1:
            raise Killed
        make_own_files(request, files)

    run = answered(EngineRun(task("A", acceptance=JUDGED), work=work), "no")
    with pytest.raises(Killed):
        run.run()
    recovered(run)
    kept = [event.payload for event in run.events("checkpoint.recorded")]
    assert [(row["status"], row["seconds"] is None) for row in kept] == [("failed", False), ("interrupted", True)]


def test_an_interrupted_attempt_is_followed_by_a_new_one_from_its_base() -> None:
    seen: list[bool] = []

    def work(request: AgentRequest, files: Files) -> None:
        seen.append("A" in files)
        make_own_files(request, files)

    run = stopped_before("log checkpoint.intended", EngineRun(task("A"), work=work))
    seen.clear()
    run.run(max_attempts=1)
    assert seen == [False]
    assert run.calls == [("A", 1), ("A", 2)]


def test_announced_and_proven_work_is_committed_by_recovery_without_its_builder() -> None:
    run = stopped_before("commit", one_task())
    assert recovered(run) == ["checkpoint.recorded", "task.completed"]
    assert run.commits() == ["A"]
    assert run.calls == [("A", 1)]


@every("commits", [False, True])
def test_proven_work_that_the_user_changed_since_is_not_committed_and_not_lost(*, commits: bool) -> None:
    """Built again on his commit of the file, the task would fail: it creates one that exists."""
    run = stopped_before("commit", one_task())
    run.repository.files["A"] = b"mine"
    if commits:
        run.repository.commit_all("mine")
    assert recovered(run) == ["decision.asked"]
    assert (run.repository.files["A"], "A" in run.commits()) == (b"mine", False)
    del run.repository.files["A"]
    assert run.run().kind == "done"
    assert run.calls == [("A", 1)]


def test_announced_work_over_which_the_user_committed_is_taken_back_and_built_again() -> None:
    run = stopped_before("commit", EngineRun(task("A", files=["A", "B"]), work=make_both))
    run.repository.files |= {"A": b"mine", "B": b"B"}
    run.repository.advance({**run.committed,
                            "A": run.repository.store(b"mine")}, "my own commit")  # fmt: skip
    assert recovered(run) == ["attempt.interrupted", "checkpoint.recorded"]
    assert run.repository.files == {"README": b"hello", "A": b"mine"}
    kept = run.kept("A")
    assert kept.error == unfinished_attempts.UNDELIVERED
    assert run.run().kind == "done"
    assert run.calls == [("A", 1), ("A", 2)]


@every("severity, asked", [("block", []), (None, ["exhausted"])])
def test_a_failure_that_was_not_yet_final_becomes_final_if_no_attempt_is_left(
    severity: str | None, asked: list[str]
) -> None:
    """R-RUN-5: with its question, unless the plan says that nobody is asked."""
    run = EngineRun(task("A", on_failure=severity), work=lambda *_: None)
    run = stopped_before("log task.failed", run)
    assert run.status() == {"A": "running"}
    recovered(run)
    assert run.status() == {"A": "failed"}
    assert [question["subject"] for question in run.state.decisions.values()] == asked


@every("kind", ["stopped", "undeclared"])
def test_a_question_after_a_failure_is_still_asked_after_a_kill(kind: str) -> None:
    """R-ASK-2: about the failure, and about undeclared changes."""
    run = EngineRun(task("A", on_failure="ask"), work=lambda *_: None) if kind == "stopped" else straying()
    run = stopped_before("log task.waiting", run)
    assert recovered(run) == ["decision.asked", "task.waiting"]
    assert run.status() == {"A": "waiting"}
    assert [question["kind"] for question in run.state.decisions.values()] == [kind]


def test_what_the_user_commits_after_the_commit_of_a_killed_run_is_not_judged_as_the_task_s() -> None:
    run = stopped_before("log task.completed", EngineRun(task("A", verify=("grep -q A A",))))
    assert run.commits() == ["A"]
    run.repository.files["A"] = b"mine"
    run.repository.commit_all("mine")
    assert run.run().kind == "done"
    assert (run.status(), run.calls) == ({"A": "completed"}, [("A", 1)])
    assert run.repository.files["A"] == b"mine"


# Answers


def answered(run: EngineRun, choice: str = "yes") -> EngineRun:
    """Let every question of the run be answered since it waited."""
    assert run.run().kind == "waiting"
    return run.answer(choice)


JUDGED = (Criterion("AC-1", "it looks good", HUMAN),)


def test_a_task_has_the_files_of_one_that_waited_for_a_person() -> None:
    seen = dict[str, bool]()

    def work(request: AgentRequest, files: Files) -> None:
        seen[request.subject] = "A" in files
        make_own_files(request, files)

    run = answered(EngineRun(task("A", acceptance=JUDGED), task("B", "A"), work=work))
    assert run.run().kind == "done"
    assert seen == {"A": False, "B": True}
    assert (run.commits(), run.calls) == (["A", "B"], [("A", 1), ("B", 1)])


def test_a_save_of_the_user_while_a_person_judges_the_work_is_a_question() -> None:
    run = answered(EngineRun(task("A", acceptance=JUDGED)))
    run.repository.files["A"] = b"mine"
    assert run.run().kind == "waiting"
    assert (run.asker.asked[-1].subject, run.repository.files["A"]) == ("delivery", b"mine")


@every("choice, status", [("yes", "completed"), ("no", "failed")])
def test_a_person_who_validates_a_task_decides(choice: str, status: str) -> None:
    run = EngineRun(task("A", validator=HUMAN))
    assert (run.run().kind, run.commits()) == ("waiting", [])
    run.answer(choice).run(max_attempts=1)
    assert run.status() == {"A": status}


def test_the_attempt_after_a_rejected_one_starts_from_its_own_work() -> None:
    def work(request: AgentRequest, files: Files) -> None:
        files["README"] += b"%d" % request.attempt

    run = EngineRun(task("A", files=["README"], acceptance=JUDGED), work=work)
    answered(answered(run, "no"))
    assert run.run().kind == "done"
    assert run.calls == [("A", 1), ("A", 2)]
    assert run.repository.files["README"] == b"hello2"


@every("check, commits", [("grep -q hello README", []), ("test -f A", ["A"])])
def test_a_commit_made_while_a_task_waits_is_judged_with_its_work(check: str, commits: list[str]) -> None:
    """R-RUN-3: the evidence is about the tree that is committed."""
    run = answered(EngineRun(task("A", acceptance=JUDGED, verify=(check,))))
    run.repository.files["README"] = b"other"
    run.repository.commit_all("mine")
    assert run.run().kind == "done"
    assert (run.status()["A"], run.commits()) == ("completed" if commits else "failed", commits)
    judged = {event.payload["tree"] for event in run.events("evidence.recorded") if event.payload["command"]}
    assert (run.repository.commits[run.repository.head or ""].tree in judged) == ("A" in run.repository.files)


def test_ledger_and_reports_are_those_of_the_attempt_after_an_answer() -> None:
    run = answered(EngineRun(task("A", acceptance=JUDGED)))
    run.run()
    waited, ended = (event.payload for event in run.events("attempt.finished"))
    told = ("ledger", "symbols", "accepted_paths", "builder", "left")
    assert [ended[name] for name in told] == [waited[name] for name in told]
    assert (waited["outcome"], ended["outcome"]) == ("waiting", "completed")
    assert ended["ledger"][0]["declared"] == "create"


USED = AgentResult("completed", usage=Usage(10, 20, 0.5))
stray = also(lambda _, files: files.update(B=b"stray"))
"""It makes also a file that the task does not declare."""


def straying(**fields: Any) -> EngineRun:
    return EngineRun(task("A"), work=stray, **fields)


@every("when", ["at once", "at the next start", "by command"])
def test_accepted_changes_continue_the_attempt_at_a_terminal_and_later(when: str) -> None:
    """R-ASK-2, R-GIT-5: the log says who accepted them, and the builder is not called again."""
    answers = {"undeclared": "keep"} if when == "at once" else {}
    run = straying(answers=answers)
    if when == "by command":
        answered(run, "keep")
    elif not answers:
        assert (run.run().kind, "B" in run.repository.files) == ("waiting", False)
        answers["undeclared"] = "keep"
    assert run.run().kind == "done"
    assert run.calls == [("A", 1)]
    assert [event.payload["by"] for event in run.events("decision.answered")] == ["Pat"]
    assert sorted(run.committed) == ["A", "B", "README"]


def test_acceptance_covers_the_changes_that_were_shown() -> None:
    """R-GIT-5, R-ASK-3: further ones of the next attempt are asked about, and only those."""

    def work(request: AgentRequest, files: Files) -> None:
        files |= {"A": b"%d" % request.attempt, "B": b"stray"}
        if request.attempt == 2:
            files["C"] = b"stray"

    run = answered(EngineRun(task("A", verify=("grep -q 2 A",)), work=work), "keep")
    assert run.run().kind == "waiting"
    assert [list(question["evidence"]) for question in run.state.decisions.values()] == [["B"], ["C"]]


def test_an_attempt_is_counted_once_although_it_ends_three_times() -> None:
    """It fails by an undeclared change, waits for a person once that is accepted, and completes."""
    work = also(lambda *of: stray(*of) or USED)
    run = answered(answered(EngineRun(task("A", acceptance=JUDGED), work=work), "keep"))
    assert run.run().kind == "done"
    progress = run.state.tasks["A"].progress
    assert (progress.attempts, progress.spent.attempts, progress.spent.tokens) == (1, 1, 30)
    assert run.state.spent["builder"].attempts == 1


def test_what_a_validator_used_is_counted_after_undeclared_changes_were_accepted() -> None:
    reply = replace(USED, reply='{"verdict": "PASS", "evidence": []}')
    work = also(lambda *of: stray(*of) or reply)
    bindings = {name: Binding(name, "scripted") for name in ("builder", "validator")}
    chosen = Settings(builder="builder", bindings=bindings)
    tasks = (task("A", validator="validator", acceptance=JUDGED),)
    run = answered(answered(EngineRun(*tasks, work=work, settings=chosen), "keep"))
    assert run.run().kind == "done"
    assert {role: used.tokens for role, used in run.state.spent.items()} == {"builder": 30, "validator": 30}


@pytest.mark.parametrize("answers", [{}, {"undeclared": "keep"}])
def test_accepted_changes_do_not_excuse_a_builder_that_did_not_finish(answers: dict[str, str]) -> None:
    """R-ASK-2: what else was wrong with the attempt is not forgiven, so the task is built again."""
    late = AgentResult("timed_out", "no time is left")
    work = also(lambda request, files: stray(request, files) or (late if request.attempt == 1 else None))
    run = EngineRun(task("A"), work=work, answers=answers)
    if not answers:
        answered(run, "keep")
    assert run.run().kind == "done"
    assert run.calls == [("A", 1), ("A", 2)]
    assert run.commits() == ["A"]


DEPLOYS = RollbackClass("compensatable", commands=("true",))


@every("ends", ["killed", "failed"])
def test_a_task_with_an_effect_is_not_repeated_until_a_person_says_so(ends: str) -> None:
    """R-GIT-4, F64: a deployment that was killed or failed may be half done; another task would run again."""
    run = EngineRun(task("A", rollback=DEPLOYS, verify=("false",) if ends == "failed" else ("test -f A",)))
    if ends == "killed":
        run = stopped_before("log checkpoint.intended", run)
    assert run.run().kind == "waiting"
    assert run.calls == [("A", 1)]
    (question,) = run.state.decisions.values()
    assert question["kind"] == "effect"
    assert run.answer("skip").run().kind == "done"
    assert (run.status(), run.calls) == ({"A": "skipped"}, [("A", 1)])


def test_guidance_reaches_a_task_that_was_killed() -> None:
    """R-RUN-5, R-RUN-9."""
    run = stopped_before("log checkpoint.intended", one_task())
    journal = run.process().journal
    journal.write(journal.event("task.guided", "A", by="Pat", guidance="use blue"))
    run.run()
    assert "Pat says: use blue" in run.builder.requests[-1].feedback


@pytest.mark.parametrize("answers", [{}, {"undeclared": "keep"}])
def test_a_gate_that_cannot_judge_accepted_changes_stops_the_run(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, str]
) -> None:
    """R-GATE-1: no further attempt is paid for, at a terminal and later."""
    break_gate(monkeypatch, gate_table.SYNTAX)
    chosen = replace(EngineRun(task("A")).settings, gates={gate_table.SYNTAX: GateSettings(level=1)})
    run = EngineRun(task("a.py"), work=stray, settings=chosen, answers=answers)
    if not answers:
        answered(run, "keep")
    ending = run.run()
    assert (ending.kind, ending.fields.get("failure"), run.calls) == ("halted", "gate-error", [("a.py", 1)])
    monkeypatch.undo()
    assert run.run().kind == "done"


# Every point


def diamond(**fields: Any) -> EngineRun:
    """Four tasks, one with a second attempt, and files of the user that no task declares."""

    def work(request: AgentRequest, files: Files) -> None:
        if request.subject != "B" or request.feedback:
            make_own_files(request, files)

    run = EngineRun(task("A"), task("B", "A"), task("C", "A"), task("D", "B", "C"), work=work, **fields)
    run.repository.files |= {"README": b"edited", "notes": b"mine"}
    return run


def points(**fields: Any) -> range:
    """Return every durable effect at which such a run can be killed."""
    rehearsal = diamond(**fields)
    rehearsal.run()
    return range(1, len(rehearsal.effects) + 1)


def killed(point: int, **fields: Any) -> EngineRun:
    run = diamond(**fields)
    assert run.run_until_killed(point)
    return run


def require_finished(run: EngineRun) -> None:
    assert set(run.status().values()) == {"completed"}
    assert sorted(run.commits()) == ["A", "B", "C", "D"]
    assert run.repository.files == {"README": b"edited", "notes": b"mine", **{id: id.encode() for id in "ABCD"}}
    assert run.log.verify().broken_at is None


def test_a_run_that_was_killed_anywhere_finishes_once_and_loses_nothing() -> None:
    for point in points():
        run = killed(point)
        assert run.run().kind == "done"
        require_finished(run)


def test_a_kill_during_recovery_is_safe_too() -> None:
    for point, later in zip(points(), itertools.cycle((1, 2, 3)), strict=False):
        run = killed(point)
        run.run_until_killed(len(run.effects) + later)
        assert run.run().kind == "done"
        require_finished(run)


def test_what_is_committed_was_judged_although_the_user_commits_after_a_kill() -> None:
    for point in points():
        run = killed(point)
        mine = {**run.committed, "notes": "mine"}
        run.repository.blobs["mine"] = b"mine"
        run.repository.advance(mine, "my own commit")
        assert run.run().kind == "done"
        require_finished(run)
        judged = {event.payload["tree"] for event in run.events("evidence.recorded")}
        made = {commit.tree for commit in run.repository.commits.values() if "Idumb-Task" in commit.message}
        assert made <= judged


def test_nothing_stays_half_delivered_while_the_user_decides_about_a_save() -> None:
    """R-GIT-6: the kill came between the two files."""
    run = stopped_before("restore", EngineRun(task("A", files=("A", "B"))), 2)
    run.repository.files["B"] = b"mine"
    assert run.run().kind == "waiting"
    assert run.repository.files == {"README": b"hello", "B": b"mine"}


def test_work_that_fails_after_a_kill_and_a_commit_of_the_user_is_not_in_the_way() -> None:
    """It was delivered from its clone before it was judged again."""

    def again() -> EngineRun:
        return EngineRun(task("A", verify=("test -f A", "grep -q hello README")))

    rehearsal = again()
    rehearsal.run()
    for point in range(rehearsal.effects.index("log checkpoint.intended") + 2, rehearsal.effects.index("commit") + 2):
        run = again()
        assert run.run_until_killed(point)
        run.repository.files["README"] = b"mine"
        run.repository.advance({"README": run.repository.store(b"mine")}, "my own commit")
        run.run(max_attempts=1)
        assert run.commits() == []
        assert sorted(run.repository.files) == ["README"]


def saved_meanwhile(choice: str) -> EngineRun:
    """A run that makes two files; the user saves one of them meanwhile, and chooses whose version counts."""

    def work(request: AgentRequest, files: Files) -> None:
        make_both(request, files)
        run.repository.files["A"] = b"mine"

    run = EngineRun(task("A", files=["A", "B"]), work=work, answers={"delivery": choice})
    return run


@every("choice, there", [("mine", b"mine"), ("task", b"A")])
def test_the_version_that_the_user_chose_stays_wherever_the_run_is_killed(choice: str, there: bytes) -> None:
    """R-GIT-6."""
    rehearsal = saved_meanwhile(choice)
    rehearsal.run()
    for point in range(rehearsal.effects.index("log checkpoint.intended") + 2, len(rehearsal.effects) + 1):
        run = saved_meanwhile(choice)
        assert run.run_until_killed(point)
        assert run.run().kind == "done"
        assert run.commits() == ["A"]
        assert run.repository.files == {"README": b"hello", "A": there, "B": b"B"}


def test_what_the_user_saves_after_choosing_mine_stays_and_stops_nothing() -> None:
    """R-GIT-6: what is committed is what was proven."""
    rehearsal = saved_meanwhile("mine")
    rehearsal.run()
    for effect in ("restore", "commit"):
        run = saved_meanwhile("mine")
        assert run.run_until_killed(rehearsal.effects.index(effect) + 1)
        run.repository.files["A"] = b"newer"
        assert run.run().kind == "done"
        assert run.repository.files == {"README": b"hello", "A": b"newer", "B": b"B"}
        tree = run.committed
        assert tree["A"] == run.repository.store(b"mine")
