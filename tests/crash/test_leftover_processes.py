"""T14: no process outlives the work, and the harness would detect one (R-RUN-8, R-RUN-9, F59)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.crash import escapes, leftover_processes, programme
from tests.crash.leftover_processes import PROGRAMME, TIMEOUT, Case
from tests.crash.programme import LEFT_PROCESS, Tally

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of all processes")


@pytest.mark.timeout(120)
def test_no_process_can_be_left_behind() -> None:
    programme.on_a_push(PROGRAMME)


@pytest.mark.nightly
@pytest.mark.timeout(120)
def test_the_harness_detects_processes_that_outlive_their_group(tmp_path: Path) -> None:
    """A harness that never failed proves nothing: here only the process group is ended."""
    tally = Tally()
    leftover_processes.one_round(tmp_path, tally, [Case("agent", "wait", TIMEOUT)], plant="only the group")
    cases = {failure.case for failure in tally.failures if failure.kind == LEFT_PROCESS}
    assert f"agent, wait, {TIMEOUT}: double fork" in cases
    assert f"agent, wait, {TIMEOUT}: no environment" in cases
    assert f"agent, wait, {TIMEOUT}: {escapes.MOVING}" in cases
