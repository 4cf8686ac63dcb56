"""T5: disks without room and without permission, and that the programme catches a fault of idumb's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import full_disk, programme, scenes
from tests.crash.full_disk import PROGRAMME, Size
from tests.crash.programme import CannotRun, Tally
from tests.crash.scenes import Stage


@pytest.mark.timeout(120)
def test_a_full_or_read_only_disk_ends_in_one_clear_line_and_a_run_with_space_completes() -> None:
    """R-LOG-5, F34, F35: earlier checkpoints can be read, no partial state, no temporary file stays."""
    programme.on_a_push(PROGRAMME)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_programme_detects_leftover_temporary_files(tmp_path: Path) -> None:
    caught = Tally()
    try:
        with full_disk.mounted(tmp_path / "disk") as disk, Stage(tmp_path) as stage:
            init = scenes.all_of(stage, ["init"])["init"]
            for amount in range(6):
                hook = "tests.crash.full_disk:leave_temporary_files"
                full_disk.play(stage, disk, init, Size("init", "pages", amount), caught, hook=hook)
    except CannotRun as reason:
        pytest.skip(str(reason))
    assert any("leftover files" in failure.words for failure in caught.failures), caught
