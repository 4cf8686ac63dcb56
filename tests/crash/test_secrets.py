"""T16: no secret is in anything that idumb stores or prints, and the harness detects one (R-LOG-3, F63, S13)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from idumb.system import redaction
from idumb.system.processes import supervision
from idumb.system.redaction import Redactor
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


@pytest.mark.nightly
def test_the_harness_detects_a_redactor_that_forgets_the_previous_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def each_by_itself(self: redaction.Stream, data: bytes) -> bytes:
        return self._redactor.data(data)

    monkeypatch.setattr(redaction.Stream, "feed", each_by_itself)
    tally = Tally()
    secrets.in_pieces(tmp_path, secrets.canaries(random.Random(1))[:3], Redactor(), tally, step=5)
    assert len(tally.failures) == 3


@pytest.mark.nightly
def test_the_harness_detects_truncation_inside_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "_same_start", lambda one, _: one)
    tally = Tally()
    secrets.at_cuts(tmp_path, secrets.canaries(random.Random(1))[:3], Redactor(), tally, step=5)
    assert len(tally.failures) == 3
