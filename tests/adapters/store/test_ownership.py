"""One owner per work tree, told from real processes (R-LOG-5)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from idumb.domain.errors import Refusal
from tests.adapters.store.opened import OpenedLog
from tests.meta import source

HOLDER = """
import sys
from idumb.store.event_log import SqliteEventLog
from idumb.store.ownership import FileOwnership
from idumb.system.clock import SystemClock
log = SqliteEventLog(sys.argv[1], "main", SystemClock())
owner = FileOwnership(log.database, "main", SystemClock())
try:
    print(owner.acquire("idumb execute-phase 1"), flush=True)
except Exception as error:
    print(error.code, flush=True)
sys.stdin.readline()
"""


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        env={**os.environ, "PYTHONPATH": str(source.ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    stream: IO[str] | None = process.stdout
    assert stream is not None
    return stream.readline().strip()


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = start(tmp_path)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_second_executor_is_told_who_holds_the_work_tree(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert first_line(holder) == "1"
    with pytest.raises(Refusal) as caught:
        OpenedLog(tmp_path).owner.acquire("second")
    refusal = caught.value
    assert refusal.code == "lock.held"
    assert refusal.exit_code == 4
    assert refusal.details["pid"] == holder.pid
    for part in (str(holder.pid), os.uname().nodename, refusal.details["since"], "idumb execute-phase 1"):
        assert part in refusal.message
    assert "idumb status" in (refusal.hint or "")


def test_a_killed_owner_is_followed_at_once_with_a_higher_token(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """R-LOG-6."""
    assert first_line(holder) == "1"
    holder.kill()
    holder.communicate()
    opened = OpenedLog(tmp_path)
    assert opened.owner.holder() is None
    assert opened.owner.acquire("next") == 2
    assert json.loads((tmp_path / "idumb/worktrees/main/owner.json").read_text())["pid"] == os.getpid()


def test_of_many_that_start_together_exactly_one_owns(tmp_path: Path) -> None:
    crowd = [start(tmp_path) for _ in range(5)]
    try:
        answers = sorted(first_line(process) for process in crowd)
    finally:
        for process in crowd:
            process.kill()
            process.communicate()
    assert answers == ["1", *["lock.held"] * 4]


def test_a_program_that_the_owner_started_does_not_keep_the_lock(tmp_path: Path) -> None:
    opened = OpenedLog(tmp_path)
    opened.owner.acquire("first")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    try:
        opened.owner.release()
        assert OpenedLog(tmp_path).owner.acquire("second") == 2
    finally:
        child.communicate(b"\n")


def test_work_trees_of_one_repository_have_owners_of_their_own(tmp_path: Path) -> None:
    first, second = OpenedLog(tmp_path, "one"), OpenedLog(tmp_path, "two")
    assert first.owner.acquire("a") == 1
    assert second.owner.acquire("b") == 1
    first.append(1)
    second.append(1)
    assert first.log.head()[0] == 2


def test_the_holder_is_shown_while_there_is_one(tmp_path: Path) -> None:
    opened, other = OpenedLog(tmp_path), OpenedLog(tmp_path)
    assert other.owner.holder() is None
    opened.owner.acquire("idumb resume 1")
    shown = other.owner.holder()
    assert shown is not None
    assert (shown["pid"], shown["command"]) == (os.getpid(), "idumb resume 1")
    opened.owner.release()
    assert other.owner.holder() is None


@pytest.mark.parametrize(
    "change", [{"boot": "another"}, {"started": 1}, {"pid": 2**22 + 1}], ids=["boot", "reused-pid", "dead"]
)
def test_a_card_left_by_a_process_that_is_gone_shows_no_holder(tmp_path: Path, change: dict[str, object]) -> None:
    opened = OpenedLog(tmp_path)
    opened.owner.acquire("first")
    card = tmp_path / "idumb/worktrees/main/owner.json"
    card.write_text(json.dumps({**json.loads(card.read_text()), **change}))
    assert OpenedLog(tmp_path).owner.holder() is None


def test_a_lock_without_a_readable_card_is_still_a_lock(tmp_path: Path) -> None:
    opened = OpenedLog(tmp_path)
    opened.owner.acquire("first")
    (tmp_path / "idumb/worktrees/main/owner.json").write_text("{")
    with pytest.raises(Refusal, match="another idumb"):
        OpenedLog(tmp_path).owner.acquire("second")


def test_a_failed_store_gives_the_lock_back(tmp_path: Path) -> None:
    opened = OpenedLog(tmp_path)
    opened.fill(1)
    opened.owner.release()
    opened.close()
    whole = opened.path.read_bytes()
    opened.path.write_bytes(b"x" * 5000)
    with pytest.raises(Exception, match="no SQLite database"):
        opened.owner.acquire("second")
    opened.path.write_bytes(whole)
    assert opened.owner.acquire("third") == 2
