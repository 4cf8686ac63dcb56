"""What the ownership of a working tree promises, asked of the lock file and of the one in memory (R-LOG-5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

import pytest

from idumb.app.ports import StopRequest
from idumb.domain.errors import Refusal
from idumb.store.ownership import FileOwnership
from tests.adapters.store.opened import OpenedLog
from tests.support.memory_ownership import MemoryOwnership, MemoryWorktree


class Contest(Protocol):
    """Two processes that ask for the same working tree."""

    first: FileOwnership | MemoryOwnership
    second: FileOwnership | MemoryOwnership

    def move_owner_away(self) -> None:
        """Move the current owner to another machine, where its process cannot be checked."""


class MemoryContest:
    def __init__(self, _: Path) -> None:
        self.worktree = MemoryWorktree()
        self.first: FileOwnership | MemoryOwnership = MemoryOwnership(self.worktree)
        self.second: FileOwnership | MemoryOwnership = MemoryOwnership(self.worktree)

    def move_owner_away(self) -> None:
        self.worktree.elsewhere = True


class FileContest:
    def __init__(self, folder: Path) -> None:
        self.card = folder / "idumb/worktrees/main/owner.json"
        self.first: FileOwnership | MemoryOwnership = OpenedLog(folder).owner
        self.second: FileOwnership | MemoryOwnership = OpenedLog(folder).owner

    def move_owner_away(self) -> None:
        card = json.loads(self.card.read_text())
        self.card.write_text(json.dumps({**card, "host": "another"}))


@pytest.fixture(params=[MemoryContest, FileContest], ids=["memory", "file"])
def contest(request: pytest.FixtureRequest, tmp_path: Path) -> Contest:
    pair: Contest = request.param(tmp_path)
    return pair


def refused(owner: FileOwnership | MemoryOwnership, *, force: bool = False) -> str:
    with pytest.raises(Refusal) as caught:
        owner.acquire("second", force=force)
    return caught.value.code


def test_a_working_tree_has_one_owner(contest: Contest) -> None:
    fence = contest.first.acquire("first")
    assert refused(contest.second) == "lock.held"
    assert contest.first.check(fence)
    assert not contest.second.check(fence)


def test_an_owner_cannot_acquire_its_working_tree_again(contest: Contest) -> None:
    contest.first.acquire("first")
    assert refused(contest.first) == "lock.held"


def test_each_owner_has_a_higher_token_than_the_one_before(contest: Contest) -> None:
    fences = []
    for owner in (contest.first, contest.second, contest.first):
        fences.append(owner.acquire("idumb"))
        owner.release()
    assert fences == [1, 2, 3]


def test_only_the_present_token_of_the_present_owner_is_valid(contest: Contest) -> None:
    old = contest.first.acquire("first")
    contest.first.release()
    assert not contest.first.check(old)
    new = contest.second.acquire("second")
    assert contest.second.check(new)
    assert not contest.second.check(old)
    assert not contest.first.check(new)


def test_a_process_that_never_was_the_owner_passes_the_guard(contest: Contest) -> None:
    fence = contest.first.acquire("first")
    contest.second.guard()
    contest.first.guard()
    assert contest.first.check(fence)


def test_a_living_owner_on_this_machine_is_not_overtaken_by_force(contest: Contest) -> None:
    fence = contest.first.acquire("first")
    assert refused(contest.second, force=True) == "lock.held"
    assert contest.first.check(fence)


def test_an_owner_on_another_machine_is_overtaken_only_by_force(contest: Contest) -> None:
    contest.first.acquire("first")
    contest.move_owner_away()
    assert refused(contest.second) == "lock.elsewhere"
    assert contest.second.acquire("second", force=True) == 2


def test_the_guard_refuses_an_owner_that_was_overtaken_from_then_on(contest: Contest) -> None:
    fence = contest.first.acquire("first")
    contest.move_owner_away()
    new = contest.second.acquire("second", force=True)
    for _ in range(2):
        with pytest.raises(Refusal) as caught:
            contest.first.guard()
        assert caught.value.code == "lock.lost"
    assert not contest.first.check(fence)
    contest.second.guard()
    assert contest.second.check(new)


def test_the_release_of_an_overtaken_owner_leaves_the_tree_to_the_new_one(contest: Contest) -> None:
    contest.first.acquire("first")
    contest.move_owner_away()
    new = contest.second.acquire("second", force=True)
    contest.first.release()
    assert contest.second.check(new)
    contest.second.guard()
    assert refused(contest.first) == "lock.held"


def test_releasing_twice_or_without_ownership_does_nothing(contest: Contest) -> None:
    fence = contest.first.acquire("first")
    contest.second.release()
    assert contest.first.check(fence)
    contest.first.release()
    contest.first.release()
    assert contest.second.acquire("second") == 2


def test_the_holder_is_shown_with_its_command_and_token_while_there_is_one(contest: Contest) -> None:
    assert contest.second.holder() is None
    fence = contest.first.acquire("idumb resume 1")
    holder = contest.second.holder()
    assert holder is not None
    assert (holder["command"], holder["fence"], holder["standing"]) == ("idumb resume 1", fence, "running")
    contest.first.release()
    assert contest.second.holder() is None
    contest.first.acquire("first")
    contest.move_owner_away()
    assert (contest.second.holder() or {})["standing"] == "elsewhere"


def test_a_request_to_stop_reaches_the_owner_that_it_names(contest: Contest) -> None:
    contest.first.acquire("first")
    assert contest.first.stop_request() is None
    contest.second.ask_to_stop_after_task(contest.second.holder() or {}, "Pat", "lunch")
    assert contest.first.stop_request() == StopRequest("Pat", "lunch", after_task=True)
    assert contest.second.stop_request() is None


def test_a_request_to_stop_does_not_reach_a_later_owner(contest: Contest) -> None:
    contest.first.acquire("first")
    contest.second.ask_to_stop_after_task(contest.second.holder() or {}, "Pat", "lunch")
    contest.first.release()
    contest.second.acquire("second")
    assert contest.second.stop_request() is None
    assert contest.first.stop_request() is None


def test_a_request_to_an_earlier_owner_is_ignored(contest: Contest) -> None:
    contest.first.acquire("first")
    earlier = contest.second.holder() or {}
    contest.first.release()
    contest.first.acquire("first")
    contest.second.ask_to_stop_after_task(earlier, "Pat", "lunch")
    assert contest.first.stop_request() is None
