"""Corruption of the files that idumb keeps, and that the programme can fail (F43, F44)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from idumb.store import backups, event_chain
from tests.crash import corruption, programme
from tests.crash.programme import Tally

SEED = 11


@pytest.mark.timeout(120)
def test_damage_to_any_stored_file_is_detected_before_use_and_the_run_continues() -> None:
    """R-LOG-2, R-LOG-6."""
    assert programme.on_a_push(corruption.PROGRAMME).notes["store.db: store.corrupt"]


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_programme_detects_missing_verification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A harness that never failed proves nothing: without verification, damaged events are accepted."""
    tally = Tally()
    scene = corruption.Scene(tmp_path)
    monkeypatch.setattr(event_chain, "own_fault", lambda _: None)
    monkeypatch.setattr(backups, "unsound", lambda _: None)
    corruption.flip_bytes(scene, 60, random.Random(SEED), tally)
    assert any("believed" in failure.words for failure in tally.failures), tally.notes
