"""An owner that was stopped, taken over and continued, and proof that a missing fence is found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash import fencing, programme
from tests.crash.fencing import AFTER, Scene
from tests.support.warm import Warm


@pytest.mark.timeout(120)
def test_an_owner_that_continues_after_a_takeover_writes_nothing() -> None:
    """R-LOG-5, F38, T7: neither in the log nor at refs, on the branch or in the working tree."""
    programme.on_a_push(fencing.PROGRAMME)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("fencing")
    with Warm(folder / "out") as warm:
        yield Scene(warm, folder)


@pytest.mark.nightly
def test_a_builder_does_not_start_if_the_owner_lost_the_tree_while_the_first_checks_began(scene: Scene) -> None:
    """R-LOG-5: nothing but this look is between the last write of the log and the builder."""
    second = next(n for n, name in enumerate(scene.names) if name.endswith("T1-02/1/base"))
    fencing.case(scene, scene.names.index("after ShellChecks.end_processes ", second), AFTER)


# Points whose late writing shows in a report's text: commits of the same tree in the same second are the same.
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("point", "plant"),
    [
        ("before GitTrees.keep refs", "no look at the lock"),
        ("before FileReports.write", "no look at the lock"),
        ("before SqliteEventLog.append checkpoint.recorded", "no fence at all"),
    ],
)
def test_the_harness_detects_a_missing_fence(scene: Scene, point: str, plant: str) -> None:
    number = next(n for n, name in enumerate(scene.names) if name.startswith(point))
    with pytest.raises(AssertionError, match=r"an old token wrote|exit"):
        fencing.case(scene, number, AFTER, plant=plant)


APPENDS = (
    "attempt.started",
    "evidence.recorded attempt.finished checkpoint.intended",
    "checkpoint.recorded task.completed",
    "run.completed",
)


def _before_append(scene: Scene, kinds: str) -> int:
    return scene.names.index(f"before SqliteEventLog.append {kinds}")


@pytest.mark.nightly
@pytest.mark.parametrize("kinds", APPENDS)
def test_the_fence_of_the_log_alone_refuses_an_old_owner(scene: Scene, kinds: str) -> None:
    """R-LOG-5, F38: the two other guards of the log are disabled, and the old token still appends nothing."""
    late, before, after = fencing.late_append(scene, _before_append(scene, kinds), plant=fencing.FENCE_ALONE)
    assert (late.code, late.error["code"]) == (4, "store.fence"), late
    assert after == before


@pytest.mark.nightly
def test_without_the_fence_of_the_log_an_old_owner_appends(scene: Scene) -> None:
    """R-LOG-5: the writes that the test above sees refused succeed if the fence is disabled too."""
    point = _before_append(scene, "checkpoint.recorded task.completed")
    _, before, after = fencing.late_append(scene, point, plant="no fence at all")
    assert after != before
