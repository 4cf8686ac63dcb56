"""The state directory has backups and the newest event; a lost log is restored from them. R-LOG-2, R-LOG-3, F43."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from idumb.domain.errors import StoreError
from idumb.domain.runs.event import NewEvent
from idumb.store import backups, doctor_checks, event_log
from tests.adapters.store.opened import OpenedLog, outside, without_triggers
from tests.support.cases import every
from tests.support.errors import code_of
from tests.support.fixed_clock import FixedClock


def filled(folder: Path) -> OpenedLog:
    """Make a log of 21 events of an owner that let go."""
    log = OpenedLog(folder)
    log.fill(0)
    log.log.append([NewEvent("run.started", {"phase": "1", "number": 1}, run="r")], operation="o", fence=1)
    for number in range(19):
        log.append(1, number)
    log.stop(1)
    log.owner.release()
    log.close()
    return log


@pytest.fixture
def opened(tmp_path: Path) -> OpenedLog:
    return filled(tmp_path)


def fix(opened: OpenedLog) -> str:
    return doctor_checks.restore(opened.log.database, doctor_checks.plan(opened.log.database), FixedClock())


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


DAMAGES = [
    (remove, "store.missing"),
    (empty, "store.missing"),
    (garbage, "store.corrupt"),
    (cut, "store.corrupt"),
    (empty_tables, "store.older"),
    (shorter, "store.older"),
]


@every("damage, code", DAMAGES)
def test_a_damaged_log_is_refused_and_restored_and_the_old_file_is_kept(
    tmp_path: Path, damage: Callable[[Path], None], code: str
) -> None:
    opened = filled(tmp_path)
    events = list(opened.log.events())
    opened.close()
    damage(opened.path)
    damaged = opened.path.read_bytes() if opened.path.exists() else None
    with pytest.raises(StoreError) as caught:
        opened.log.head()
    assert (caught.value.code, caught.value.exit_code, bool(caught.value.hint)) == (code, 4, True)
    assert code_of(opened.append, 1) == code
    assert doctor_checks.plan(opened.log.database).is_whole
    kept = fix(opened)
    assert (Path(kept).read_bytes() if kept else None) == damaged
    *before, gap = opened.log.events()
    assert before == events
    assert (gap.kind, gap.payload["events"], gap.payload["known"]) == ("log.restored", 21, 21)
    assert opened.log.verify().witnessed == 22
    opened.append(opened.owner.acquire("idumb test"))
    assert opened.log.verify().count == 23


def test_what_no_backup_has_is_said_and_recorded(opened: OpenedLog) -> None:
    """The number of a task that ended after the newest backup is known."""
    fence = opened.owner.acquire("idumb test")
    opened.append(fence, 99)
    opened.log.append([NewEvent("task.completed", run="r", task="T")], operation="o", fence=fence)
    opened.close()
    opened.path.unlink()
    recovery = doctor_checks.plan(opened.log.database)
    assert not recovery.is_whole
    assert recovery.words().endswith("has events 1 to 21; the later ones, up to event 23 at least, are missing")
    fix(opened)
    assert opened.log.head()[0] == 22
    assert list(opened.log.events())[-1].payload["known"] == 23


def test_a_restored_log_that_is_lost_again_is_restored_as_a_whole_in_spite_of_damaged_backups(
    opened: OpenedLog,
) -> None:
    """Neither one of the same number keeps it from being backed up, nor as many newer ones as are kept."""
    for number in range(22, 26):
        Path(opened.backups.folder, f"{number:012d}.db").write_bytes(b"damaged")
    for events in (21, 22):
        opened.close()
        opened.path.unlink()
        recovery = doctor_checks.plan(opened.log.database)
        assert (recovery.is_whole, recovery.events) == (True, events)
        fix(opened)
    assert len(list(Path(opened.backups.folder).glob("*.damaged-1"))) == 4


def test_a_damaged_backup_is_passed_over(opened: OpenedLog) -> None:
    opened.stop(opened.owner.acquire("idumb test"))
    opened.owner.release()
    newest, older = opened.backups.paths()
    without_triggers(Path(newest), "UPDATE events SET payload = '{}' WHERE seq = 7")
    assert doctor_checks.plan(opened.log.database).backup == older


def test_the_log_is_backed_up_after_every_twentieth_task_and_three_backups_are_kept(tmp_path: Path) -> None:
    opened = OpenedLog(tmp_path)
    fence = opened.owner.acquire("idumb test")
    for number in range(1, 101):
        opened.log.append([NewEvent("task.completed", run="r", task=f"T{number}")], operation="o", fence=fence)
        assert opened.log.verify().witnessed == number
    assert [int(Path(path).stem) for path in opened.backups.paths()] == [100, 80, 60]
    assert event_log.BACKUP_EVERY == 20


def test_a_command_without_a_stop_copies_no_log_and_says_how_far_it_came(opened: OpenedLog) -> None:
    before = opened.backups.paths()
    opened.append(opened.owner.acquire("idumb test"))
    opened.owner.release()
    newest = opened.backups.newest()
    assert (opened.backups.paths(), newest and newest.seq) == (before, 22)


def test_an_old_owner_cannot_write_into_a_restored_log(opened: OpenedLog) -> None:
    fence = opened.owner.acquire("idumb test")
    opened.path.unlink()
    fix(opened)
    assert code_of(opened.append, fence) == "store.fence"


def test_a_hot_journal_of_the_old_database_never_reaches_the_new_one(opened: OpenedLog) -> None:
    opened.path.with_name("store.db-journal").write_bytes(b"pages of the old one")
    opened.path.unlink()
    fix(opened)
    assert opened.log.verify().count == 22
    assert opened.path.with_name("store.db-journal.damaged-1").read_bytes() == b"pages of the old one"


def _killed(inner: Callable[..., object], left: Iterator[int]) -> Callable[..., object]:
    """Return a call that is never made once `left` is used up."""

    def call(*arguments: object, **options: object) -> object:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return inner(*arguments, **options)

    return call


def test_a_restore_killed_at_any_moment_can_be_repeated(opened: OpenedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kill comes before each call that changes a file; the number of such calls is found by going on."""
    events = list(opened.log.events())
    opened.close()
    cut(opened.path)
    names = ("open", "unlink", "rename", "replace", "link")
    for at in range(1, 200):
        left = iter(range(at - 1))
        with monkeypatch.context() as patched:
            for name in names:
                patched.setattr(os, name, _killed(getattr(os, name), left))
            try:
                fix(opened)
            except KeyboardInterrupt:
                continue
        break
    assert at > 5
    fix(opened)
    assert list(opened.log.events())[: len(events)] == events
    assert opened.log.verify().broken_at is None


def test_backups_belong_to_the_user_alone(opened: OpenedLog) -> None:
    for path in (*map(Path, opened.backups.paths()), opened.newest):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(opened.backups.folder).stat().st_mode) == 0o700


def test_a_moved_repository_starts_its_own_backups(opened: OpenedLog) -> None:
    moved = opened.folder.with_name(f"{opened.folder.name}-moved")
    opened.folder.rename(moved)
    again = OpenedLog(moved)
    again.append(again.owner.acquire("idumb test"), 99)
    again.owner.release()
    assert again.backups.folder != opened.backups.folder
    assert [Path(path).name for path in again.backups.paths()] == ["000000000022.db"]


def test_another_repository_at_the_same_path_is_new_and_the_old_backups_are_kept(opened: OpenedLog) -> None:
    """A new clone can get the inode of a deleted one, and with it the same name in the state directory."""
    kept = opened.backups.paths()
    (opened.folder / "idumb").rename(opened.folder / "elsewhere")
    opened.append(opened.owner.acquire("idumb test"))
    assert opened.log.head()[0] == 1
    set_aside = Path(f"{opened.backups.folder}.kept-1")
    assert [path.name for path in set_aside.glob("*.db")] == [Path(path).name for path in kept]


def test_a_log_that_cannot_begin_leaves_the_backups(opened: OpenedLog) -> None:
    """F25: the repository was moved, and may come back."""
    kept = opened.backups.paths()
    opened.folder.rename(opened.folder.with_name("moved"))
    assert code_of(lambda: opened.log.database.write(lambda _: None)) == "store.file"
    assert opened.backups.paths() == kept


def test_refs_of_idumb_without_a_log_are_not_a_new_repository(tmp_path: Path) -> None:
    """The state directory knows nothing, as in a mirror clone."""
    opened = OpenedLog(tmp_path, kept_refs=lambda: True)
    assert code_of(opened.log.head) == "store.missing"
    assert code_of(lambda: opened.fill(1)) == "store.missing"
    assert not opened.path.exists()


def test_backups_that_others_may_write_block_writing_but_not_reading(opened: OpenedLog) -> None:
    folder = Path(opened.backups.folder)
    folder.chmod(0o777)
    assert opened.log.head()[0] == 21
    assert (opened.backups.paths(), opened.backups.newest()) == ([], None)
    opened.close()
    assert code_of(lambda: opened.owner.acquire("idumb test")) == "store.unsafe"
    folder.chmod(0o700)
    opened.owner.acquire("idumb test")


def test_an_unwritable_state_directory_does_not_stop_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    opened = OpenedLog(tmp_path)
    opened.fill(2)
    opened.owner.release()
    assert opened.log.head()[0] == 2


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
    assert backups.set_aside(str(tmp_path / "a"), "kept") == str(tmp_path / "a.kept-3")
    assert (tmp_path / "a.kept-3").read_text(encoding="utf-8") == "new"
