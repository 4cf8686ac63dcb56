"""SIGINT, SIGTERM and SIGHUP at durable calls: the run stops at a safe point (F36)."""

from __future__ import annotations

import signal

import pytest

from tests.crash import harness

CASES = [
    (0.02, signal.SIGINT), (0.2, signal.SIGTERM), (0.45, signal.SIGHUP), (0.7, signal.SIGINT), (0.95, signal.SIGTERM)
]  # fmt: skip


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> harness.Scene:
    return harness.Scene(tmp_path_factory.mktemp("interrupted"))


@pytest.mark.nightly
@pytest.mark.parametrize(("chance", "number"), CASES)
def test_a_run_interrupted_anywhere_resumes_to_the_same_end(scene: harness.Scene, chance: float, number: int) -> None:
    """R-RUN-9."""
    project = scene.copy()
    point = int(chance * len(scene.names))
    answer = scene.start(project, "execute-phase", at=point, signal=number).wait()
    assert answer.code in {0, 128 + number}, answer
    assert "Traceback" not in answer.err, answer.err
    if answer.code:
        assert answer.error["code"] == "run.interrupted", answer
    assert harness.left_behind(project) == []
    resumed = scene.go_on(project)
    assert resumed.code == 0, resumed
    assert list(harness.wrong(project, scene.undisturbed)) == []
