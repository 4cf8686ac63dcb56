"""Where locks lie no log is begun, unless the user says so (F42)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from idumb.domain.errors import StoreError
from idumb.store import connection
from idumb.store.event_log import SqliteEventLog
from idumb.store.ownership import FileOwnership
from tests.support.cases import every
from tests.support.fixed_clock import FixedClock


def log_on(kind: str, folder: Path, *, allowed: bool = False) -> FileOwnership:
    may_create = partial(connection.refuse_network, allowed=lambda: allowed, kind_of=lambda _: kind)
    log = SqliteEventLog(str(folder), "main", FixedClock(), may_create=may_create)
    return FileOwnership(log.database, "main", FixedClock())


@every("kind", ["nfs4", "cifs", "9p", "fuse.sshfs"])
def test_no_log_is_created_on_a_network_file_system(kind: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        log_on(kind, tmp_path).acquire("idumb test")
    assert caught.value.code == "store.network"
    assert "git.network" in (caught.value.hint or "")
    assert not (tmp_path / "idumb" / "store.db").exists()


def test_the_user_can_allow_a_network_file_system(tmp_path: Path) -> None:
    assert log_on("nfs4", tmp_path, allowed=True).acquire("idumb test") == 1


def test_an_existing_log_is_used(tmp_path: Path) -> None:
    first = log_on("ext4", tmp_path)
    first.acquire("idumb test")
    first.release()
    assert log_on("nfs4", tmp_path).acquire("idumb test") == 2
