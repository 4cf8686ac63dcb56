"""T16: no secret is in anything that idumb stores or prints, and the harness detects one (R-LOG-3, F63, S13)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash import programme, secrets
from tests.crash.programme import Tally
from tests.crash.secrets import PROGRAMME


@pytest.mark.timeout(120)
def test_no_canary_secret_is_stored_or_printed_anywhere() -> None:
    programme.on_a_push(PROGRAMME)


@pytest.mark.nightly
@pytest.mark.timeout(120)
def test_the_harness_detects_unredacted_secrets(tmp_path: Path) -> None:
    tally = Tally()
    secrets.everywhere(tmp_path, secrets.canaries(random.Random(1))[-2:], tally, plant="redaction off")
    reports = " ".join(failure.words for failure in tally.failures)
    assert "what show T1-03 says" in reports
    assert ".git/idumb/store.db" in reports
    assert "objects of git" in reports
