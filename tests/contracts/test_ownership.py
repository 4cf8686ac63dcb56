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
from tests.support.errors import refusing
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


def test_a_living_owner_is_the_only_one_and_no_force_overtakes_it(contest: Contest) -> None:
    """A process that never was the owner passes the guard."""
    contest.first.acquire("first")
    assert [refused(owner) for owner in (contest.second, contest.first)] == ["lock.held"] * 2
    assert refused(contest.second, force=True) == "lock.held"
    contest.second.guard()
    contest.first.guard()


def test_each_owner_has_a_higher_token(contest: Contest) -> None:
    """The log refuses all but the newest."""
    fences: list[int] = []
    for owner in (contest.first, contest.second) * 2:
        fences.append(owner.acquire("idumb"))
        owner.release()
    assert fences == [1, 2, 3, 4]


def test_an_owner_on_another_machine_is_overtaken_only_by_force_and_does_nothing_from_then_on(contest: Contest) -> None:
    """Neither does it release what the new owner has."""
    fence = contest.first.acquire("first")
    contest.move_owner_away()
    assert refused(contest.second) == "lock.elsewhere"
    new = contest.second.acquire("second", force=True)
    assert new == fence + 1
    for _ in range(2):
        with refusing("lock.lost"):
            contest.first.guard()
    contest.first.release()
    contest.second.guard()
    assert (contest.second.holder() or {})["command"] == "second"
    assert refused(contest.first) == "lock.held"
    contest.second.release()
    contest.first.acquire("again")
    contest.first.guard()


def test_releasing_twice_or_without_ownership_does_nothing(contest: Contest) -> None:
    contest.first.acquire("first")
    contest.second.release()
    assert refused(contest.second) == "lock.held"
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


def test_a_request_to_stop_reaches_only_the_owner_that_it_names(contest: Contest) -> None:
    """Neither a later owner, nor the same process once it is the owner again."""
    contest.first.acquire("first")
    assert contest.first.stop_request() is None
    named = contest.second.holder() or {}
    contest.second.ask_to_stop_after_task(named, "Pat", "lunch")
    assert contest.first.stop_request() == StopRequest("Pat", "lunch", after_task=True)
    assert contest.second.stop_request() is None
    contest.first.release()
    contest.second.acquire("second")
    assert contest.second.stop_request() is contest.first.stop_request() is None
    contest.second.release()
    contest.first.acquire("first")
    contest.second.ask_to_stop_after_task(named, "Pat", "lunch")
    assert contest.first.stop_request() is None
