"""Tasks that a person builds: which files are their work, and that it stays (R-GIT-1)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from idumb.app.engine import unfinished_attempts
from idumb.domain.agent import AgentRequest
from idumb.domain.errors import Refusal, WorkFailed
from idumb.domain.plans.plan import HUMAN, Criterion, Task
from tests.support.cases import every
from tests.support.engine_run import EngineRun, Killed, task
from tests.support.memory_checks import MemoryChecks


def by_hand(*paths: str, check: str = "true") -> Task:
    return task("A", files=paths or ("README",), builder="human", verify=(check,))


def asked(*tasks: Task) -> EngineRun:
    """A run of these tasks, the first of which waits for a person; agents append a line to what they declare."""

    def work(request: AgentRequest, files: dict[str, bytes]) -> None:
        for path in request.allowed_paths:
            files[path] = files.get(path, b"") + b" more"

    run = EngineRun(*tasks, work=work)
    assert run.run().kind == "waiting"
    return run


def files_of(run: EngineRun, id: str) -> list[str]:
    return list(run.kept(id).files)


def test_a_person_may_commit_the_work_before_the_answer() -> None:
    run = asked(by_hand())
    run.repository.files["README"] = b"fixed"
    run.repository.commit_all("by hand")
    assert run.answer("done").run().kind == "done"
    assert files_of(run, "A") == ["README"]


@every("verb", ["modify", "create"])
def test_changes_from_before_the_question_are_not_the_work_of_a_person(verb: str) -> None:
    path = "README" if verb == "modify" else "new"
    run = EngineRun(task("A", files=[path], builder="human"))
    run.repository.files[path] = b"before"
    with pytest.raises(Refusal) as caught:
        run.run()
    assert (caught.value.code, run.repository.files[path]) == ("task.dirty-path", b"before")
    assert str(caught.value.hint).endswith("then idumb resume 1")


def test_files_that_other_tasks_of_the_run_change_are_not_the_work_of_a_person() -> None:
    run = asked(task("A", files=["*.md"], builder="human", verify=("true",)), task("B", files=["other.md"]))
    run.run()
    run.repository.files["mine.md"] = b"fixed"
    assert run.answer("done").run().kind == "done"
    assert (files_of(run, "A"), files_of(run, "B")) == (["mine.md"], ["other.md"])


def test_a_person_s_work_does_not_stop_later_tasks_that_declare_the_same_file() -> None:
    run = asked(by_hand(), task("B", "A", files=["README"]))
    run.repository.files["README"] = b"fixed"
    assert run.answer("done").run().kind == "done"
    assert run.repository.files["README"] == b"fixed more"
    assert (files_of(run, "A"), files_of(run, "B")) == (["README"], ["README"])


@every("acceptance, waits", [((), False), ((Criterion("AC-1", "it looks good", HUMAN),), True)])
def test_what_a_person_corrects_after_a_refused_commit_is_judged_again(
    acceptance: tuple[Criterion, ...], *, waits: bool
) -> None:
    """R-GIT-1: in the same attempt, unless a person must judge it again."""
    run = asked(replace(by_hand(check="grep -q fixed README"), acceptance=acceptance))
    run.repository.files["README"] = b"fixed, badly"
    run.repository.refusing = "a hook said no"
    if waits:
        assert run.answer("done").run().kind == "waiting"
    with pytest.raises(WorkFailed, match="git refused the commit of A: a hook said no") as caught:
        run.answer("yes" if waits else "done").run()
    assert str(caught.value.hint) == "Fix what git names, then idumb resume 1"
    run.repository.refusing = ""
    run.repository.files["README"] = b"fixed"
    assert run.run().kind == ("waiting" if waits else "done")
    assert (run.commits(), run.state.tasks["A"].attempt.number) == (([], 2) if waits else (["A"], 1))
    reasons = [event.payload["reason"] for event in run.events("attempt.interrupted")]
    assert reasons == [unfinished_attempts.CHANGED] * waits


def test_what_a_person_saves_while_the_work_is_judged_stays_and_is_not_in_its_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R-GIT-6."""
    run, judge = asked(by_hand(check="grep -q fixed README")), MemoryChecks._exit_code
    run.repository.files["README"] = b"fixed"

    def saving(*arguments: Any) -> int:
        run.repository.files["README"] = b"later"
        return judge(*arguments)

    monkeypatch.setattr(MemoryChecks, "_exit_code", saving)
    assert run.answer("done").run().kind == "done"
    assert (files_of(run, "A"), run.repository.files["README"]) == (["README"], b"later")


def test_work_by_hand_that_a_person_undid_after_a_refused_commit_is_not_committed() -> None:
    run = asked(by_hand(check="grep -q fixed README"))
    before, run.repository.files["README"] = run.repository.files["README"], b"fixed"
    run.repository.refusing = "a hook said no"
    with pytest.raises(WorkFailed):
        run.answer("done").run()
    run.repository.files["README"], run.repository.refusing = before, ""
    assert run.run().kind == "waiting"
    assert (run.commits(), run.repository.files["README"]) == ([], before)


def test_work_by_hand_that_fails_its_check_stays_and_can_be_corrected() -> None:
    run = asked(by_hand("README", "new", check="grep -q fixed new"))
    run.repository.files["README"] = b"half"
    run.answer("done").run()
    assert (run.status(), run.repository.files["README"]) == ({"A": "waiting"}, b"half")
    run.repository.files |= {"README": b"fixed", "new": b"fixed"}
    run.answer("done").run()
    assert (run.status(), files_of(run, "A")) == ({"A": "completed"}, ["README", "new"])


def test_work_by_hand_stays_if_idumb_is_killed_while_it_checks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def killing(*_: object) -> int:
        raise Killed

    run = asked(by_hand(check="grep -q fixed README"))
    run.repository.files["README"] = b"fixed"
    run.answer("done")
    with monkeypatch.context() as patched:
        patched.setattr(MemoryChecks, "_exit_code", killing)
        with pytest.raises(Killed):
            run.run()
    assert run.run().kind == "done"
    assert (files_of(run, "A"), run.repository.files["README"]) == (["README"], b"fixed")


def test_plans_that_a_person_writes_meanwhile_are_no_work_of_a_task_that_may_change_all_files() -> None:
    run = asked(by_hand("**"))
    run.repository.files |= {"README": b"fixed", ".planning/phases/2/notes.md": b"draft"}
    assert run.answer("done").run().kind == "done"
    assert files_of(run, "A") == ["README"]


CHANGED = [("README", "yes", "waiting"), ("README", "no", "waiting"), ("notes", "yes", "done")]


@every("path, answer, ends", CHANGED)
def test_work_by_hand_that_changed_after_it_was_judged_is_not_committed(path: str, answer: str, ends: str) -> None:
    """He is asked for it again. What else changed meanwhile is no change of the task, but in the tree that it left."""
    looks = (Criterion("AC-1", "it looks good", HUMAN),)
    run = asked(task("A", files=["README"], builder="human", verify=("true",), acceptance=looks))
    run.repository.files["README"] = b"fixed"
    assert run.answer("done").run().kind == "waiting"
    run.repository.files[path] = b"later"
    assert run.answer(answer).run().kind == ends
    if ends == "done":
        left = run.repository.trees[run.state.tasks["A"].work.left_tree or ""]
        assert (files_of(run, "A"), left[path]) == (["README"], run.repository.store(b"later"))
    assert (run.commits(), run.repository.files[path]) == (["A"] if ends == "done" else [], b"later")
    if ends == "waiting":
        assert run.answer("done").run().kind == "waiting"
        assert run.answer("yes").run().kind == "done"
        assert files_of(run, "A") == ["README"]


def test_a_person_is_asked_again_after_each_failed_check_because_an_answer_serves_one_attempt() -> None:
    """R-ASK-2: each question says what failed."""
    run = asked(by_hand(check="grep -q fixed README"))
    shown = tuple(run.state.decisions["A.work.1"]["evidence"])
    assert shown[-2:] == ("  writes README", "  runs   grep -q fixed README"), "what is his work, and what judges it"
    for number in range(1, 5):
        assert run.state.tasks["A"].decisions == (f"A.work.{number}",)
        assert run.answer("done").run().kind == "waiting"
    assert "verify 1 failed" in " ".join(run.state.decisions["A.work.5"]["evidence"])
    run.repository.files["README"] = b"fixed"
    assert run.answer("done").run().kind == "done"
    assert run.state.tasks["A"].attempt.number == 5


def test_a_person_who_cannot_do_the_work_is_not_asked_again() -> None:
    run = asked(by_hand(check="grep -q fixed README"))
    assert run.answer("not-done").run().kind == "done"
    assert run.status() == {"A": "failed"}
    assert [event.payload["subject"] for event in run.events("decision.asked")] == ["work", "exhausted"]


def test_an_answer_at_a_terminal_is_recorded_as_a_later_one_is() -> None:
    """R-ASK-2, R-PLAN-12."""
    later, now = asked(by_hand()), EngineRun(by_hand(), answers={"work": "done"})
    later.repository.files["README"] = b"fixed"
    now.asker.works = lambda: now.repository.files.update(README=b"fixed")
    assert (later.answer("done").run().kind, now.run().kind) == ("done", "done")
    recorded = [[event.kind for event in run.log.events(run="r1")] for run in (later, now)]
    assert recorded[0] == recorded[1]
