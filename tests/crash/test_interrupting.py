"""SIGINT, SIGTERM and SIGHUP, once and twice, at durable calls (F36)."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.crash import interrupting
from tests.crash.interrupting import Scene
from tests.support import seed
from tests.support.warm import Warm

SAMPLE = (0.02, 0.2, 0.45, 0.7, 0.95)
CASES = list(zip(SAMPLE, interrupting.NUMBERS * 2, strict=False))
FIRST_COMMIT = "before GitHistory.make"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("interrupted")
    with Warm(folder / "out") as warm:
        yield Scene(warm, folder)


@pytest.mark.parametrize(("chance", "number"), seed.one_on_a_push(CASES, "a signal"))
def test_a_run_interrupted_anywhere_resumes_to_the_same_end(scene: Scene, chance: float, number: int) -> None:
    """R-RUN-9."""
    scene.case(int(chance * len(scene.names)), number)


@pytest.mark.nightly
@pytest.mark.parametrize("chance", SAMPLE[1:4])
def test_a_run_interrupted_twice_anywhere_resumes_to_the_same_end(scene: Scene, chance: float) -> None:
    scene.case(int(chance * len(scene.names)), signal.SIGINT, twice=True)


@pytest.mark.nightly
def test_a_run_interrupted_at_its_commit_commits_once(scene: Scene) -> None:
    point = next(n for n, name in enumerate(scene.names) if name.startswith(FIRST_COMMIT))
    assert scene.case(point, signal.SIGTERM) == 128 + signal.SIGTERM


@pytest.mark.torture
def test_signals_at_every_point(scene: Scene) -> None:
    for point in range(len(scene.names)):
        scene.case(point, interrupting.NUMBERS[point % 3])
        scene.case(point, interrupting.NUMBERS[point % 3], twice=True)
