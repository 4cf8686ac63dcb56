"""A process id from a lock means nothing in another container."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from idumb.git import discover, stale_locks
from idumb.system import host_identity
from idumb.system.processes import process_tree
from tests.support.gitrepo import GitSandbox

SINCE = "2020-01-01T00:00:00+00:00"
OURS, OTHERS = "pid:[1]", "pid:[2]"


@pytest.fixture
def lock(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of git, seen from inside a container in which no git runs."""
    monkeypatch.setattr(host_identity, "process_namespace", lambda: OURS)
    monkeypatch.setattr(process_tree, "may_be_at_work", lambda *_: False)
    sandbox.commit()
    lock_file = sandbox.git_dir / "index.lock"
    lock_file.touch()
    return lock_file


def cleared(sandbox: GitSandbox, before: str | None) -> tuple[str, ...]:
    """`before`: the place where the killed operation ran, as recorded in its owner file."""
    place = discover.find(str(sandbox.root))
    os.makedirs(place.state_dir, exist_ok=True)
    Path(place.state_dir, "owner.json").write_text(json.dumps({"namespace_before": before}))
    return stale_locks.clear(place, "main", SINCE)


@pytest.mark.parametrize("before", [OURS, OTHERS, None])
def test_a_lock_stays_if_a_process_of_another_container_may_hold_it(
    sandbox: GitSandbox, lock: Path, before: str | None
) -> None:
    assert cleared(sandbox, before) == ((str(lock),) if before == OURS else ())
    assert lock.exists() == (before != OURS)
