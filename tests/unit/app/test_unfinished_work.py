"""A new run while the files hold unfinished work of the last one: what is a person's stays (R-GIT-1)."""

from __future__ import annotations

import pytest

from idumb.app.running import unfinished_work
from idumb.domain.agent import AgentRequest, AgentResult
from idumb.domain.decision import Answer
from idumb.domain.errors import Interrupted, Refusal
from tests.support.engine_run import EngineRun, Killed, make_own_files, task
from tests.support.memory_checks import MemoryChecks

Files = dict[str, bytes]
FILES = ("README", "new")


def by_agent(*, end: AgentResult | None = None) -> EngineRun:
    """An agent's only attempt wrote both files and failed its check."""

    def work(request: AgentRequest, files: Files) -> AgentResult | None:
        make_own_files(request, files)
        return end

    run = EngineRun(task("A", files=FILES, verify=("false",)), work=work)
    run.run(max_attempts=1)
    return run


def interrupted() -> EngineRun:
    def work(request: AgentRequest, files: Files) -> None:
        make_own_files(request, files)
        run.interrupts.received = 2

    run = EngineRun(task("A", files=FILES), work=work)
    with pytest.raises(Interrupted):
        run.run()
    run.interrupts.received = None
    return run


def by_person() -> EngineRun:
    """A person's work failed its check."""
    run = EngineRun(task("A", files=FILES, verify=("false",), builder="human"))
    assert run.run().kind == "waiting"
    by_hand(run, *FILES)
    journal = run.process().journal
    journal.write(journal.answer_event(Answer("A.work", "done", "Pat"), "A", None))
    run.run(max_attempts=1)
    assert run.status() == {"A": "failed"}
    return run


def by_hand(run: EngineRun, *paths: str) -> None:
    run.repository.files.update(dict.fromkeys(paths, b"by hand"))


def refused(run: EngineRun, new: EngineRun | None = None) -> list[str]:
    """Return what a new run, of the same plan or of that of `new`, may not restore, with the reason."""
    files, contract = dict(run.repository.files), (new or run).contract
    with pytest.raises(Refusal) as caught:
        unfinished_work.require_own(run.process().services, contract, run.state, "main")
    assert (caught.value.code, run.repository.files) == (unfinished_work.CODE, files)
    return list(caught.value.details["evidence"])


def restored(run: EngineRun, new: EngineRun | None = None) -> list[str]:
    """Return what a new run restores that is not refused."""
    services, contract = run.process().services, (new or run).contract
    unfinished_work.require_own(services, contract, run.state, "main")
    return [path for put in unfinished_work.put_back(services, contract, run.state) for path in put.paths]


def test_what_an_agent_left_is_restored() -> None:
    run = by_agent()
    assert restored(run) == ["README", "new"]
    assert run.repository.files == {"README": b"hello"}


def test_nothing_is_restored_if_a_person_fixed_one_file_of_a_failed_agent() -> None:
    run = by_agent()
    by_hand(run, "README")
    assert refused(run) == ["A: README (changed since its last attempt)"]


def test_nothing_is_restored_if_a_person_went_on_after_an_interruption() -> None:
    run = interrupted()
    by_hand(run, *FILES)
    assert refused(run) == ["A: README, new (changed since its last attempt)"]


def test_nothing_is_restored_that_a_person_built() -> None:
    assert refused(by_person()) == ["A: README, new (a person built it)"]


def test_committed_or_restored_files_hold_no_work() -> None:
    run = by_person()
    run.repository.commit_all("by hand")
    assert restored(run) == []
    run = by_agent()
    run.repository.files = {"README": b"hello"}
    assert restored(run) == []


@pytest.mark.parametrize("other", ["committed", "restored", "left"])
def test_a_change_that_the_new_run_does_not_touch_is_not_refused_unless_others_would_be_restored_beside_it(
    other: str,
) -> None:
    run, new = by_agent(), EngineRun(task("B"))
    if other == "committed":
        run.repository.commit_all("by hand")
    elif other == "restored":
        del run.repository.files["new"]
    by_hand(run, "README")
    if other == "left":
        assert refused(run, new) == ["A: README (changed since its last attempt)"]
        return
    assert restored(run, new) == []
    assert run.repository.files["README"] == b"by hand"


def test_nothing_is_restored_if_the_check_of_a_person_s_work_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def killing(*_: object) -> int:
        raise Killed

    run = EngineRun(task("A", files=FILES, builder="human"))
    assert run.run().kind == "waiting"
    by_hand(run, *FILES)
    journal = run.process().journal
    journal.write(journal.answer_event(Answer("A.work", "done", "Pat"), "A", None))
    monkeypatch.setattr(MemoryChecks, "_exit_code", killing)
    with pytest.raises(Killed):
        run.run()
    monkeypatch.undo()
    assert run.status() == {"A": "running"}
    assert refused(run) == ["A: README, new (a person built it)"]


def test_a_rollback_that_also_undoes_finished_tasks_says_so() -> None:
    """R-ASK-1."""
    run = EngineRun(task("A", files=FILES, verify=("false",), builder="human"), task("B"))
    assert run.run().kind == "waiting"
    by_hand(run, *FILES)
    journal = run.process().journal
    journal.write(journal.answer_event(Answer("A.work", "done", "Pat"), "A", None))
    run.run(max_attempts=1)
    with pytest.raises(Refusal) as caught:
        unfinished_work.require_own(run.process().services, run.contract, run.state, "main")
    (back,) = [one for one in caught.value.details["choices"] if one["id"] == "roll-back"]
    assert "as before B too, which must be done again" in back["consequence"]
