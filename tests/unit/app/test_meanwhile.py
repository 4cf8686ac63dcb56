"""The user works while the engine does: whose version of a file counts, and what is judged again (R-GIT-6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from idumb.app.core import schedule
from idumb.domain.agent import AgentRequest
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import STRICT
from tests.support.cases import every
from tests.support.engine_run import EngineRun, Files, also, make_own_files, task
from tests.support.errors import refusing


def test_an_attempt_that_continues_keeps_the_version_of_the_user_that_it_started_from() -> None:
    """The run asks once before the work. A later save is asked about when the work is delivered."""
    run = EngineRun(task("A", files=["README"], verify=("grep -q 2 README",)), answers={"base": "mine"})
    run.work = lambda request, files: files.update(README=b"%d" % request.attempt)
    run.repository.files["README"] = b"mine"
    assert run.run().kind == "done"
    assert [question.subject for question in run.asker.asked] == ["base"]


@every("answers", [{}, {"base": "commit"}])
def test_a_task_waits_until_the_user_s_changes_to_its_files_are_committed(answers: dict[str, str]) -> None:
    run = EngineRun(task("A", files=["README"]), answers=answers)
    run.repository.files["README"] = b"mine"
    assert (run.run().kind, run.calls, run.status()) == ("waiting", [], {"A": "pending"})
    run.repository.commit_all("mine")
    assert (run.run().kind, run.calls) == ("done", [("A", 1)])


def test_an_attempt_that_continues_its_own_work_asks_about_a_save_of_the_user_when_it_is_delivered() -> None:
    def work(request: AgentRequest, files: Files) -> None:
        files["README"] = b"%d" % request.attempt
        run.repository.files["README"] = b"mine"

    run = EngineRun(task("A", files=["README"], verify=("grep -q 2 README",)), work=work, answers={"delivery": "task"})
    run.builder.continues = True
    assert run.run().kind == "done"
    assert [question.subject for question in run.asker.asked] == ["delivery"]


def test_a_program_that_changes_the_user_s_file_instead_of_its_own_is_told_where_it_works() -> None:
    def work(request: AgentRequest, files: Files) -> None:
        run.repository.files["A"] = b"made"

    run = EngineRun(task("A"), work=work)
    run.run(max_attempts=1)
    assert "A was declared (create) and did not change, but in the tree of the user" in run.state.tasks["A"].reason


def meanwhile(change: Callable[[EngineRun], None], *tasks: Any, **fields: Any) -> EngineRun:
    """Return a run in which the user changes something while the first task is built."""
    work = also(lambda *_: change(run) if len(run.calls) == 1 else None)
    run = EngineRun(*(tasks or (task("A"), task("B", "A"))), work=work, **fields)
    return run


def save_a(run: EngineRun) -> None:
    run.repository.files["A"] = b"mine"


def commit_other(run: EngineRun, message: str = "mine") -> None:
    run.repository.files["README"] = b"other"
    run.repository.commit_all(message)


def test_a_check_that_a_commit_of_the_user_breaks_is_not_the_task_s_failure() -> None:
    """R-GIT-6: the attempt does not count, a note says why, and the next attempt starts from the user's commit."""

    def work(request: AgentRequest, files: Files) -> None:
        make_own_files(request, files)
        run.repository.files["README"] = b"broken" if len(run.calls) == 1 else b"hello"
        run.repository.commit_all("mine")

    run = EngineRun(task("A", verify=("test -f A", "grep -q hello README")), work=work)
    assert run.run(max_attempts=1).kind == "done"
    assert (run.calls, run.state.tasks["A"].progress.attempts) == ([("A", 1), ("A", 2)], 1)
    assert any("without A too: the attempt does not count" in note for note in run.notes)


def test_work_that_fails_anyway_counts_although_the_user_committed_meanwhile() -> None:
    run = meanwhile(commit_other, task("A", verify=("false",)))
    assert run.run(max_attempts=1).kind == "done"
    assert (run.calls, run.status()) == ([("A", 1)], {"A": "failed"})


def racing(commits: int, **fields: Any) -> EngineRun:
    """Return a run in which the user commits just before a delivery writes files, `commits` times."""
    run, left = EngineRun(task("A"), **fields), [*range(commits)]

    def effect(name: str) -> None:
        if name == "restore" and left:
            tree = run.committed
            run.repository.advance({**tree, f"mine{left.pop()}": run.repository.store(b"x")}, "mine")
        run._effect(name)

    run.repository.effect = effect
    return run


def test_work_that_is_done_is_judged_again_while_the_user_commits_at_the_last_moment() -> None:
    """R-RUN-3."""
    run = racing(4)
    assert run.run().kind == "done"
    assert (run.calls, run.commits()) == ([("A", 1)], ["A"])
    judged = {event.payload["tree"] for event in run.events("evidence.recorded")}
    assert run.repository.commits[run.repository.head or ""].tree in judged


@every("choice, ends", [("again", "done"), ("stop", "waiting"), (None, "waiting")])
def test_a_branch_that_moves_three_times_meanwhile_is_a_question(choice: str | None, ends: str) -> None:
    run = racing(8, answers={} if choice is None else {"moved": choice})
    assert (run.run().kind, run.commits()) == (ends, ["A"] if ends == "done" else [])
    assert [question.subject for question in run.asker.asked] == ["moved"]
    assert (run.run().kind, run.commits(), run.calls) == ("done", ["A"], [("A", 1)])


@every("mode", ["guided", STRICT])
def test_on_another_branch_nothing_is_delivered_until_the_user_is_back(mode: str) -> None:
    """The other branch has another version of a declared file; that is no commit of the user on this branch."""

    def switch(run: EngineRun) -> None:
        run.repository.refs["refs/heads/other"] = run.repository.head or ""
        run.repository.branch = "other"
        commit_other(run)

    last = task("B", "A", files=("README",), verify=("grep -q B README",))
    run = meanwhile(switch, task("A"), last, mode=mode)
    before = run.repository.files["README"]
    ending = run.run()
    assert (ending.kind, "HEAD is on other" in ending.words) == ("waiting", True)
    assert ("A" in run.repository.files, run.commits()) == (False, [])
    run.repository.branch = "main"
    run.repository.files["README"] = before
    assert run.run().kind == "done"
    assert (run.calls, run.commits()) == ([("A", 1), ("B", 1)], ["A", "B"])


def test_a_commit_that_the_user_words_anew_is_no_lost_work() -> None:
    """R-LOG-7: no trailer names the task, but its files are on the branch as it left them."""

    def reword(*_: object) -> None:
        if len(run.calls) == 2:
            made = run.repository.commits[run.repository.head or ""]
            run.repository.refs["refs/heads/main"] = run.repository.store_commit(replace(made, message="mine"))

    run = EngineRun(task("A"), task("B", "A"), work=also(reword))
    assert (run.run().kind, run.commits(), run.calls) == ("done", ["B"], [("A", 1), ("B", 1)])


@every("choice, there", [("mine", b"mine"), ("task", b"A")])
def test_after_a_save_meanwhile_the_version_counts_that_the_user_chooses(choice: str, there: bytes) -> None:
    """R-GIT-6: the user's version is proven again before it is committed, or kept before it is overwritten."""
    run = meanwhile(save_a, task("A"), answers={"delivery": choice})
    assert run.run().kind == "done"
    commit = run.repository.commits[run.repository.head or ""]
    assert (run.commits(), run.repository.files["A"]) == (["A"], there)
    assert commit.tree == run.events("evidence.recorded")[-1].payload["tree"]
    assert run.repository.trees[commit.tree]["A"] == run.repository.store(there)
    assert ("Your version of A is kept" in " ".join(run.notes)) == (choice == "task")


def test_after_a_save_meanwhile_nothing_is_delivered_if_the_user_wants_neither_version() -> None:
    run = meanwhile(save_a, task("A"), answers={"delivery": "stop"})
    with refusing("task.changed-since"):
        run.run()
    assert (run.repository.files["A"], run.commits()) == (b"mine", [])
    del run.repository.files["A"]
    assert run.run().kind == "done"
    assert (run.commits(), run.calls) == (["A"], [("A", 1)])


def test_a_task_is_built_again_on_the_commit_of_a_user_who_wanted_neither_version() -> None:
    edited, changed = {"README": b"mine"}, task("A", files=["README"])
    run = meanwhile(lambda run: run.repository.files.update(edited), changed, answers={"delivery": "stop"})
    with refusing("task.changed-since"):
        run.run()
    run.repository.commit_all("mine")
    assert (run.run().kind, run.calls) == ("done", [("A", 1), ("A", 2)])


def test_an_answer_serves_only_the_files_that_its_question_named() -> None:
    """R-GIT-6: while the user decides about A, B is saved too."""
    both = task("A", files=("A", "B"))
    run = meanwhile(save_a, both, answers={"delivery": "task"})
    run.asker.works = lambda: run.repository.files.update({"B": b"mine"})
    assert run.run().kind == "done"
    assert [question.evidence for question in run.asker.asked] == [("A",), ("A", "B")]


def test_the_last_answer_about_a_file_counts() -> None:
    """R-GIT-6: the first answer takes neither version of A, the second the user's A and B; B is removed meanwhile."""
    both, answers = task("A", files=("A", "B")), {"delivery": "stop"}
    run = meanwhile(save_a, both, answers=answers)
    with pytest.raises(Refusal):
        run.run()
    run.repository.files["B"] = b"mine"
    answers["delivery"] = "mine"
    run.asker.works = lambda: run.repository.files.__delitem__("B")
    assert run.run().kind == "done"
    assert [question.evidence for question in run.asker.asked] == [("A",), ("A", "B")]
    assert (run.repository.files["A"], run.repository.files["B"]) == (b"mine", b"A")


def test_a_question_about_more_files_takes_the_place_of_an_open_one() -> None:
    """R-GIT-6: otherwise one of two answers would have no effect. A file saved as the task made it is no conflict."""
    both, answers = task("A", files=("A", "B")), dict[str, str]()
    run = meanwhile(save_a, both, answers=answers)
    assert (run.run().kind, run.repository.files["A"], run.commits()) == ("waiting", b"mine", [])
    run.repository.files["B"] = b"A"
    assert (run.run().kind, run.repository.files["B"]) == ("waiting", b"A")
    run.repository.files["B"] = b"mine"
    assert run.run().kind == "waiting"
    assert [row["evidence"] for row in schedule.open_questions(run.state)] == [["A", "B"]]
    del run.repository.files["B"]
    answers["delivery"] = "mine"
    assert (run.run().kind, schedule.open_questions(run.state)) == ("done", [])


def test_a_conflict_that_an_answer_does_not_end_is_named() -> None:
    """R-GIT-6: for example a folder in place of a file. Each version of the user is kept."""
    run = meanwhile(save_a, task("A"), answers={"delivery": "task"})

    def effect(name: str) -> None:
        run._effect(name)
        run.repository.files["A"] = name.encode()

    run.asker.works = lambda: setattr(run.repository, "effect", effect)
    ending = run.run()
    assert (ending.kind, ending.words) == ("waiting", "waits: A is done, but A was changed since")
    run.repository.effect = run._effect
    assert run.run().kind == "done"
    kept = [ref for ref in run.repository.refs if "/yours-" in ref]
    assert len(kept) == len([words for words in run.notes if "Your version of A is kept" in words]) > 1


@every("message", ["mine", "pulled\n\nIdumb-Run: another\nIdumb-Task: B"])
def test_a_commit_of_a_path_of_the_plan_stops_a_strict_run(message: str) -> None:
    """R-GIT-6, R-LOCK-4: `resume` builds the task on top of that commit."""
    tasks = task("A"), task("B", "A", files=("README",), verify=("grep -q B README",))
    run = meanwhile(lambda run: commit_other(run, message), *tasks, mode=STRICT)
    ending = run.run()
    assert (ending.kind, "you committed what the plan declares: README" in ending.words) == ("halted", True)
    assert "A" not in run.commits()
    assert (run.run().kind, run.commits()[-2:]) == ("done", ["A", "B"])
    assert meanwhile(lambda run: commit_other(run, message), task("A"), mode=STRICT).run().kind == "done"
