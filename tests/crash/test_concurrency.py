"""Eight processes on one repository, and proof that a broken lock is detected."""

from __future__ import annotations

import random

import pytest

from tests.crash import concurrency, programme
from tests.crash.concurrency import Scene


@pytest.mark.timeout(120)
def test_eight_processes_with_mixed_commands_leave_a_valid_history() -> None:
    """R-LOG-5, F10, F40, T6: one owner at a time, nothing lost, nothing twice, no trace of refused commands."""
    programme.on_a_push(concurrency.PROGRAMME)


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(tmp_path_factory.mktemp("together"))


@pytest.mark.nightly
def test_the_harness_detects_a_lock_that_excludes_no_process(scene: Scene) -> None:
    """Whether two commands overlap is random, and about one round in three has no overlap: twelve rounds are enough."""

    def is_detected(seed: int) -> bool:
        trees = scene.copy(1)
        runs = concurrency.mixed(scene, trees, random.Random(seed), plant="everybody owns")
        return any(concurrency.check(trees, runs))

    assert any(is_detected(seed) for seed in range(12))
