"""The working tree is owned for the duration of one command, and never longer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from idumb.app.session import operation
from idumb.domain.errors import StoreError
from tests.adapters.store.opened import OpenedLog
from tests.support.fixed_clock import FixedClock

if TYPE_CHECKING:
    from idumb.app.core.services import Services


class _Unreadable:
    def head(self) -> tuple[int, str]:
        raise StoreError("store.io", "the disk failed under the event log")


@pytest.mark.usefixtures("home")
def test_a_log_failure_right_after_locking_releases_the_lock(tmp_path: Path) -> None:
    opened = OpenedLog(tmp_path)
    services = SimpleNamespace(owner=opened.owner, log=_Unreadable(), worktree="main", clock=FixedClock())
    with pytest.raises(StoreError), operation.owned(cast("Services", services), "test"):
        pass
    assert OpenedLog(tmp_path).owner.acquire("next") == 2
