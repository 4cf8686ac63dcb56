"""T15: output costs little memory and moves no cursor, and the harness would see it (F60, F62, S12)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.crash import hostile_output, programme
from tests.crash.hostile_output import PROGRAMME
from tests.crash.programme import Tally

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="measures memory by /proc")


@pytest.mark.timeout(120)
def test_output_of_any_size_and_kind_is_bounded_and_shown_escaped() -> None:
    programme.on_a_push(PROGRAMME)


@pytest.mark.nightly
@pytest.mark.timeout(120)
def test_the_harness_detects_unescaped_output(tmp_path: Path) -> None:
    tally = Tally()
    hostile_output.shown(tmp_path, tally, plant="escape off")
    assert any("show T1-02 on a terminal" in failure.case for failure in tally.failures)
