"""One owner per working tree, tested with real processes (R-LOG-5)."""

from __future__ import annotations

import fcntl
import functools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

import pytest

from idumb.domain.errors import Refusal
from idumb.store import connection, owner_card, ownership
from idumb.system import machine, private_folders, process_end, process_tree
from tests.adapters.store.opened import OpenedLog
from tests.support import python
from tests.support.cases import every
from tests.support.errors import code_of, refusing

HOLDER = """
import sys
from idumb.store.connection import Database
from idumb.store.event_log import SqliteEventLog
from idumb.store.ownership import FileOwnership
from idumb.system.clock import SystemClock
log = SqliteEventLog(Database(sys.argv[1]), "main", SystemClock())
owner = FileOwnership(log.database, "main", SystemClock())
try:
    print(owner.acquire("idumb execute-phase 1"), flush=True)
except Exception as error:
    print(error.code, flush=True)
sys.stdin.readline()
"""


def change_card(folder: Path, change: Mapping[str, object]) -> None:
    card = folder / "idumb/worktrees/main/owner.json"
    card.write_text(json.dumps({**json.loads(card.read_text()), **change}))


def first_line(process: subprocess.Popen[str]) -> str:
    stream: IO[str] | None = process.stdout
    assert stream is not None
    return stream.readline().strip()


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, which is the owner."""
    process = python.start(HOLDER, tmp_path)
    try:
        assert first_line(process) == "1"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_second_executor_gets_the_name_of_the_owner(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(Refusal) as caught:
        OpenedLog(tmp_path).owner.acquire("second")
    refusal = caught.value
    assert refusal.code == "lock.held"
    assert refusal.exit_code == 4
    assert refusal.details["pid"] == holder.pid
    for part in (
        str(holder.pid),
        os.uname().nodename,
        refusal.details["since"][:19].replace("T", " "),
        "idumb execute-phase 1",
    ):
        assert part in refusal.message
    assert "idumb status" in (refusal.hint or "")


def test_after_a_killed_owner_the_next_one_gets_a_higher_token_at_once(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    """R-LOG-6."""
    holder.kill()
    holder.communicate()
    opened = OpenedLog(tmp_path)
    assert opened.owner.holder() is None
    assert opened.owner.acquire("next") == 2
    card = json.loads((tmp_path / "idumb/worktrees/main/owner.json").read_text())
    assert (card["pid"], card["namespace_before"]) == (os.getpid(), machine.process_namespace())


def test_of_many_simultaneous_starts_exactly_one_becomes_the_owner(tmp_path: Path) -> None:
    crowd = [python.start(HOLDER, tmp_path) for _ in range(3)]
    try:
        answers = sorted(first_line(process) for process in crowd)
    finally:
        for process in crowd:
            process.kill()
            process.communicate()
    assert answers == ["1", *["lock.held"] * 2]


def test_a_child_program_of_the_owner_does_not_keep_the_lock(tmp_path: Path) -> None:
    opened = OpenedLog(tmp_path)
    opened.owner.acquire("first")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    try:
        opened.owner.release()
        assert OpenedLog(tmp_path).owner.acquire("second") == 2
    finally:
        child.communicate(b"\n")


def test_each_working_tree_of_a_repository_has_its_own_owner(tmp_path: Path) -> None:
    first, second = OpenedLog(tmp_path, "one"), OpenedLog(tmp_path, "two")
    assert first.owner.acquire("a") == 1
    assert second.owner.acquire("b") == 1
    first.append(1)
    second.append(1)
    assert first.log.head()[0] == 2


@every("change", [{"started": 1}, {"pid": 2**22 + 1}])
def test_a_stale_owner_file_shows_no_owner(tmp_path: Path, change: dict[str, object]) -> None:
    opened = OpenedLog(tmp_path)
    opened.owner.acquire("first")
    change_card(tmp_path, change)
    assert OpenedLog(tmp_path).owner.holder() is None


@pytest.mark.parametrize("change", [{"namespace": "pid:[1]"}, {"host": "elsewhere"}])
def test_of_an_owner_that_cannot_be_seen_from_here_the_lock_decides(
    tmp_path: Path, holder: subprocess.Popen[str], change: dict[str, str]
) -> None:
    """R-LOG-6: a container was killed, or the repository is on a shared disk."""
    change_card(tmp_path, change)
    opened = OpenedLog(tmp_path)
    assert (opened.owner.holder() or {})["standing"] == owner_card.ELSEWHERE
    holder.kill()
    holder.communicate()
    assert opened.owner.holder() is None
    assert opened.owner.acquire("next") == 2


def test_a_copy_of_the_repository_has_no_owner(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert OpenedLog(shutil.copytree(tmp_path, tmp_path / "copy")).owner.holder() is None


def test_a_lock_without_a_readable_owner_file_is_still_a_lock(tmp_path: Path) -> None:
    opened = OpenedLog(tmp_path)
    opened.owner.acquire("first")
    (tmp_path / "idumb/worktrees/main/owner.json").write_text("{")
    with refusing("lock.held"):
        OpenedLog(tmp_path).owner.acquire("second")
    with refusing("lock.held"), ownership.held_all(str(tmp_path / "idumb")):
        pass


def test_a_failed_store_releases_the_lock(tmp_path: Path) -> None:
    opened = OpenedLog(tmp_path)
    opened.fill(1)
    opened.owner.release()
    opened.close()
    whole = opened.path.read_bytes()
    opened.path.write_bytes(b"x" * 5000)
    assert code_of(opened.owner.acquire, "second") == "store.corrupt"
    opened.path.write_bytes(whole)
    assert opened.owner.acquire("third") == 2


def test_of_two_takeovers_the_earlier_one_gets_no_token(tmp_path: Path) -> None:
    """An owner suspended between lock and token must not fence off the owner that has both."""
    late, new = OpenedLog(tmp_path), OpenedLog(tmp_path)
    lock = owner_card.take(str(tmp_path / "lock"))
    assert lock is not None
    owner_card.replace(str(tmp_path / "lock"))
    new.owner.acquire("new")
    with refusing("lock.lost"):
        late.log.database.write(functools.partial(ownership._next_fence, "main", "late", "then", lock))
    new.owner.guard()


def test_a_lock_inherited_by_a_child_of_a_dead_owner_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F41: the descriptor was inherited by mistake, so the lock is held though its owner is provably dead."""
    monkeypatch.setattr(ownership, "PATIENCE", 0.1)
    opened = OpenedLog(tmp_path)
    opened.owner.acquire("first")
    opened.owner.release()
    inherited = os.open(tmp_path / "idumb/worktrees/main/owner.lock", os.O_RDWR)
    fcntl.flock(inherited, fcntl.LOCK_EX)
    card = {
        "pid": 2**22 + 1,
        "started": 1,
        "host": machine.name(),
        "namespace": machine.process_namespace(),
        "command": "dead",
    }
    (tmp_path / "idumb/worktrees/main/owner.json").write_text(json.dumps(card))
    try:
        assert OpenedLog(tmp_path).owner.acquire("next") == 2
    finally:
        os.close(inherited)


def test_an_owner_that_is_overtaken_while_it_takes_its_token_leaves_the_card_to_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, new = OpenedLog(tmp_path), OpenedLog(tmp_path)
    write = connection.Database.write

    def overtaken(database: connection.Database, change: Callable[[sqlite3.Connection], int]) -> int:
        monkeypatch.undo()
        fence = write(database, change)
        (tmp_path / "idumb/worktrees/main/owner.lock").unlink()
        new.owner.acquire("new")
        return fence

    monkeypatch.setattr(connection.Database, "write", overtaken)
    with refusing("lock.lost"):
        late.owner.acquire("late")
    assert (new.owner.holder() or {})["command"] == "new"
    new.owner.guard()


def test_an_owner_that_notices_only_at_its_release_that_it_was_overtaken_leaves_the_card(tmp_path: Path) -> None:
    old, new = OpenedLog(tmp_path), OpenedLog(tmp_path)
    old.owner.acquire("old")
    (tmp_path / "idumb/worktrees/main/owner.lock").unlink()
    new.owner.acquire("new")
    old.owner.release()
    assert (new.owner.holder() or {})["command"] == "new"
    with pytest.raises(Refusal):
        old.owner.guard()
    with refusing("lock.lost"):
        old.log.database.write(lambda _: None)


def test_a_process_that_became_the_owner_again_is_not_asked_to_stop_as_the_earlier_one(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    asking = OpenedLog(tmp_path).owner
    shown = asking.holder()
    assert shown is not None
    assert asking.ask({**shown, "since": "earlier"}, "pat", "")
    assert process_tree.is_alive(holder.pid)


def test_a_lock_file_that_is_replaced_before_it_is_locked_is_not_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "lock")
    winners: list[owner_card.OwnerLock] = []
    lock = private_folders.lock_descriptor

    def late(descriptor: int) -> bool:
        monkeypatch.undo()
        winners.append(owner_card.replace(path))
        return lock(descriptor)

    monkeypatch.setattr(private_folders, "lock_descriptor", late)
    assert owner_card.take(path) is None
    assert [winner.holds() for winner in winners] == [True]


def test_only_the_exact_process_is_signalled(holder: subprocess.Popen[str]) -> None:
    """A reused process id belongs to another process."""
    started = process_tree.process_started(holder.pid)
    assert started is not None
    assert not process_end.signal_process(holder.pid, started + 1, signal.SIGKILL)
    assert process_tree.process_is(holder.pid, started)
    assert process_end.signal_process(holder.pid, started, signal.SIGKILL)
    assert process_end.wait_for_end(holder.pid, started, 30)


def test_children_of_a_process_that_is_not_the_owner_are_not_ended(tmp_path: Path) -> None:
    """Between the check and the kill, the owner can end and its process id be reused."""
    opened = OpenedLog(tmp_path)
    fence = opened.owner.acquire("first")
    card = json.loads((tmp_path / "idumb/worktrees/main/owner.json").read_text())
    opened.owner.release()
    lines = ["sh", "-c", "sleep 60 & echo $!; wait"]
    with subprocess.Popen(lines, stdout=subprocess.PIPE, text=True, start_new_session=True) as stranger:
        child = int(first_line(stranger))
        opened.owner.end({**card, "fence": fence, "pid": stranger.pid, "standing": "running"})
        alive = (
            process_tree.process_is(stranger.pid, process_tree.process_started(stranger.pid)),
            process_tree.is_alive(child),  # a killed child is a zombie until its parent notices
        )
        os.killpg(stranger.pid, signal.SIGKILL)
    assert alive == (True, True)
