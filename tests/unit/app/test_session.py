"""What a command owns and frees: the working tree, for its duration, and runs that no live one needs (R-LOG-8)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from idumb.app.core import kept_runs
from idumb.app.ports import RunStart
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


STARTS = [
    RunStart("r1", "1", "main", 1),
    RunStart("r2", "1", "main", 10),
    RunStart("r3", "2", "main", 20),
    RunStart("r4", "1", "other", 30),
    RunStart("r5", "1", "main", 40),
]


def test_the_newest_run_of_each_phase_in_each_working_tree_is_live_and_what_it_took_tasks_from() -> None:
    assert kept_runs.live_runs(STARTS, lambda _: ()) == {"r3", "r4", "r5"}
    carried = {"r5": {"r2"}, "r2": {"r1"}, "r1": {"r2"}}
    assert kept_runs.live_runs(STARTS, lambda run: carried.get(run, ())) == {"r1", "r2", "r3", "r4", "r5"}
