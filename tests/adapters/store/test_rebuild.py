"""A missing, outdated or damaged log is rebuilt from its copy and its remains (R-LOG-2, F43)."""

from __future__ import annotations

import fcntl
import os
import random
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import ANY

import pytest

from idumb.domain.errors import StoreError
from idumb.domain.runs.event import NewEvent
from idumb.store import rebuild, witnesses
from idumb.store.witnesses import AnchoredCopy, nothing_kept
from tests.adapters.store.opened import OpenedLog, outside, without_triggers
from tests.support.cases import every


def filled(tmp_path: Path) -> OpenedLog:
    """Make a log of 21 events of an owner that let go."""
    log = OpenedLog(tmp_path)
    log.fill(0)
    log.log.append([NewEvent("run.started", {"phase": "1", "number": 1}, run="r")], operation="o", fence=1)
    for number in range(20):
        log.append(1, number)
    log.owner.release()
    log.close()
    return log


@pytest.fixture
def opened(tmp_path: Path) -> OpenedLog:
    return filled(tmp_path)


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(StoreError) as caught:
        action()
    return caught.value.code


def copy_of(opened: OpenedLog) -> Path:
    return Path(AnchoredCopy(str(opened.folder)).path)


def fix(opened: OpenedLog) -> rebuild.Report:
    opened.close()
    return rebuild.rebuild(str(opened.folder), nothing_kept)


def recoverable(opened: OpenedLog) -> rebuild.Recoverable:
    return rebuild.plan(str(opened.folder), nothing_kept)


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garbage(path: Path) -> None:
    path.write_bytes(b"<<<<<<< HEAD\n" * 4000)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty_tables(path: Path) -> None:
    without_triggers(path, "DELETE FROM events", "DELETE FROM runs", "DELETE FROM owners")


def shorter(path: Path) -> None:
    without_triggers(path, "DELETE FROM events WHERE seq > 11")


def changed(path: Path) -> None:
    without_triggers(path, "UPDATE events SET payload = '{}' WHERE seq = 7")


DAMAGES = [remove, empty, garbage, cut, empty_tables, shorter, changed]


@every("damage", DAMAGES)
@every("witness", ["anchor", "refs"])
def test_a_damaged_log_is_refused_and_rebuilt_unchanged(
    tmp_path: Path, damage: Callable[[Path], None], witness: str
) -> None:
    opened = filled(tmp_path)
    events = list(opened.log.events())
    opened.close()
    damage(opened.path)
    if witness == "refs":
        opened.anchor.unlink()
        opened = OpenedLog(opened.folder, kept_refs=lambda: True)
    if damage not in (changed, cut):
        assert code_of(opened.log.head) in {"store.missing", "store.corrupt", "store.older"}
    assert recoverable(opened).possible
    report = fix(opened)
    assert report.events == 21
    assert list(opened.log.events()) == events
    assert opened.log.verify().broken_at is None
    assert opened.log.latest_run("1") == "r"
    assert bool(report.set_aside) == (damage is not remove)
    again = opened.owner.acquire("idumb resume 1")
    assert again > 1
    opened.append(again)


def test_an_old_owner_cannot_write_into_a_rebuilt_log(opened: OpenedLog) -> None:
    fence = opened.owner.acquire("idumb test")
    fix(opened)
    assert code_of(lambda: opened.append(fence)) == "store.fence"


def test_a_rebuilt_log_combines_copy_and_database(opened: OpenedLog) -> None:
    """The copy ends at event 15 and the database lost event 7: together they have every event."""
    copy = copy_of(opened)
    copy.write_bytes(b"".join(copy.read_bytes().splitlines(keepends=True)[:15]))
    changed(opened.path)
    assert recoverable(opened).events == 21
    assert fix(opened).events == 21
    assert opened.log.verify().count == 21
    assert len(copy.read_bytes().splitlines()) == 21


def test_events_that_a_witness_knows_are_never_dropped(opened: OpenedLog) -> None:
    """The database is missing and the copy is behind the anchor: refused, and nothing is changed."""
    copy = copy_of(opened)
    copy.write_bytes(b"".join(copy.read_bytes().splitlines(keepends=True)[:15]))
    opened.path.unlink()
    recovered = recoverable(opened)
    assert not recovered.possible
    assert "only events 1 to 15 of 21" in recovered.words
    assert code_of(lambda: fix(opened)) == "store.lost"
    assert not opened.path.exists()
    assert code_of(opened.log.head) == "store.missing"


def test_without_any_source_the_error_lists_what_the_refs_still_have(opened: OpenedLog) -> None:
    copy_of(opened).unlink()
    opened.path.unlink()
    opened.anchor.unlink()
    rebuilt = rebuild.plan(str(opened.folder), lambda: True)
    assert not rebuilt.possible
    assert "refs/idumb still holds every snapshot" in rebuilt.words


def test_two_histories_are_never_mixed(tmp_path: Path) -> None:
    """Database and copy agree on two events and tell different third ones."""
    first = OpenedLog(tmp_path)
    fence = first.fill(2)
    first.close()
    whole, copy = first.path.read_bytes(), copy_of(first)
    first.append(fence, 7)
    first.close()
    ours = copy.read_bytes()
    first.path.write_bytes(whole)
    copy.write_bytes(b"".join(ours.splitlines(keepends=True)[:2]))
    first.append(fence, 8)
    first.close()
    first.close()
    copy.write_bytes(ours)
    assert code_of(first.log.head) == "store.diverged"
    recovered = recoverable(first)
    assert not recovered.possible
    assert "different histories up to event 3" in recovered.words
    assert code_of(lambda: fix(first)) == "store.lost"


def test_a_hot_journal_of_the_old_database_never_reaches_the_new_one(opened: OpenedLog) -> None:
    journal = opened.path.with_name("store.db-journal")
    garbage(opened.path)
    journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"x" * 2000)
    fix(opened)
    assert not journal.exists() or not journal.stat().st_size
    assert opened.path.with_name("store.db-journal.damaged-1").exists()
    assert opened.log.verify().count == 21


def test_each_damaged_database_is_kept_under_its_own_name(opened: OpenedLog) -> None:
    for number in (1, 2, 3):
        opened.path.write_bytes(b"damage %d" % number)
        assert fix(opened).set_aside == f"{opened.path}.damaged-{number}"
    kept = [opened.path.with_name(f"store.db.damaged-{number}").read_bytes() for number in (1, 2, 3)]
    assert kept == [b"damage 1", b"damage 2", b"damage 3"]


def test_a_rebuild_killed_at_any_moment_can_be_repeated(opened: OpenedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends it at each call that changes the disk, in a child as `kill -9` would."""
    events = list(opened.log.events())
    opened.close()
    for at in range(12):
        garbage(opened.path)
        _killed_at(opened, at)
        fix(opened)
        assert list(opened.log.events()) == events, at
        opened.close()
    leftovers = {place.name for place in opened.path.parent.iterdir() if ".new" in place.name}
    assert leftovers <= {"store.db.new-journal"}


def _killed_at(opened: OpenedLog, at: int) -> None:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    passed = 0
    for name in ("open", "rename", "replace", "link", "unlink", "fsync"):
        inner = getattr(os, name)

        def counted(*arguments: object, inner: Callable[..., object] = inner, **options: object) -> object:
            nonlocal passed
            if passed == at:
                os._exit(9)
            passed += 1
            return inner(*arguments, **options)

        setattr(os, name, counted)
    fix(opened)
    os._exit(0)


# The copy


def test_the_copy_has_every_event_and_belongs_to_the_user_alone(opened: OpenedLog) -> None:
    copy = copy_of(opened)
    placed = list(AnchoredCopy(str(opened.folder)).lines())
    assert [row[0] for row, _ in placed] == list(range(1, 22))
    assert {worktree for _, worktree in placed} == {"main"}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("cut_off", [1, 50, 700])
def test_a_truncated_copy_catches_up(opened: OpenedLog, cut_off: int) -> None:
    copy = copy_of(opened)
    whole = copy.read_bytes()
    os.truncate(copy, len(whole) - cut_off)
    fence = opened.owner.acquire("idumb test")
    opened.append(fence, 99)
    assert copy.read_bytes().startswith(whole)
    assert len(copy.read_bytes().splitlines()) == 22


def test_a_copy_with_a_changed_end_is_kept_and_rebuilt(opened: OpenedLog) -> None:
    copy = copy_of(opened)
    lines = copy.read_bytes().splitlines(keepends=True)
    damaged = b"".join(lines[:-1]) + lines[-1].replace(b'"n":19', b'"n":18')
    copy.write_bytes(damaged)
    fence = opened.owner.acquire("idumb test")
    opened.append(fence, 99)
    assert copy.with_name("events.jsonl.kept-1").read_bytes() == damaged
    assert copy.read_bytes().splitlines(keepends=True)[:21] == lines


def test_a_copy_without_line_endings_is_kept_and_rebuilt(opened: OpenedLog) -> None:
    copy = copy_of(opened)
    whole = copy.read_bytes()
    strange = whole.replace(b"\n", b" ")
    copy.write_bytes(strange)
    fence = opened.owner.acquire("idumb test")
    opened.append(fence, 99)
    assert copy.with_name("events.jsonl.kept-1").read_bytes() == strange
    assert copy.read_bytes().startswith(whole)


def test_the_next_command_rebuilds_a_missing_copy(opened: OpenedLog) -> None:
    copy = copy_of(opened)
    whole = copy.read_bytes()
    copy.unlink()
    fence = opened.owner.acquire("idumb test")
    opened.append(fence, 99)
    assert copy.read_bytes().startswith(whole)


def test_damage_inside_a_copy_is_reported_and_rebuilding_repairs_it(opened: OpenedLog) -> None:
    copy = copy_of(opened)
    whole = copy.read_bytes()
    copy.write_bytes(whole.replace(b'"n":5', b'"n":6', 1))
    assert AnchoredCopy(str(opened.folder)).damaged() == 1
    assert fix(opened).events == 21
    assert copy.read_bytes() == whole


def test_a_moved_repository_starts_its_own_copy(opened: OpenedLog) -> None:
    moved = opened.folder.with_name(f"{opened.folder.name}-moved")
    whole = copy_of(opened).read_bytes()
    opened.folder.rename(moved)
    again = OpenedLog(moved)
    fence = again.owner.acquire("idumb test")
    again.append(fence, 99)
    assert copy_of(again).read_bytes().startswith(whole)


def test_another_repository_at_the_same_path_is_new_and_the_old_copy_is_kept(opened: OpenedLog) -> None:
    """A new clone can get the inode of a deleted one, and with it the same name in the state directory."""
    copy = copy_of(opened)
    whole = copy.read_bytes()
    opened.path.unlink()
    opened.anchor.unlink()
    fence = opened.owner.acquire("idumb test")
    opened.append(fence)
    assert copy.with_name("events.jsonl.kept-1").read_bytes() == whole
    assert opened.log.head()[0] == 1


def test_refs_of_idumb_without_a_log_are_not_a_new_repository(tmp_path: Path) -> None:
    """Neither anchor nor copy exists, as in a mirror clone or a cleaned git folder."""
    opened = OpenedLog(tmp_path, kept_refs=lambda: True)
    assert code_of(opened.log.head) == "store.missing"
    assert code_of(lambda: opened.fill(1)) == "store.missing"
    assert not opened.path.exists()


def test_a_copy_that_others_may_write_blocks_writing_but_not_reading(opened: OpenedLog) -> None:
    copy = copy_of(opened)
    copy.parent.chmod(0o777)
    assert opened.log.head()[0] == 21
    opened.close()
    assert code_of(lambda: opened.owner.acquire("idumb test")) == "store.unsafe"
    copy.parent.chmod(0o700)
    opened.owner.acquire("idumb test")


def test_a_link_in_place_of_the_copy_is_not_followed(opened: OpenedLog, tmp_path: Path) -> None:
    copy = copy_of(opened)
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    copy.unlink()
    copy.symlink_to(victim)
    assert code_of(lambda: opened.owner.acquire("idumb test")) == "store.unsafe"
    assert victim.read_bytes() == b"mine"


def test_an_unwritable_state_directory_does_not_stop_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    opened = OpenedLog(tmp_path / "repository")
    opened.folder.mkdir()
    opened.fill(3)
    assert opened.log.head()[0] == 3


def test_working_trees_that_write_alternately_leave_one_ordered_copy(tmp_path: Path) -> None:
    one, two = OpenedLog(tmp_path, "one"), OpenedLog(tmp_path, "two")
    fences = one.owner.acquire("a"), two.owner.acquire("b")
    for number in range(10):
        one.append(fences[0], number)
        two.append(fences[1], number)
    rows = [row for row, _ in AnchoredCopy(str(tmp_path)).lines()]
    assert [row[0] for row in rows] == list(range(1, 21))


def test_flipped_bytes_of_a_copy_are_not_accepted_as_events(opened: OpenedLog) -> None:
    copy = copy_of(opened)
    whole = bytearray(copy.read_bytes())
    good = dict(enumerate(AnchoredCopy(str(opened.folder)).lines()))
    chosen = random.Random(5)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[chosen.randrange(len(whole))] ^= 1 << chosen.randrange(8)
        copy.write_bytes(damaged)
        for row, _worktree in AnchoredCopy(str(opened.folder)).lines():
            assert row == good[row[0] - 1][0]


def test_replacing_an_open_database_is_detected(opened: OpenedLog) -> None:
    fence = opened.owner.acquire("idumb test")
    other = opened.path.with_name("other.db")
    other.write_bytes(opened.path.read_bytes())
    other.rename(opened.path)
    opened.append(fence, 5)
    with outside(opened.path) as db:
        assert db.execute("SELECT MAX(seq) FROM events").fetchone() == (22,)


def test_existing_files_are_never_overwritten(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"a.kept-{number}").write_text("old", encoding="utf-8")
    (tmp_path / "a").write_text("new", encoding="utf-8")
    assert witnesses.set_aside(str(tmp_path / "a"), "kept") == str(tmp_path / "a.kept-3")
    assert (tmp_path / "a.kept-3").read_text(encoding="utf-8") == "new"


def test_a_suspended_process_that_holds_the_copy_blocks_no_other(opened: OpenedLog) -> None:
    """The copy catches up at the next append."""
    fence = opened.fill(2)
    copy = AnchoredCopy(str(opened.folder))
    stopped = os.open(copy.path, os.O_RDONLY)
    fcntl.flock(stopped, fcntl.LOCK_EX)
    beside = threading.Thread(target=opened.append, args=(fence, 2), daemon=True)
    beside.start()
    beside.join(30)
    waiting = beside.is_alive()
    os.close(stopped)
    assert not waiting
    assert copy.tail() == (23, ANY)
    opened.append(fence, 3)
    assert copy.tail() == (25, ANY)
